#include "kernels/cpu/bf16_in_12.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "kernels/bf16.h"

namespace strata::cpu {
namespace {

constexpr int kTableSize = 16;
constexpr uint8_t kNone = 0xff;  // no code

using Step = std::array<uint16_t, kIn12StepWeights>;

int64_t NumSteps(int64_t cols) { return (cols + 1) / 2; }

Step StepAt(const std::byte* bf16_tile, int64_t i) {
  Step step;
  std::memcpy(&step, bf16_tile + i * int64_t{sizeof(Step)}, sizeof(Step));
  return step;
}

// Which upper bytes a tile can have, and their codes.
class UpperBytes {
 public:
  UpperBytes(const std::byte* bf16_tile, int64_t cols) {
    // Equal bytes follow one another: one count for all would wait for itself.
    std::array<std::array<int64_t, 256>, 4> counts = {};
    for (int64_t i = 0; i < NumSteps(cols); ++i) {
      const Step step = StepAt(bf16_tile, i);
      for (int j = 0; j < kIn12StepWeights; ++j) ++counts[j % 4][step[j] >> 8];
    }
    for (int i = 0; i < 256; ++i) {
      for (const auto& count : counts) counts_[i] += count[i];
    }
    // Code 0 is that of the weights left out, so 0 is always there.
    std::array<uint8_t, 256> order;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin() + 1, order.end(), [&](uint8_t a, uint8_t b) {
      return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
    });
    codes_.fill(kNone);
    for (int i = 0; i < kTableSize; ++i) codes_[order[i]] = i;
    std::copy_n(order.begin(), kTableSize, table_.begin());
  }

  const std::array<uint8_t, kTableSize>& table() const { return table_; }
  uint8_t code(uint16_t bits) const { return codes_[bits >> 8]; }
  int64_t num_left_out() const {
    int64_t sum = 0;
    for (int i = 0; i < 256; ++i) sum += codes_[i] == kNone ? counts_[i] : 0;
    return sum;
  }

 private:
  std::array<int64_t, 256> counts_ = {};
  std::array<uint8_t, 256> codes_;
  std::array<uint8_t, kTableSize> table_;
};

}  // namespace

std::optional<std::vector<LeftOut>> PackIn12(const std::byte* bf16_tile,
                                             int64_t cols, int64_t max_left_out,
                                             std::byte* tile) {
  const UpperBytes upper(bf16_tile, cols);
  if (upper.num_left_out() > max_left_out) return std::nullopt;
  std::memset(tile, 0, kIn12TableBytes);
  std::memcpy(tile, upper.table().data(), kTableSize);
  std::vector<LeftOut> left_out;
  left_out.reserve(upper.num_left_out());
  std::byte* out = tile + kIn12TableBytes;
  for (int64_t i = 0; i < NumSteps(cols); ++i) {
    const Step step = StepAt(bf16_tile, i);
    std::array<uint8_t, kIn12StepWeights> codes, lower;
    uint8_t all = 0;
    for (int j = 0; j < kIn12StepWeights; ++j) {
      const uint8_t code = upper.code(step[j]);
      all |= code;
      codes[PlaceIn12(j)] = code;
      lower[PlaceIn12(j)] = static_cast<uint8_t>(step[j]);
    }
    for (int j = 0; all == kNone && j < kIn12StepWeights; ++j) {
      // By input, then output.
      const int at = j % kTile * 2 + j / kTile, place = PlaceIn12(at);
      if (codes[place] != kNone) continue;
      left_out.push_back({static_cast<int32_t>(2 * i + at % 2), at / 2,
                          ToFloat(static_cast<Bf16>(step[at]))});
      codes[place] = lower[place] = 0;
    }
    for (int j = 0; j < kTile; ++j) codes[j] |= codes[j + kTile] << 4;
    std::memcpy(out, lower.data(), kIn12LowerBytes);
    std::memcpy(out + kIn12LowerBytes, codes.data(), kTile);
    out += kIn12StepBytes;
  }
  return left_out;
}

int64_t CountLeftOut(const std::byte* bf16_tile, int64_t cols) {
  return UpperBytes(bf16_tile, cols).num_left_out();
}

}  // namespace strata::cpu
