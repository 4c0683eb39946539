#ifndef CORE_MODEL_MATRIX_MERGER_H_
#define CORE_MODEL_MATRIX_MERGER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/checkpoint.h"
#include "kernels/dtype.h"

namespace strata {

// Writes `values` as elements of `type`, rounded to nearest; of Q8_0 blocks the
// largest magnitude becomes 127.  What F16 cannot hold becomes its largest
// number, as one infinity would spoil all outputs.
// REQUIRES: type is F32, F16, BF16 or Q8_0, values.size() % BlockElements(type)
// == 0, all values finite.
void EncodeWeights(DType type, std::span<const float> values, std::byte* out);

// Adds updates to matrices, one at a time: it holds one merged matrix.
//
// Owns its buffers.  One thread calls it; the work is done by `num_threads`.
class MatrixMerger {
 public:
  explicit MatrixMerger(int num_threads) : num_threads_(num_threads) {}

  // base + update.scale * b * a in f32, stored as update.merged_type in the
  // model's own order of rows, split as `base` is.  The view is good until the
  // next call. REQUIRES: update.is_present() and fits `base`.
  WeightView Merge(const WeightView& base, const LowRankUpdate& update);

 private:
  const int num_threads_;
  std::vector<std::byte> merged_;
};

}  // namespace strata

#endif  // CORE_MODEL_MATRIX_MERGER_H_
