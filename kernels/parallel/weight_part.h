#ifndef KERNELS_PARALLEL_WEIGHT_PART_H_
#define KERNELS_PARALLEL_WEIGHT_PART_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/dtype.h"

namespace strata {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// The part of `count` outputs or inputs that `rank` has: whole units of `unit`
// but for the end of count, as many for each rank as can be.
Range RangeOfRank(int64_t count, int unit, int rank, int num_ranks);

// The shape of what a rank has of a weight, by view.split; without data.
WeightView ShapeOfPart(const WeightView& view, int rank, int num_ranks);

// What a rank has of a weight, by view.split.
//
// Owns its bytes where they do not lie together in the file; else they are the
// view's.
class WeightPart {
 public:
  // REQUIRES: each rank has a unit; no range of inputs begins or ends within
  // a block of the view's type, no range of outputs within a head that is
  // interleaved.
  WeightPart(const WeightView& view, int rank, int num_ranks);
  WeightPart(const WeightPart&) = delete;
  WeightPart& operator=(const WeightPart&) = delete;

  const WeightView& view() const { return part_; }

 private:
  void CopyCols(const WeightView& view, int64_t first);

  WeightView part_;
  std::vector<std::byte> bytes_;
};

}  // namespace strata

#endif  // KERNELS_PARALLEL_WEIGHT_PART_H_
