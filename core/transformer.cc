#include "core/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "core/largest_step.h"

namespace strata {

Transformer::Transformer(PackedModel model, Backend* backend, int max_rows)
    : model_(std::move(model)), backend_(backend), max_rows_(max_rows) {
  const ModelConfig& c = model_.config;
  const int64_t rows = max_rows;
  x_ = backend->NewFloats(rows * c.hidden_size);
  gathered_ = backend->NewFloats(rows * c.hidden_size);
  q_ = backend->NewFloats(rows * c.num_heads * c.head_dim);
  attended_ = backend->NewFloats(rows * c.num_heads * c.head_dim);
  hidden_ = backend->NewFloats(rows * c.intermediate_size);
  logits_ =
      backend->NewFloats(std::min<int64_t>(rows, kMaxLogitRows) * c.vocab_size);
  row_sets_.resize(c.num_layers + 1);
  q_rows_.resize(c.num_layers);
  kv_rows_.resize(c.num_layers);
}

int64_t Transformer::ActivationBytes(const ModelConfig& config, int max_rows) {
  const int64_t floats = 2 * int64_t{config.hidden_size} +
                         2 * int64_t{config.num_heads} * config.head_dim +
                         config.intermediate_size;
  return max_rows * floats * int64_t{sizeof(float)} +
         LogitBytes(config, max_rows);
}

int64_t Transformer::LogitBytes(const ModelConfig& config, int max_rows) {
  return int64_t{std::min(max_rows, kMaxLogitRows)} * config.vocab_size *
         int64_t{sizeof(float)};
}

absl::StatusOr<int64_t> Transformer::Reserve(const KvLayout& layout,
                                             int max_sequences) {
  const int num_decoding = std::min(max_sequences, max_rows_);
  const std::vector<SampleRow> samples(max_rows_);
  std::vector<SampledToken> out(max_rows_);
  int64_t num_bytes = 0;
  // Rows of a step, and those that go on after a layer: steps that only decode,
  // with a prompt, and with a prompt that ends.
  const std::pair<int, int> cases[] = {{num_decoding, num_decoding},
                                       {max_rows_, max_rows_},
                                       {max_rows_, max_rows_ - 1}};
  for (const auto& [num_rows, num_kept] : cases) {
    const int layers = model_.config.num_layers;
    const LargestStep all(num_decoding, num_rows, layout.page_tokens, layers);
    const LargestStep kept(num_decoding, num_kept, layout.page_tokens, layers);
    const bool some_end = num_kept < num_rows;
    backend_->Embed(
        {.table = model_.embedding, .tokens = all.tokens(), .x = x_});
    for (int layer = 0; layer < layers; ++layer) {
      QueueLayer(layer, all.step(), some_end ? kept.step() : all.step(),
                 kept.rows(), all.rows());
    }
    QueueHead(kept.rows(), std::span(samples).first(num_kept), out.data());
    STRATA_ASSIGN_OR_RETURN(num_bytes, backend_->Reserve(layout));
  }
  return num_bytes;
}

absl::Status Transformer::Submit(const BatchPlan& plan,
                                 std::span<const SampleRow> samples,
                                 std::vector<SampledToken>* out) {
  STRATA_CHECK(plan.num_rows <= max_rows_);
  STRATA_CHECK(static_cast<int>(samples.size()) == plan.num_wanted);
  out->resize(samples.size());
  SetTables(plan);
  backend_->Embed({.table = model_.embedding,
                   .tokens = tokens_,
                   .sampled = sampled_,
                   .x = x_});
  for (int layer = 0; layer < model_.config.num_layers; ++layer) {
    RunLayer(layer);
    if (row_sets_[active_].rows() == 0) break;
  }
  if (!samples.empty()) {
    row_sets_[active_].WantedRows(&wanted_rows_);
    QueueHead(wanted_rows_, samples, out->data());
  }
  return backend_->Submit();
}

void Transformer::SetTables(const BatchPlan& plan) {
  tokens_.clear();
  sampled_.clear();
  strategy_of_.clear();
  slot_of_.clear();
  const SharingStrategy* last = nullptr;
  for (const BatchPlan::Chunk& chunk : plan.chunks) {
    const Sequence& sequence = *chunk.sequence;
    AppendTokens(sequence, chunk.num_rows);
    // Chunks of one strategy lie together, so a table is seldom written twice.
    if (last == nullptr || !(*last == sequence.strategy)) {
      last = &sequence.strategy;
      const std::span<const int32_t> slots = last->slots();
      slot_of_.insert(slot_of_.end(), slots.begin(), slots.end());
    }
    strategy_of_.push_back(
        static_cast<int32_t>(slot_of_.size()) / model_.config.num_layers - 1);
  }
  if (!sampled_.empty()) sampled_.resize(tokens_.size(), -1);
  active_ = 0;
  row_sets_[0].SetAll(plan, strategy_of_, slot_of_.data(),
                      model_.config.num_layers);
}

void Transformer::AppendTokens(const Sequence& sequence, int num_rows) {
  const auto known = std::span(sequence.tokens).subspan(sequence.num_cached);
  const size_t num_known = std::min<size_t>(num_rows, known.size());
  tokens_.insert(tokens_.end(), known.begin(), known.begin() + num_known);
  if (num_known == static_cast<size_t>(num_rows)) return;
  // The last row's token is still to be sampled.
  STRATA_CHECK(sequence.is_sampling() &&
               static_cast<size_t>(num_rows) == num_known + 1);
  sampled_.resize(tokens_.size(), -1);
  tokens_.push_back(0);
  sampled_.push_back(sequence.sampled_as);
}

void Transformer::RunLayer(int layer) {
  const RowSet& all = row_sets_[active_];
  std::vector<int32_t>& q_rows = q_rows_[layer];
  if (all.SomeEndAt(layer)) {
    row_sets_[++active_].SetKept(all, layer, &q_rows);
  } else {
    q_rows.resize(all.rows());
    std::iota(q_rows.begin(), q_rows.end(), 0);
  }
  all.LeaderRows(layer, &kv_rows_[layer]);
  QueueLayer(layer, all.step(), row_sets_[active_].step(), q_rows,
             kv_rows_[layer]);
}

void Transformer::QueueLayer(int layer, const Step& all, const Step& kept,
                             std::span<const int32_t> q_rows,
                             std::span<const int32_t> kv_rows) {
  const ModelConfig& c = model_.config;
  const PackedLayer& weights = model_.layers[layer];
  backend_->Qkv({.layer = layer,
                 .x = x_,
                 .step = &all,
                 .q_rows = q_rows,
                 .kv_rows = kv_rows,
                 .norm = weights.attention_norm,
                 .wq = weights.wq.get(),
                 .wk = weights.wk.get(),
                 .wv = weights.wv.get(),
                 .bq = weights.bq,
                 .bk = weights.bk,
                 .bv = weights.bv,
                 .q_norm = weights.q_norm,
                 .k_norm = weights.k_norm,
                 .inv_freq = model_.inv_freq,
                 .q = q_});
  const int rows = static_cast<int>(q_rows.size());
  if (rows == 0) return;
  if (&kept != &all) {
    backend_->Gather(
        {.x = x_, .row_ids = q_rows, .dim = c.hidden_size, .y = gathered_});
    std::swap(x_, gathered_);
  }
  backend_->Attention(
      {.layer = layer,
       .step = &kept,
       .q = q_,
       .out = attended_,
       .q_heads = c.num_heads,
       .scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim))});
  backend_->Linear({.x = attended_,
                    .rows = rows,
                    .w = weights.wo.get(),
                    .bias = weights.bo,
                    .y = x_,
                    .accumulate = true});
  backend_->GatedMlp({.x = x_,
                      .rows = rows,
                      .norm = weights.mlp_norm,
                      .gate = weights.gate.get(),
                      .up = weights.up.get(),
                      .y = hidden_});
  backend_->Linear({.x = hidden_,
                    .rows = rows,
                    .w = weights.down.get(),
                    .y = x_,
                    .accumulate = true});
}

void Transformer::QueueHead(std::span<const int32_t> wanted,
                            std::span<const SampleRow> samples,
                            SampledToken* out) {
  for (size_t first = 0; first < wanted.size(); first += kMaxLogitRows) {
    const size_t count = std::min<size_t>(kMaxLogitRows, wanted.size() - first);
    backend_->Head({.x = x_,
                    .row_ids = wanted.subspan(first, count),
                    .norm = model_.final_norm,
                    .w = model_.head.get(),
                    .logits = logits_});
    backend_->Sample({.logits = logits_,
                      .vocab = model_.config.vocab_size,
                      .rows = samples.subspan(first, count),
                      .out = out + first});
  }
}

}  // namespace strata
