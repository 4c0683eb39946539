#include "kernels/parallel/weight_part.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace strata {
namespace {

// A vector's elements are columns, unless it is stored as one.
bool IsByRows(const WeightView& view) {
  return view.split == Split::kOutputs && view.rows > 1;
}

}  // namespace

Range RangeOfRank(int64_t count, int unit, int rank, int num_ranks) {
  const int64_t units = (count + unit - 1) / unit;
  const auto begin_of = [&](int r) {
    return std::min(count, units * r / num_ranks * unit);
  };
  return {begin_of(rank), begin_of(rank + 1)};
}

WeightView ShapeOfPart(const WeightView& view, int rank, int num_ranks) {
  WeightView part = view;
  part.data = nullptr;
  part.split = Split::kWhole;
  if (view.split == Split::kWhole) return part;
  int64_t& count = IsByRows(view) ? part.rows : part.cols;
  const Range range = RangeOfRank(count, view.split_unit, rank, num_ranks);
  STRATA_CHECK(range.begin < range.end);
  count = range.end - range.begin;
  return part;
}

WeightPart::WeightPart(const WeightView& view, int rank, int num_ranks)
    : part_(ShapeOfPart(view, rank, num_ranks)) {
  part_.data = view.data;
  if (view.split == Split::kWhole) return;
  const int64_t first = RangeOfRank(IsByRows(view) ? view.rows : view.cols,
                                    view.split_unit, rank, num_ranks)
                            .begin;
  if (!IsByRows(view)) {
    CopyCols(view, first);
    return;
  }
  const int head_dim = view.interleaved_head_dim;
  STRATA_CHECK(head_dim == 0 ||
               (first % head_dim == 0 && part_.rows % head_dim == 0));
  part_.data += first * view.RowBytes();
}

void WeightPart::CopyCols(const WeightView& view, int64_t first) {
  const int block = BlockElements(view.type);
  STRATA_CHECK(first % block == 0 && part_.cols % block == 0);
  const int64_t row_bytes = part_.RowBytes();
  bytes_.resize(part_.NumBytes());
  const std::byte* from = view.data + first / block * BlockBytes(view.type);
  for (int64_t row = 0; row < view.rows; ++row) {
    std::memcpy(bytes_.data() + row * row_bytes, from + row * view.RowBytes(),
                row_bytes);
  }
  part_.data = bytes_.data();
}

}  // namespace strata
