#ifndef CORE_PACKED_MODEL_H_
#define CORE_PACKED_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/checkpoint.h"
#include "kernels/backend.h"

namespace strata {

// Weights of one layer, packed by a backend.  Null pointers: the model has
// none.
struct PackedLayer {
  RmsNorm attention_norm;
  std::unique_ptr<Matrix> wq, wk, wv,
      wo;  // [outputs, inputs], as in LayerWeights
  const float* bq = nullptr;
  const float* bk = nullptr;
  const float* bv = nullptr;
  const float* bo = nullptr;
  RmsNorm q_norm, k_norm;
  RmsNorm mlp_norm;
  std::unique_ptr<Matrix> gate, up, down;
};

// A checkpoint in the form that a backend computes with.  The backend owns the
// float arrays, the checkpoint the embedding's rows: both outlive this.
struct PackedModel {
  ModelConfig config;
  WeightView embedding;  // [vocab, hidden]
  std::vector<PackedLayer> layers;
  RmsNorm final_norm;
  std::unique_ptr<Matrix> head;     // [vocab, hidden]
  const float* inv_freq = nullptr;  // [head_dim / 2], backend memory
};

// Bytes of backend memory that PackModel of this takes, and the embedding.
// UNIMPLEMENTED, naming the matrix: one that the backend does not take.
absl::StatusOr<int64_t> PackedModelBytes(const Checkpoint& checkpoint,
                                         const Backend& backend);

// Packs every weight, an adapter's updates merged (on `merge_threads` threads;
// one merged matrix is held at a time); `progress` is called with the number of
// layers done, from 1 to num_layers.  Memory that is not there shows in the
// backend's next Wait.  REQUIRES: PackedModelBytes of it.
PackedModel PackModel(const Checkpoint& checkpoint, Backend* backend,
                      const std::function<void(int)>& progress,
                      int merge_threads = 1);

}  // namespace strata

#endif  // CORE_PACKED_MODEL_H_
