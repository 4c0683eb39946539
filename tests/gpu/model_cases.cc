#include "tests/gpu/model_cases.h"

#include <time.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/packed_model.h"
#include "core/sharing_strategy.h"
#include "tests/gpu/bench_device.h"

namespace strata {
namespace {

void CheckOk(const absl::Status& status, const char* what) {
  if (!status.ok()) Die(what, status.ToString().c_str());
}

double ThreadSeconds() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

// Sequences and what they refer to.
struct ModelBench::Batch {
  std::unique_ptr<Request> request;
  std::vector<std::unique_ptr<Sequence>> sequences;
  BatchPlan plan;  // a row of each
};

ModelBench::ModelBench(const BenchShape& shape,
                       std::unique_ptr<Backend> backend, double copy_rate,
                       const ResultTable& table)
    : shape_(shape),
      backend_(std::move(backend)),
      copy_rate_(copy_rate),
      table_(table),
      free_at_start_(FreeDeviceBytes()) {
  const RandomCheckpoint random(shape.config);
  transformer_ = std::make_unique<Transformer>(
      PackModel(random.checkpoint(), backend_.get(), [](int) {}),
      backend_.get(), shape.chunk_rows);
  const Checkpoint& checkpoint = random.checkpoint();
  const auto held_bytes = PackedModelBytes(checkpoint, *backend_);
  CheckOk(held_bytes.status(), "the model");
  const auto table_bytes = backend_->TableBytes(checkpoint.embedding);
  CheckOk(table_bytes.status(), "the embedding");
  weight_bytes_ = *held_bytes - *table_bytes;
  KvLayout layout = {.page_tokens = shape.page_tokens,
                     .kv_heads = shape.config.num_kv_heads,
                     .head_dim = shape.config.head_dim};
  page_bytes_ = backend_->PageBytes(layout);
  // What the embedding and the backend's scratch take comes later.
  const int64_t later = 2 * random.checkpoint().embedding.NumBytes();
  layout.num_pages = std::min(
      shape.max_pages, (FreeDeviceBytes() - later) / 10 * 9 / page_bytes_);
  CheckOk(backend_->CreateKvPages(layout), "the model");
  num_pages_ = layout.num_pages;
  // The embedding is packed by the first step.
  Batch first = NewBatch(Strategy("full"), 1, 2, 1);
  Run(first.plan);
}

SharingStrategy ModelBench::Strategy(const std::string& spec) const {
  absl::StatusOr<SharingStrategy> strategy =
      SharingStrategy::Parse(spec, shape_.config.num_layers);
  CheckOk(strategy.status(), "strategy");
  return *std::move(strategy);
}

int64_t ModelBench::BlocksOf(int num_tokens) const {
  return (num_tokens + shape_.page_tokens - 1) / shape_.page_tokens;
}

int ModelBench::MostThatFits(const SharingStrategy& strategy,
                             int num_tokens) const {
  const int64_t most =
      num_pages_ / (BlocksOf(num_tokens) * strategy.num_leaders());
  return static_cast<int>(std::min<int64_t>(most, shape_.max_batch));
}

double ModelBench::KvBytes(const SharingStrategy& strategy,
                           int64_t num_tokens) const {
  return static_cast<double>(num_tokens * strategy.num_leaders() *
                             LayerKvBytes(shape_.config));
}

double ModelBench::PeakBytes(double kv_bytes) const {
  const int64_t used = free_at_start_ - FreeDeviceBytes();
  return static_cast<double>(used - num_pages_ * page_bytes_) + kv_bytes;
}

ModelBench::Batch ModelBench::NewBatch(const SharingStrategy& strategy,
                                       int batch, int num_tokens,
                                       int cached) const {
  Batch made;
  made.request = std::make_unique<Request>(strategy);
  made.request->sampling.temperature = 0.0f;
  for (int i = 0; i < num_tokens; ++i) {
    made.request->prompt.push_back(
        static_cast<int32_t>(i * int64_t{7919} % shape_.config.vocab_size));
  }
  const int slots = strategy.num_leaders();
  const auto blocks = static_cast<int>(BlocksOf(num_tokens));
  std::vector<int32_t> pages(slots);
  std::iota(pages.begin(), pages.end(), 0);
  for (int i = 0; i < batch; ++i) {
    made.sequences.push_back(std::make_unique<Sequence>(
        nullptr, *made.request, i, SequenceOutput(nullptr, *made.request, {})));
    Sequence& sequence = *made.sequences.back();
    sequence.num_cached = cached;
    sequence.pages = PageTable(slots, blocks);
    for (int b = 0; b < blocks; ++b) {
      sequence.pages.AppendBlock(pages.data());
      for (int32_t& page : pages) page += slots;
    }
    made.plan.chunks.push_back(
        {.sequence = &sequence, .num_rows = 1, .num_wanted = 1});
  }
  made.plan.num_rows = made.plan.num_wanted = batch;
  return made;
}

void ModelBench::Run(const BatchPlan& plan) {
  const std::vector<SampleRow> samples(plan.num_wanted, {.temperature = 0.0f});
  CheckOk(transformer_->Submit(plan, samples, &sampled_), "a step");
  CheckOk(transformer_->Wait(), "a step");
}

void ModelBench::RunPrompt(Sequence* sequence) {
  const int total = static_cast<int>(sequence->tokens.size());
  for (sequence->num_cached = 0; sequence->num_cached < total;) {
    const int rows = std::min(shape_.chunk_rows, total - sequence->num_cached);
    const int wanted = sequence->num_cached + rows == total ? 1 : 0;
    BatchPlan plan;
    plan.chunks.push_back(
        {.sequence = sequence, .num_rows = rows, .num_wanted = wanted});
    plan.num_rows = rows;
    plan.num_wanted = wanted;
    Run(plan);
    sequence->num_cached += rows;
  }
}

void ModelBench::MeasurePrompts() {
  for (const int prompt : shape_.prompts) {
    for (const std::string& spec : shape_.strategies) {
      const SharingStrategy strategy = Strategy(spec);
      if (MostThatFits(strategy, prompt) < 1) continue;
      Batch batch = NewBatch(strategy, 1, prompt, 0);
      const auto run = [&] { RunPrompt(batch.sequences.front().get()); };
      if (prompt == shape_.prompts.front()) run();
      const double seconds = SecondsOf(run);
      if (!sampled_.front().finite) Die("the prompt's logits", "not finite");
      const double flops =
          PrefillFlops(shape_.config, prompt, strategy.num_leaders(),
                       strategy.last_leader());
      const double kv_bytes = KvBytes(strategy, prompt);
      table_.Add({.what = "prompt",
                  .strategy = spec,
                  .context = prompt,
                  .rows = 1,
                  .values = {{"KV MB", 1e-6 * kv_bytes},
                             {"peak MB", 1e-6 * PeakBytes(kv_bytes)},
                             {"TTFT ms", 1e3 * seconds},
                             {"TFLOP/s", 1e-12 * flops / seconds}}});
    }
  }
}

void ModelBench::MeasureWeights(const std::string& what) {
  for (const int batch : shape_.batches) {
    MeasureStep(what, "full", shape_.contexts.front(), batch);
  }
}

void ModelBench::MeasureStep(const std::string& what, const std::string& spec,
                             int context, int batch) {
  const SharingStrategy strategy = Strategy(spec);
  const Batch made = NewBatch(strategy, batch, context, context - 1);
  const double seconds = MedianSeconds(shape_.repeats, [&] { Run(made.plan); });
  const double kv_bytes = KvBytes(strategy, int64_t{batch} * context);
  // Every layer reads a cache, its own or its leader's.
  const double read = static_cast<double>(weight_bytes_) +
                      KvBytes(Strategy("full"), int64_t{batch} * context);
  table_.Add({.what = what,
              .strategy = spec,
              .context = context,
              .rows = batch,
              .values = {{"ms", 1e3 * seconds},
                         {"KV MB", 1e-6 * kv_bytes},
                         {"peak MB", 1e-6 * PeakBytes(kv_bytes)},
                         {"tok/s", batch / seconds},
                         {"GB/s", 1e-9 * read / seconds},
                         {"of copy", read / seconds / copy_rate_}}});
}

void ModelBench::MeasureDecoding() {
  for (const int context : shape_.contexts) {
    for (const std::string& spec : shape_.strategies) {
      const int most = MostThatFits(Strategy(spec), context);
      for (const int batch : shape_.batches) {
        if (batch <= most) MeasureStep("decode", spec, context, batch);
      }
      const int largest = std::ranges::max(shape_.batches);
      if (most > largest) MeasureStep("decode", spec, context, most);
    }
  }
}

void ModelBench::MeasureHost() {
  CheckCuda(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), "flags");
  const std::string spec = "full";
  for (const int context : shape_.contexts) {
    for (const int batch : shape_.batches) {
      if (batch > MostThatFits(Strategy(spec), context)) continue;
      const Batch made = NewBatch(Strategy(spec), batch, context, context - 1);
      Run(made.plan);
      Run(made.plan);
      const double begin = ThreadSeconds();
      const double seconds = SecondsOf([&] {
        for (int i = 0; i < shape_.repeats; ++i) Run(made.plan);
      });
      const double host = ThreadSeconds() - begin;
      table_.Add({.what = "host time",
                  .strategy = spec,
                  .context = context,
                  .rows = batch,
                  .values = {{"ms", 1e3 * seconds / shape_.repeats},
                             {"host ms", 1e3 * host / shape_.repeats}}});
    }
  }
}

}  // namespace strata
