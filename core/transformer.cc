#include "core/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

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

absl::Status Transformer::Run(const BatchPlan& plan,
                              std::span<const SampleRow> samples,
                              std::vector<SampledToken>* out) {
  STRATA_CHECK(plan.num_rows <= max_rows_);
  STRATA_CHECK(static_cast<int>(samples.size()) == plan.num_wanted);
  out->resize(samples.size());
  SetTables(plan);
  backend_->Embed({.table = model_.embedding, .tokens = tokens_, .x = x_});
  for (int layer = 0; layer < model_.config.num_layers; ++layer) {
    RunLayer(layer);
    if (row_sets_[active_].rows() == 0) break;
  }
  if (!samples.empty()) RunHead(samples, out->data());
  return backend_->Wait();
}

void Transformer::SetTables(const BatchPlan& plan) {
  tokens_.clear();
  strategy_of_.clear();
  slot_of_.clear();
  const SharingStrategy* last = nullptr;
  for (const BatchPlan::Chunk& chunk : plan.chunks) {
    const Sequence& sequence = *chunk.sequence;
    const auto begin = sequence.tokens.begin() + sequence.num_cached;
    tokens_.insert(tokens_.end(), begin, begin + chunk.num_rows);
    // Chunks of one strategy lie together, so a table is seldom written twice.
    if (last == nullptr || !(*last == sequence.strategy)) {
      last = &sequence.strategy;
      const std::span<const int32_t> slots = last->slots();
      slot_of_.insert(slot_of_.end(), slots.begin(), slots.end());
    }
    strategy_of_.push_back(
        static_cast<int32_t>(slot_of_.size()) / model_.config.num_layers - 1);
  }
  active_ = 0;
  row_sets_[0].SetAll(plan, strategy_of_, slot_of_.data(),
                      model_.config.num_layers);
}

void Transformer::RunLayer(int layer) {
  const ModelConfig& c = model_.config;
  const PackedLayer& weights = model_.layers[layer];
  const RowSet& all = row_sets_[active_];
  std::vector<int32_t>& q_rows = q_rows_[layer];
  const bool some_end = all.SomeEndAt(layer);
  if (some_end) {
    row_sets_[++active_].SetKept(all, layer, &q_rows);
  } else {
    q_rows.resize(all.rows());
    std::iota(q_rows.begin(), q_rows.end(), 0);
  }
  all.LeaderRows(layer, &kv_rows_[layer]);
  backend_->Qkv({.layer = layer,
                 .x = x_,
                 .step = &all.step(),
                 .q_rows = q_rows,
                 .kv_rows = kv_rows_[layer],
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
  const RowSet& kept = row_sets_[active_];
  const int rows = kept.rows();
  if (rows == 0) return;
  if (some_end) {
    backend_->Gather(
        {.x = x_, .row_ids = q_rows, .dim = c.hidden_size, .y = gathered_});
    std::swap(x_, gathered_);
  }
  backend_->Attention(
      {.layer = layer,
       .step = &kept.step(),
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

void Transformer::RunHead(std::span<const SampleRow> samples,
                          SampledToken* out) {
  row_sets_[active_].WantedRows(&wanted_rows_);
  const std::span<const int32_t> wanted = wanted_rows_;
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
