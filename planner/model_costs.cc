#include "planner/model_costs.h"

#include <initializer_list>

#include "core/transformer.h"
#include "kernels/cpu/packed_matrix.h"
#include "kernels/cuda/pack.h"

namespace strata {
namespace {

// How a device keeps matrices.
struct Packing {
  bool is_gpu;
  bool fp8_weights;
};

int64_t MatrixBytes(const WeightView& view, const Packing& packing) {
  if (!packing.is_gpu) return cpu::PackedBytes(view);
  return cuda::PackedBytes(view,
                           cuda::FormatOf(view.type, packing.fp8_weights));
}

// As Backend::NewFloats.
int64_t FloatBytes(int64_t count, bool is_gpu) {
  if (is_gpu) count += count / 2 + 4;
  return count * int64_t{sizeof(float)};
}

ModelCosts::Weights Sum(std::initializer_list<const WeightView*> matrices,
                        std::initializer_list<const WeightView*> vectors,
                        const Packing& packing) {
  ModelCosts::Weights sum;
  for (const WeightView* matrix : matrices) {
    sum.num_bytes += MatrixBytes(*matrix, packing);
    sum.num_elements += matrix->rows * matrix->cols;
  }
  for (const WeightView* vector : vectors) {
    if (vector->rows == 0) continue;  // the model has none
    sum.num_bytes += FloatBytes(vector->rows * vector->cols, packing.is_gpu);
  }
  return sum;
}

}  // namespace

int64_t ModelCosts::BytesRead(const SharingStrategy& strategy) const {
  int64_t num_bytes = head.num_bytes;
  for (int layer = 0; layer < strategy.num_layers(); ++layer) {
    num_bytes += layers[layer].others.num_bytes;
    if (strategy.is_leader(layer)) num_bytes += layers[layer].kv.num_bytes;
  }
  return num_bytes;
}

ModelCosts CostsOf(const Checkpoint& checkpoint, bool is_gpu,
                   bool fp8_weights) {
  const Packing packing = {is_gpu, fp8_weights};
  ModelCosts costs;
  costs.head = Sum({&checkpoint.head}, {&checkpoint.final_norm}, packing);
  costs.held_bytes = costs.head.num_bytes;
  // The CPU reads the embedding's rows from the mapped file.
  const int64_t embedding =
      is_gpu ? MatrixBytes(checkpoint.embedding,
                           {.is_gpu = true, .fp8_weights = false})
             : checkpoint.embedding.NumBytes();
  costs.held_bytes += embedding;
  costs.whole_bytes =
      embedding + Sum({}, {&checkpoint.final_norm}, packing).num_bytes;
  for (const LayerWeights& l : checkpoint.layers) {
    const ModelCosts::Layer layer = {
        .kv = Sum({&l.wk, &l.wv}, {&l.bk, &l.bv, &l.k_norm}, packing),
        .others = Sum({&l.wq, &l.wo, &l.gate, &l.up, &l.down},
                      {&l.attention_norm, &l.mlp_norm, &l.bq, &l.bo, &l.q_norm},
                      packing)};
    costs.whole_bytes +=
        Sum({}, {&l.attention_norm, &l.mlp_norm, &l.q_norm, &l.k_norm, &l.bo},
            packing)
            .num_bytes;
    costs.held_bytes += layer.kv.num_bytes + layer.others.num_bytes;
    costs.layers.push_back(layer);
  }
  return costs;
}

int64_t ActivationBytes(const ModelConfig& config, int max_rows, bool is_gpu) {
  const int64_t num_bytes = Transformer::ActivationBytes(config, max_rows);
  if (!is_gpu) return num_bytes;
  constexpr int kNumBuffers = 6;
  const int64_t num_floats = num_bytes / int64_t{sizeof(float)};
  return FloatBytes(num_floats, is_gpu) +
         (kNumBuffers - 1) * FloatBytes(0, is_gpu);
}

}  // namespace strata
