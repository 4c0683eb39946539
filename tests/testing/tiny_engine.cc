#include "tests/testing/tiny_engine.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "core/fit_request.h"
#include "core/model/lora_adapter.h"
#include "core/model/weight_split.h"
#include "core/packed_model.h"
#include "core/strategy_registry.h"
#include "core/transformer.h"
#include "kernels/cpu/cpu_ranks.h"
#include "monitoring/metrics.h"
#include "tests/testing/async_cpu_backend.h"

namespace strata {
namespace {

std::unique_ptr<Checkpoint> Load(const TinyEngine::Options& options) {
  const bool is_path = options.model.find('/') != std::string::npos;
  absl::StatusOr<Checkpoint> loaded =
      LoadCheckpoint(is_path ? options.model : "tests/golden/" + options.model);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  auto checkpoint = std::make_unique<Checkpoint>(*std::move(loaded));
  if (!options.adapter.empty()) {
    const auto applied =
        ApplyLoraAdapter(options.adapter, options.exact_f32, checkpoint.get());
    EXPECT_TRUE(applied.ok()) << applied.status();
  }
  return checkpoint;
}

std::unique_ptr<Backend> MakeBackend(const TinyEngine::Options& options,
                                     const Checkpoint& checkpoint) {
  if (options.make_backend) return options.make_backend();
  const cpu::CpuOptions cpu = {.num_threads = options.threads,
                               .exact_f32 = options.exact_f32};
  const char* const kind = std::getenv("STRATA_TEST_BACKEND");
  if (kind != nullptr && kind == std::string("async")) {
    return std::make_unique<AsyncCpuBackend>(cpu);
  }
  EXPECT_TRUE(CheckSplit(checkpoint, options.num_ranks).ok());
  return cpu::MakeCpuRanks(cpu, options.num_ranks);
}

std::unique_ptr<const Tokenizer> MakeTokenizer(
    const TinyEngine::Options& options, const Checkpoint& checkpoint) {
  if (options.has_text) {
    EXPECT_TRUE(checkpoint.tokenizer.has_value()) << options.model;
    auto made = Tokenizer::Create(*checkpoint.tokenizer);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  return options.make_tokenizer ? options.make_tokenizer() : nullptr;
}

}  // namespace

TinyEngine::TinyEngine(const Options& options)
    : checkpoint(Load(options)),
      backend(MakeBackend(options, *checkpoint)),
      tokenizer(MakeTokenizer(options, *checkpoint)) {
  const ModelConfig& config = checkpoint->config;
  const KvLayout layout = {.num_pages = options.num_pages,
                           .page_tokens = options.page_tokens,
                           .kv_heads = config.num_kv_heads,
                           .head_dim = config.head_dim};
  auto transformer = std::make_unique<Transformer>(
      PackModel(*checkpoint, backend.get(), [](int) {}), backend.get(),
      options.max_batched_tokens);
  const auto reserved = transformer->Reserve(layout, options.max_sequences);
  EXPECT_TRUE(reserved.ok()) << reserved.status();
  EXPECT_TRUE(backend->CreateKvPages(layout).ok());
  page_bytes = backend->PageBytes(layout);
  strategies = std::make_unique<StrategyRegistry>(
      config.num_layers, SharingStrategy::Full(config.num_layers));
  registry = std::make_unique<prometheus::Registry>();
  metrics = std::make_unique<Metrics>(
      registry.get(), Metrics::Config{.model_name = options.model,
                                      .version = "test",
                                      .backend = "cpu",
                                      .kv_format = backend->kv_format(),
                                      .page_tokens = options.page_tokens,
                                      .page_bytes = page_bytes,
                                      .num_pages = options.num_pages,
                                      .num_layers = config.num_layers,
                                      .max_model_len = config.max_positions});
  int label = 0;
  for (const std::string& name : strategies->labels()) {
    metrics->AddStrategy(label++, name, 0);
  }
  absl::StatusOr<std::unique_ptr<Engine>> created = Engine::Create(
      {.scheduler = {.max_sequences = options.max_sequences,
                     .max_batched_tokens = options.max_batched_tokens,
                     .page_tokens = options.page_tokens,
                     .optimistic = options.optimistic},
       .max_queued_requests = options.max_queued_requests,
       .max_model_len = config.max_positions,
       .num_pages = options.num_pages,
       .page_bytes = page_bytes,
       .stall_limit = options.stall_limit},
      {.transformer = std::move(transformer),
       .tokenizer = tokenizer.get(),
       .eos_ids = checkpoint->eos_ids,
       .strategies = strategies.get(),
       .metrics = metrics.get()});
  EXPECT_TRUE(created.ok()) << created.status();
  engine = *std::move(created);
}

TinyEngine::~TinyEngine() = default;

SharingStrategy TinyEngine::Strategy(const std::string& spec) const {
  absl::StatusOr<SharingStrategy> strategy =
      SharingStrategy::Parse(spec, checkpoint->config.num_layers);
  EXPECT_TRUE(strategy.ok()) << strategy.status();
  return *strategy;
}

Request TinyEngine::Greedy(std::vector<int32_t> prompt,
                           const std::string& strategy, int max_tokens) const {
  Request request(Strategy(strategy));
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0.0f;
  request.stopping.ignore_eos = true;
  EXPECT_TRUE(FitRequest(engine->limits(), max_tokens, &request).ok());
  return request;
}

std::shared_ptr<CollectingSink> TinyEngine::Run(Request request) const {
  auto sink = std::make_shared<CollectingSink>();
  engine->Submit(std::move(request), sink);
  EXPECT_TRUE(sink->Wait().ok());
  return sink;
}

}  // namespace strata
