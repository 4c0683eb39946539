#ifndef CORE_TRANSFORMER_H_
#define CORE_TRANSFORMER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/batch_plan.h"
#include "core/packed_model.h"
#include "core/row_set.h"
#include "kernels/backend.h"

namespace strata {

// The forward pass of a decoder-only transformer under a KV-sharing strategy
// for each sequence (Algorithm 2 of "Stochastic KV Routing", arXiv 2604.22782):
// every layer computes its queries; a leader layer computes K and V, appends
// them to the cache and reads them; a follower reads the cache of its leader.
// Written once, over Backend.
//
// Owns the packed weights and the activations.  Not thread-safe: the engine
// thread's.
class Transformer {
 public:
  // max_rows: of a step.  `backend` outlives this.
  Transformer(PackedModel model, Backend* backend, int max_rows);

  // Lets the backend allocate what steps of max_rows rows need, of them up to
  // `max_sequences` that decode.  Returns what Backend::Reserve does.
  // REQUIRES: the pages of `layout` are not created yet.
  absl::StatusOr<int64_t> Reserve(const KvLayout& layout, int max_sequences);

  // Bytes of f32 activations, and of them of logits.
  static int64_t ActivationBytes(const ModelConfig& config, int max_rows);
  static int64_t LogitBytes(const ModelConfig& config, int max_rows);

  // Starts the plan's rows and samples: out[i] becomes the token of the i-th
  // wanted row under samples[i], in the order of the chunks and of the rows in
  // them.  A token that the step submitted before samples for a sequence need
  // not be known (Sequence::sampled_as).  `out` and its tokens live until Wait;
  // all else has been read on return.  An error is the device's and permanent.
  // REQUIRES: plan.num_rows <= max_rows; samples.size() == plan.num_wanted;
  // fewer than max_in_flight() steps are not waited for.
  absl::Status Submit(const BatchPlan& plan, std::span<const SampleRow> samples,
                      std::vector<SampledToken>* out);
  // Returns when the step submitted longest ago has ended.
  absl::Status Wait() { return backend_->Wait(); }

  int max_in_flight() const { return backend_->max_in_flight(); }
  const ModelConfig& config() const { return model_.config; }

 private:
  // Logits that exist at a time; more wanted rows go through the head in turns.
  static constexpr int kMaxLogitRows = 64;

  void SetTables(const BatchPlan& plan);
  void AppendTokens(const Sequence& sequence, int num_rows);
  void RunLayer(int layer);
  // Queues a layer for the rows of `all`; those in q_rows, `kept`, go on.
  void QueueLayer(int layer, const Step& all, const Step& kept,
                  std::span<const int32_t> q_rows,
                  std::span<const int32_t> kv_rows);
  void QueueHead(std::span<const int32_t> wanted,
                 std::span<const SampleRow> samples, SampledToken* out);

  const PackedModel model_;
  Backend* const backend_;
  const int max_rows_;

  // Backend memory.
  float* x_;         // [max_rows, hidden], the residual stream
  float* gathered_;  // [max_rows, hidden], x of the rows kept
  float* q_;         // [max_rows, num_heads * head_dim]
  float* attended_;  // [max_rows, num_heads * head_dim]
  float* hidden_;    // [max_rows, intermediate]
  float* logits_;    // [kMaxLogitRows, vocab]

  // Of the step that is submitted; read by the backend until it is.
  std::vector<int32_t> tokens_;
  std::vector<int32_t> sampled_;      // EmbedArgs::sampled
  std::vector<int32_t> strategy_of_;  // by chunk
  std::vector<int32_t> slot_of_;      // [strategies, num_layers]
  std::vector<RowSet>
      row_sets_;  // [num_layers + 1], one more after each layer where rows end
  size_t active_ = 0;                          // index of the present one
  std::vector<std::vector<int32_t>> q_rows_;   // by layer
  std::vector<std::vector<int32_t>> kv_rows_;  // by layer
  std::vector<int32_t> wanted_rows_;
};

}  // namespace strata

#endif  // CORE_TRANSFORMER_H_
