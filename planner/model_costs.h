#ifndef PLANNER_MODEL_COSTS_H_
#define PLANNER_MODEL_COSTS_H_

#include <cstdint>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/sharing_strategy.h"

namespace strata {

// What the weights of a model take on one backend, packed as that packs them
// (kernels/cpu/packed_matrix.h, kernels/cuda/pack.h), and what a step computes
// with them.
struct ModelCosts {
  struct Weights {
    int64_t num_bytes = 0;
    int64_t num_elements = 0;  // of matrices: two operations each for a row
  };
  struct Layer {
    Weights kv;      // K and V projections, which followers skip
    Weights others;  // all else
  };
  std::vector<Layer> layers;
  Weights head;
  // All weights in memory.  The embedding is held beside the head, also where a
  // model has one tensor for both: the backends pack the head only.
  int64_t held_bytes = 0;
  // Of them, what each of several devices has all of (--tensor_parallel): the
  // embedding and the norms.
  int64_t whole_bytes = 0;

  // Bytes that a decode step reads of the weights if all its rows are under
  // `strategy`: all but followers' K and V projections and the embedding.
  int64_t BytesRead(const SharingStrategy& strategy) const;
};

// fp8_weights: of a GPU, the server's --weight_type=fp8.
ModelCosts CostsOf(const Checkpoint& checkpoint, bool is_gpu,
                   bool fp8_weights = false);

// What core/transformer.h allocates for the activations of steps of `max_rows`
// rows.
int64_t ActivationBytes(const ModelConfig& config, int max_rows, bool is_gpu);

}  // namespace strata

#endif  // PLANNER_MODEL_COSTS_H_
