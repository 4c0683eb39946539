#include "kernels/cuda/pack.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/dequantize.h"

namespace strata::cuda {
namespace {

bool IsKept(DType type) { return type == DType::kQ8_0 || type == DType::kQ4_0; }

// The quants of a row's blocks and their scales, apart.  The nibbles of a block
// are already as DeviceMatrix has them.
void SplitBlocks(const WeightView& view, int64_t row, std::byte* data,
                 F16* scales) {
  const int block_bytes = BlockBytes(view.type);
  const int quant_bytes = block_bytes - int{sizeof(F16)};
  const std::byte* block = view.data + view.StoredRow(row) * view.RowBytes();
  for (int64_t b = 0; b < view.cols / 32; ++b, block += block_bytes) {
    std::memcpy(scales + b, block, sizeof(F16));
    std::memcpy(data + b * quant_bytes, block + sizeof(F16), quant_bytes);
  }
}

void RoundRow(const WeightView& view, int64_t row, std::vector<float>& values,
              std::byte* data) {
  cpu::DequantizeRow(view, row, values.data());
  for (int64_t c = 0; c < view.cols; ++c) {
    const Bf16 v = ToBf16(values[c]);
    std::memcpy(data + c * sizeof(v), &v, sizeof(v));
  }
}

}  // namespace

PackedFormat PackedFormatOf(const WeightView& view) {
  if (view.type == DType::kQ8_0) return {view.type, view.cols, view.cols / 32};
  if (view.type == DType::kQ4_0) {
    return {view.type, view.cols / 2, view.cols / 32};
  }
  return {DType::kBF16, view.cols * int64_t{sizeof(Bf16)}, 0};
}

int64_t PackedBytes(const WeightView& view) {
  const PackedFormat format = PackedFormatOf(view);
  return view.rows *
         (format.row_bytes + format.row_scales * int64_t{sizeof(F16)});
}

void PackRows(const WeightView& view, int64_t first, int64_t count,
              std::byte* data, F16* scales) {
  STRATA_CHECK(first >= 0 && count >= 0 && first + count <= view.rows);
  const PackedFormat format = PackedFormatOf(view);
  std::vector<float> values(IsKept(view.type) ? 0 : view.cols);
  for (int64_t i = 0; i < count; ++i) {
    std::byte* row = data + i * format.row_bytes;
    if (IsKept(view.type)) {
      SplitBlocks(view, first + i, row, scales + i * format.row_scales);
    } else {
      RoundRow(view, first + i, values, row);
    }
  }
}

}  // namespace strata::cuda
