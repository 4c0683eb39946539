#include "kernels/cpu/bf16_in_12.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "kernels/bf16.h"

namespace strata::cpu {
namespace {

constexpr int kTableSize = 16;

uint16_t BitsAt(const std::byte* bf16_tile, int64_t i) {
  uint16_t bits;
  std::memcpy(&bits, bf16_tile + i * 2, 2);
  // Minus zero adds what zero adds.
  return bits == 0x8000 ? 0 : bits;
}

int64_t NumWeights(int64_t cols) { return (cols + 1) / 2 * 2 * kTile; }

// Which upper bytes a tile can have, and their codes.
class UpperBytes {
 public:
  UpperBytes(const std::byte* bf16_tile, int64_t cols) {
    const int64_t n = NumWeights(cols);
    for (int64_t i = 0; i < n; ++i) ++counts_[BitsAt(bf16_tile, i) >> 8];
    // Code 0 is that of the weights left out, so 0 is always there.
    std::array<uint8_t, 256> order;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin() + 1, order.end(), [&](uint8_t a, uint8_t b) {
      return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
    });
    codes_.fill(-1);
    for (int i = 0; i < kTableSize; ++i) codes_[order[i]] = i;
    std::copy_n(order.begin(), kTableSize, table_.begin());
  }

  const std::array<uint8_t, kTableSize>& table() const { return table_; }
  int code(uint8_t upper) const { return codes_[upper]; }  // -1: left out
  int64_t num_left_out() const {
    int64_t sum = 0;
    for (int i = 0; i < 256; ++i) sum += codes_[i] < 0 ? counts_[i] : 0;
    return sum;
  }

 private:
  std::array<int64_t, 256> counts_ = {};
  std::array<int, 256> codes_;
  std::array<uint8_t, kTableSize> table_;
};

}  // namespace

std::vector<LeftOut> PackIn12(const std::byte* bf16_tile, int64_t cols,
                              std::byte* tile) {
  const UpperBytes upper(bf16_tile, cols);
  std::memset(tile, 0, In12TileBytes(cols));
  std::memcpy(tile, upper.table().data(), kTableSize);
  std::vector<LeftOut> left_out;
  std::byte* step = tile + kIn12TableBytes;
  for (int64_t i = 0; i < NumWeights(cols); ++i) {
    const int in_step = static_cast<int>(i % kIn12LowerBytes);
    if (i > 0 && in_step == 0) step += kIn12StepBytes;
    const uint16_t bits = BitsAt(bf16_tile, i);
    const int code = upper.code(bits >> 8);
    if (code < 0) {
      left_out.push_back({static_cast<int32_t>(i / kIn12LowerBytes * 2 + i % 2),
                          in_step / 2, ToFloat(static_cast<Bf16>(bits))});
      continue;
    }
    const int place = PlaceIn12(in_step);
    step[place] = static_cast<std::byte>(bits & 255);
    step[kIn12LowerBytes + place % 32] |=
        static_cast<std::byte>(place < 32 ? code : code << 4);
  }
  std::sort(
      left_out.begin(), left_out.end(), [](const LeftOut& a, const LeftOut& b) {
        return a.input != b.input ? a.input < b.input : a.output < b.output;
      });
  return left_out;
}

int64_t CountLeftOut(const std::byte* bf16_tile, int64_t cols) {
  return UpperBytes(bf16_tile, cols).num_left_out();
}

}  // namespace strata::cpu
