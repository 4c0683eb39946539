#ifndef TESTS_KERNELS_CUDA_APPEND_PROBLEM_H_
#define TESTS_KERNELS_CUDA_APPEND_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cuda/kv_page.h"
#include "kernels/cuda/ops.h"
#include "kernels/fp8.h"
#include "tests/kernels/cuda/least_scale.h"
#include "tests/testing/device_array.h"
#include "tests/testing/near.h"

namespace strata {

struct AppendRow {
  int position = 0;  // -1: padding
  int strategy = 0;
  bool leads = true;
  bool continues = false;  // the sequence of the row before
};

struct AppendShape {
  int head_dim = 64;
  int q_heads = 6;
  int kv_heads = 2;
  int page_tokens = 16;
  bool q_norm = true;
  bool k_norm = true;
  std::vector<AppendRow> rows = {};
  // K and V beside Q in each row, or apart and of the rows that lead alone.
  bool is_apart = false;
  // What stands in all of K and V in place of random numbers.
  std::optional<float> all = std::nullopt;
  // What stands in V of head 0 of the first row, at channel 1.
  std::optional<float> one = std::nullopt;
};

// One call's tensors on the host, and what it writes: rows of q and of the slab
// by their place, in double.
class AppendProblem {
 public:
  explicit AppendProblem(const AppendShape& shape)
      : shape_(shape),
        q_norm_(RandomFloats(shape.head_dim)),
        k_norm_(RandomFloats(shape.head_dim)) {
    const int dim = shape.head_dim;
    for (int i = 0; i < dim / 2; ++i) {
      inv_freq_.push_back(std::pow(10000.0f, -2.0f * i / dim));
    }
    int32_t page = kPages;
    for (size_t r = 0; r < shape.rows.size(); ++r) {
      const AppendRow& row = shape.rows[r];
      const bool padding = row.position < 0;
      positions_.push_back(row.position);
      strategies_.push_back(padding ? 1 << 29 : row.strategy);
      const bool is_packed = shape.is_apart && row.leads;
      kv_rows_.push_back(is_packed ? num_kv_++ : row.leads ? int(r) : -1);
      if (row.continues) {
        tables_.push_back(tables_.back());
        strides_.push_back(strides_.back());
      } else {
        tables_.push_back(padding ? 1 << 29 : pages_.size());
        strides_.push_back(kBlocks + r % 3);
        pages_.resize(pages_.size() + 3 * strides_[r], 0);
      }
      for (int s = 0; s < 3 && !padding; ++s) {
        int32_t& entry = pages_[tables_[r] + s * strides_[r] +
                                row.position / shape.page_tokens];
        if (entry == 0) entry = --page;
      }
    }
    MakeInput();
    for (size_t r = 0; r < shape.rows.size(); ++r) {
      if (shape.rows[r].position >= 0) ExpectRow(r);
    }
  }

  void Run(cuda::KvFormat format) const {
    const int dim = shape_.head_dim;
    const int64_t page_bytes =
        KvPageBytes(format, shape_.kv_heads, shape_.page_tokens, dim);
    const int q_width = shape_.q_heads * dim;
    const int kv_width = 2 * shape_.kv_heads * dim;
    const DeviceArray<float> qkv(qkv_), kv(PackedKv()), q_norm(q_norm_),
        k_norm(k_norm_), inv_freq(inv_freq_);
    const DeviceArray<int32_t> kv_rows(kv_rows_), positions(positions_),
        strategies(strategies_), strides(strides_), slot_of(SlotOf()),
        pages(pages_);
    const DeviceArray<int64_t> tables(tables_);
    const DeviceArray<unsigned char> slab(kPages * page_bytes);
    const DeviceArray<Bf16> q(shape_.rows.size() * shape_.q_heads * dim);
    q.FillWithNan();
    slab.FillWithNan();
    const cuda::RopeAppendArgs args = {
        .q_in = qkv.get(),
        .q_stride = q_width + kv_width,
        .kv_in = shape_.is_apart ? kv.get() : qkv.get() + q_width,
        .kv_stride = shape_.is_apart ? kv_width : q_width + kv_width,
        .kv_rows = kv_rows.get(),
        .step = {.rows = static_cast<int>(shape_.rows.size()),
                 .positions = positions.get(),
                 .strategies = strategies.get(),
                 .tables = tables.get(),
                 .table_strides = strides.get(),
                 .slot_of = slot_of.get(),
                 .pages = pages.get(),
                 .layers = kLayers},
        .pages = {.data = slab.get(),
                  .kv_heads = shape_.kv_heads,
                  .page_tokens = shape_.page_tokens,
                  .head_dim = dim,
                  .format = format,
                  .page_bytes = page_bytes},
        .layer = kLayer,
        .q_heads = shape_.q_heads,
        .q_norm = shape_.q_norm ? q_norm.get() : nullptr,
        .k_norm = shape_.k_norm ? k_norm.get() : nullptr,
        .eps = kEps,
        .inv_freq = inv_freq.get(),
        .q = q.get()};
    EXPECT_EQ(cuda::RopeAppend(args, nullptr), cudaSuccess);
    ExpectQ(q.ToHost());
    std::vector<unsigned char> bytes = slab.ToHost();
    for (const auto& [at, want] : want_slab_) {
      unsigned char* page = &bytes[at / PageRows() * page_bytes];
      if (format == cuda::KvFormat::kFp8) {
        ExpectFp8(page, at % PageRows(), want);
      } else {
        ExpectBf16(page, at % PageRows(), want);
      }
    }
    EXPECT_EQ(std::ranges::count(bytes, 0xff), std::ssize(bytes))
        << "bytes that have no business to change";
  }

 private:
  static constexpr int kLayers = 3, kLayer = 2, kBlocks = 40, kPages = 100;
  static constexpr float kEps = 1e-3f;
  static const std::vector<int32_t>& SlotOf() {
    static const std::vector<int32_t> slot_of = {0, 1, 2,   //
                                                 0, 1, 1};  // [., kLayers]
    return slot_of;
  }

  std::vector<float> RandomFloats(size_t count) {
    std::vector<float> out(count);
    for (float& v : out)
      v = std::uniform_real_distribution(-2.0f, 2.0f)(random_);
    return out;
  }

  void MakeInput() {
    const int dim = shape_.head_dim;
    const int heads = shape_.q_heads + 2 * shape_.kv_heads;
    qkv_ = RandomFloats(shape_.rows.size() * heads * dim);
    for (size_t i = 0; i < qkv_.size(); ++i) {
      const bool is_q = static_cast<int>(i / dim % heads) < shape_.q_heads;
      if (shape_.all.has_value() && !is_q) qkv_[i] = *shape_.all;
    }
    if (shape_.one.has_value()) {
      qkv_[(shape_.q_heads + shape_.kv_heads) * dim + 1] = *shape_.one;
    }
  }

  // Rows of head_dim numbers in a page: [2 (K, V), kv_heads, page_tokens].
  int PageRows() const { return 2 * shape_.kv_heads * shape_.page_tokens; }

  // K and V of the rows that lead.
  std::vector<float> PackedKv() const {
    const int64_t q_width = shape_.q_heads * shape_.head_dim;
    const int64_t width = q_width + 2 * shape_.kv_heads * shape_.head_dim;
    std::vector<float> kv;
    for (size_t r = 0; r < shape_.rows.size(); ++r) {
      if (!shape_.rows[r].leads) continue;
      kv.insert(kv.end(), qkv_.begin() + r * width + q_width,
                qkv_.begin() + (r + 1) * width);
    }
    return kv;
  }

  std::vector<double> Normalize(const float* x, const float* weight) const {
    const int dim = shape_.head_dim;
    double sum = 0;
    for (int i = 0; i < dim; ++i) sum += double{x[i]} * x[i];
    std::vector<double> y(dim);
    for (int i = 0; i < dim; ++i) {
      y[i] = x[i] / std::sqrt(sum / dim + kEps) * weight[i];
    }
    return y;
  }

  std::vector<double> Rotate(const std::vector<double>& x, int position) const {
    const int half = shape_.head_dim / 2;
    std::vector<double> y(x.size());
    for (int i = 0; i < half; ++i) {
      const double angle = static_cast<float>(position) * inv_freq_[i];
      const double cos = std::cos(angle), sin = std::sin(angle);
      y[i] = x[i] * cos - x[i + half] * sin;
      y[i + half] = x[i + half] * cos + x[i] * sin;
    }
    return y;
  }

  void ExpectRow(int r) {
    const int dim = shape_.head_dim, position = shape_.rows[r].position;
    const int slot = SlotOf()[shape_.rows[r].strategy * kLayers + kLayer];
    const int64_t page =
        pages_[tables_[r] + slot * strides_[r] + position / shape_.page_tokens];
    const int heads = shape_.q_heads + 2 * shape_.kv_heads;
    for (int h = 0; h < heads; ++h) {
      const float* x = &qkv_[(r * heads + h) * dim];
      std::vector<double> y(x, x + dim);
      const bool is_q = h < shape_.q_heads;
      const bool is_v = h >= shape_.q_heads + shape_.kv_heads;
      if (is_q && shape_.q_norm) y = Normalize(x, q_norm_.data());
      if (!is_q && !is_v && shape_.k_norm) y = Normalize(x, k_norm_.data());
      if (!is_v) y = Rotate(y, position);
      if (!is_q && !shape_.rows[r].leads) continue;
      const int kv_head = (h - shape_.q_heads) % shape_.kv_heads;
      const int64_t at = is_q
                             ? int64_t{r} * shape_.q_heads + h
                             : ((page * 2 + is_v) * shape_.kv_heads + kv_head) *
                                       shape_.page_tokens +
                                   position % shape_.page_tokens;
      (is_q ? want_q_ : want_slab_)[at] =
          std::vector<float>(y.begin(), y.end());
    }
  }

  static constexpr float kAbs = 1e-5f, kRel = 4e-3f;

  // All that is not in want_q_ still has the bits of before.
  void ExpectQ(const std::vector<Bf16>& got) const {
    const int dim = shape_.head_dim;
    for (size_t at = 0; at < got.size() / dim; ++at) {
      const auto row = std::span(got).subspan(at * dim, dim);
      const auto found = want_q_.find(at);
      if (found != want_q_.end()) {
        EXPECT_TRUE(AllNear(Floats(row), found->second, kAbs, kRel)) << "q";
      } else {
        EXPECT_EQ(std::ranges::count(row, Bf16{0xffff}), dim) << "q";
      }
    }
  }
  static std::vector<float> Floats(std::span<const Bf16> row) {
    std::vector<float> floats;
    for (Bf16 v : row) floats.push_back(ToFloat(v));
    return floats;
  }

  // These make the bytes those of before.
  void ExpectBf16(unsigned char* page, int64_t row,
                  const std::vector<float>& want) const {
    const int dim = shape_.head_dim;
    unsigned char* at = page + row * dim * 2;
    const std::span<const Bf16> got(reinterpret_cast<const Bf16*>(at), dim);
    EXPECT_TRUE(AllNear(Floats(got), want, kAbs, kRel));
    std::fill_n(at, dim * 2, 0xff);
  }

  // The least scale, and no fp8 number is nearer, but for rounding in f32.
  void ExpectFp8(unsigned char* page, int64_t row,
                 const std::vector<float>& want) const {
    const int dim = shape_.head_dim;
    unsigned char* at = page + row * dim;
    unsigned char& scale = page[PageRows() * dim + row];
    if (std::ranges::all_of(want, [](float v) { return std::isfinite(v); })) {
      float max = 0;
      for (float v : want) max = std::max(max, std::abs(v));
      EXPECT_GE(scale, LeastScale(max * 0.9999f));
      EXPECT_LE(scale, LeastScale(max * 1.0001f));
      for (int d = 0; d < dim; ++d) {
        const float unit = std::ldexp(1.0f, scale - 127);
        const float got = ToFloat(Fp8{at[d]}) * unit;
        const float nearest = ToFloat(ToFp8(want[d] / unit)) * unit;
        EXPECT_TRUE(std::abs(got - want[d]) <=
                    std::abs(nearest - want[d]) + 1e-4f * max)
            << got << " for " << want[d] << " of scale " << int{scale};
      }
    } else {
      EXPECT_EQ(scale, 255);
      EXPECT_EQ(std::count(at, at + dim, 0), dim);
    }
    std::fill_n(at, dim, 0xff);
    scale = 0xff;
  }

  const AppendShape shape_;
  std::mt19937_64 random_{5};
  int num_kv_ = 0;  // of PackedKv
  std::vector<float> q_norm_, k_norm_, inv_freq_, qkv_;
  std::vector<int32_t> positions_, strategies_, kv_rows_, strides_, pages_;
  std::vector<int64_t> tables_;
  // By place in [rows, q_heads] and in [kPages, PageRows()].
  std::map<int64_t, std::vector<float>> want_q_, want_slab_;
};

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_APPEND_PROBLEM_H_
