#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cuda/ops.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"
#include "tests/testing/near.h"

namespace strata {
namespace {

constexpr int kLayers = 3, kLayer = 2, kBlocks = 40, kPages = 100;
constexpr float kEps = 1e-3f;
const std::vector<int32_t> kSlotOf = {0, 1, 2,   //
                                      0, 1, 1};  // [strategies, kLayers]

struct TestRow {
  int position = 0;  // -1: padding
  int strategy = 0;
  bool leads = true;
};

struct TestShape {
  int head_dim = 64;
  int q_heads = 6;
  int kv_heads = 2;
  int page_tokens = 16;
  bool q_norm = true;
  bool k_norm = true;
  std::vector<TestRow> rows;
  // K and V beside Q in each row, or apart and of the rows that lead alone.
  bool is_apart = false;
};

// One call's tensors on the host, and what it writes: elements of q and of the
// slab by their place, in double.
class Problem {
 public:
  explicit Problem(const TestShape& shape)
      : shape_(shape),
        q_norm_(RandomFloats(shape.head_dim)),
        k_norm_(RandomFloats(shape.head_dim)) {
    const int dim = shape.head_dim;
    for (int i = 0; i < dim / 2; ++i) {
      inv_freq_.push_back(std::pow(10000.0f, -2.0f * i / dim));
    }
    // Each row is of a sequence of its own, whose table has a stride of its
    // own.
    int32_t page = kPages;
    for (size_t r = 0; r < shape.rows.size(); ++r) {
      const TestRow& row = shape.rows[r];
      const bool padding = row.position < 0;
      positions_.push_back(row.position);
      strategies_.push_back(padding ? 1 << 29 : row.strategy);
      const bool is_packed = shape.is_apart && row.leads;
      kv_rows_.push_back(is_packed ? num_kv_++ : row.leads ? int(r) : -1);
      tables_.push_back(padding ? 1 << 29 : pages_.size());
      strides_.push_back(kBlocks + r % 3);
      pages_.resize(pages_.size() + 3 * strides_[r], 0);
      for (int s = 0; s < 3 && !padding; ++s) {
        pages_[tables_[r] + s * strides_[r] +
               row.position / shape.page_tokens] = --page;
      }
    }
    const int heads = shape.q_heads + 2 * shape.kv_heads;
    qkv_ = RandomFloats(shape.rows.size() * heads * dim);
    for (size_t r = 0; r < shape.rows.size(); ++r) {
      if (shape.rows[r].position >= 0) ExpectRow(r);
    }
  }

  void Run() const {
    const int dim = shape_.head_dim;
    const int64_t slab_size =
        int64_t{2} * kPages * shape_.kv_heads * shape_.page_tokens * dim;
    const int q_width = shape_.q_heads * dim;
    const int kv_width = 2 * shape_.kv_heads * dim;
    const DeviceArray<float> qkv(qkv_), kv(PackedKv()), q_norm(q_norm_),
        k_norm(k_norm_), inv_freq(inv_freq_);
    const DeviceArray<int32_t> kv_rows(kv_rows_), positions(positions_),
        strategies(strategies_), strides(strides_), slot_of(kSlotOf),
        pages(pages_);
    const DeviceArray<int64_t> tables(tables_);
    const DeviceArray<Bf16> slab(slab_size),
        q(shape_.rows.size() * shape_.q_heads * dim);
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
                  .head_dim = dim},
        .layer = kLayer,
        .q_heads = shape_.q_heads,
        .q_norm = shape_.q_norm ? q_norm.get() : nullptr,
        .k_norm = shape_.k_norm ? k_norm.get() : nullptr,
        .eps = kEps,
        .inv_freq = inv_freq.get(),
        .q = q.get()};
    EXPECT_EQ(cuda::RopeAppend(args, nullptr), cudaSuccess);
    ExpectWritten("q", q.ToHost(), want_q_);
    ExpectWritten("slab", slab.ToHost(), want_slab_);
  }

 private:
  std::vector<float> RandomFloats(size_t count) {
    std::vector<float> out(count);
    for (float& v : out)
      v = std::uniform_real_distribution(-2.0f, 2.0f)(random_);
    return out;
  }

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
    const int slot = kSlotOf[shape_.rows[r].strategy * kLayers + kLayer];
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
      for (int d = 0; d < dim; ++d) {
        (is_q ? want_q_ : want_slab_)[at * dim + d] = static_cast<float>(y[d]);
      }
    }
  }

  // All that is not in `want` still has the bits of before.
  static void ExpectWritten(const char* what, const std::vector<Bf16>& got,
                            const std::map<int64_t, float>& want) {
    int64_t changed = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      changed += got[i] != Bf16{0xffff} && !want.contains(i);
    }
    EXPECT_EQ(changed, 0) << what;
    std::vector<float> got_there, want_there;
    for (const auto& [at, value] : want) {
      got_there.push_back(ToFloat(got[at]));
      want_there.push_back(value);
    }
    EXPECT_TRUE(AllNear(got_there, want_there, 1e-5f, 4e-3f)) << what;
  }

  const TestShape shape_;
  std::mt19937_64 random_{5};
  int num_kv_ = 0;  // of PackedKv
  std::vector<float> q_norm_, k_norm_, inv_freq_, qkv_;
  std::vector<int32_t> positions_, strategies_, kv_rows_, strides_, pages_;
  std::vector<int64_t> tables_;
  std::map<int64_t, float> want_q_, want_slab_;
};

void ExpectMatches(const TestShape& shape) {
  const Problem problem(shape);
  ForEachSchedule(4, [&] { problem.Run(); });
}

TEST(RopeAppendTest, RowsOfMixedStrategiesAndLeads) {
  ExpectMatches({.rows = {{.position = 0},
                          {.position = 15, .strategy = 1},
                          {.position = 16, .leads = false},
                          {.position = 333, .strategy = 1, .leads = false},
                          {.position = 500}}});
}

TEST(RopeAppendTest, KeysAndValuesApart) {
  ExpectMatches({.rows = {{.position = 3, .leads = false},
                          {.position = 15, .strategy = 1},
                          {.position = -1},
                          {.position = 333, .leads = false},
                          {.position = 500}},
                 .is_apart = true});
}

TEST(RopeAppendTest, EveryHeadDim) {
  for (int head_dim : {16, 32, 48, 64, 80, 96, 128, 240, 256}) {
    SCOPED_TRACE(head_dim);
    ExpectMatches({.head_dim = head_dim,
                   .q_heads = 3,
                   .kv_heads = 1,
                   .rows = {{.position = 37}, {.position = 5}}});
  }
}

TEST(RopeAppendTest, EveryPageSize) {
  for (int page_tokens : {4, 8, 32, 64, 128}) {
    SCOPED_TRACE(page_tokens);
    ExpectMatches({.head_dim = 16,
                   .page_tokens = page_tokens,
                   .rows = {{.position = 127}, {.position = 128}}});
  }
}

TEST(RopeAppendTest, WithoutNorms) {
  for (int norms = 0; norms < 3; ++norms) {
    SCOPED_TRACE(norms);
    ExpectMatches({.q_norm = norms == 1,
                   .k_norm = norms == 2,
                   .rows = {{.position = 100}}});
  }
}

TEST(RopeAppendTest, FarPositions) {
  ExpectMatches({.page_tokens = 128, .rows = {{.position = 5000}}});
}

TEST(RopeAppendTest, PaddingRowsWriteNothing) {
  ExpectMatches({.rows = {{.position = -1},
                          {.position = 7},
                          {.position = -1, .strategy = 1}}});
}

TEST(RopeAppendTest, NoRowsIsNoLaunch) {
  cuda::RopeAppendArgs args;
  args.pages = {.kv_heads = 1, .page_tokens = 16, .head_dim = 64};
  EXPECT_EQ(cuda::RopeAppend(args, nullptr), cudaSuccess);
}

TEST(RopeAppendTest, RefusesOtherHeadDims) {
  cuda::RopeAppendArgs args;
  for (int head_dim : {8, 72, 272}) {
    args.pages.head_dim = head_dim;
    EXPECT_EQ(cuda::RopeAppend(args, nullptr), cudaErrorInvalidValue);
  }
}

}  // namespace
}  // namespace strata
