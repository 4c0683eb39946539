#include "kernels/cpu/rope_append.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/thread_team.h"
#include "tests/testing/near.h"

namespace strata::cpu {
namespace {

constexpr int kHeadDim = 10, kQHeads = 6, kKvHeads = 2, kPageTokens = 16,
              kLayers = 2;

// Rope asks it for its rows only.
class Shape final : public Matrix {
 public:
  int64_t rows() const override { return kQHeads * kHeadDim; }
  int64_t cols() const override { return 1; }
  int64_t num_bytes() const override { return 0; }
};

std::vector<float> RandomFloats(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

// norm (if it has a weight) and rope of one head, in double after the angle.
std::vector<float> NormAndRope(const float* x, const RmsNorm& norm,
                               int position,
                               const std::vector<float>& inv_freq) {
  double squares = 0.0;
  for (int d = 0; d < kHeadDim; ++d) squares += double{x[d]} * x[d];
  const auto normed = [&](int d) {
    if (norm.weight == nullptr) return double{x[d]};
    return x[d] / std::sqrt(squares / kHeadDim + norm.eps) * norm.weight[d];
  };
  std::vector<float> y(kHeadDim);
  for (int i = 0; i < kHeadDim / 2; ++i) {
    const double angle = static_cast<float>(position) * inv_freq[i];
    const double u = normed(i), w = normed(i + kHeadDim / 2);
    y[i] = u * std::cos(angle) - w * std::sin(angle);
    y[i + kHeadDim / 2] = w * std::cos(angle) + u * std::sin(angle);
  }
  return y;
}

// Two chunks: rows 0 to 4 from position 30 under strategy 0, whose layer 1 is a
// follower; rows 5 to 24 from position 70001 under strategy 1, whose layer 1
// has slot 1.
class RopeAppendTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int kRows = 25, kBlocks = 70021 / kPageTokens + 1;

  RopeAppendTest() {
    for (int r = 0; r < kRows; ++r) {
      positions_.push_back(r < 5 ? 30 + r : 70001 + r - 5);
      chunk_of_.push_back(r < 5 ? 0 : 1);
    }
    page_tables_.assign(2, std::vector<int32_t>(kLayers * kBlocks, -1));
    page_tables_[0][1] = 7;
    page_tables_[0][2] = 5;
    for (int block = 70001 / kPageTokens; block < kBlocks; ++block) {
      page_tables_[1][kBlocks + block] = 4 - (block - 70001 / kPageTokens);
    }
    chunks_ = {{0, 5, 30, 0, page_tables_[0].data(), kBlocks},
               {5, 20, 70001, 1, page_tables_[1].data(), kBlocks}};
    step_ = {positions_, chunk_of_, chunks_, slot_of_.data(), kLayers};
    for (int i = 0; i < kHeadDim / 2; ++i)
      inv_freq_.push_back(std::pow(0.1f, 0.5f * i));
  }

  const std::vector<int32_t> slot_of_ = {0, 0, 0, 1};
  std::vector<int32_t> positions_, chunk_of_;
  std::vector<std::vector<int32_t>> page_tables_;
  std::vector<StepChunk> chunks_;
  Step step_;
  std::vector<float> inv_freq_;
};

TEST_P(RopeAppendTest, IsTheFormula) {
  const bool has_norms = GetParam();
  const std::vector<float> q_weight = RandomFloats(kHeadDim, 1),
                           k_weight = RandomFloats(kHeadDim, 2);
  // Layer 1: queries of rows 2 to 24 but 9, keys of rows 6 to 24 but 9.
  std::vector<int32_t> q_rows, kv_rows;
  for (int r = 2; r < kRows; ++r) {
    if (r != 9) q_rows.push_back(r);
    if (r != 9 && r > 5) kv_rows.push_back(r);
  }
  const int kv_dim = kKvHeads * kHeadDim, q_dim = kQHeads * kHeadDim;
  const std::vector<float> q = RandomFloats(q_rows.size() * q_dim, 3);
  const std::vector<float> k = RandomFloats(kv_rows.size() * kv_dim, 4);
  const std::vector<float> v = RandomFloats(kv_rows.size() * kv_dim, 5);
  const Shape wq;
  for (const int workers : {1, 2, 3}) {
    auto pages = KvPages::Create({.num_pages = 8,
                                  .page_tokens = kPageTokens,
                                  .kv_heads = kKvHeads,
                                  .head_dim = kHeadDim},
                                 KvType::kF32);
    ASSERT_TRUE(pages.ok());
    std::vector<float> got_q = q, got_k = k;
    QkvArgs args;
    args.layer = 1;
    args.step = &step_;
    args.q_rows = q_rows;
    args.kv_rows = kv_rows;
    args.wq = &wq;
    if (has_norms) {
      args.q_norm = {q_weight.data(), 0.3f};
      args.k_norm = {k_weight.data(), 0.6f};
    }
    args.inv_freq = inv_freq_.data();
    args.q = got_q.data();
    ThreadTeam(workers).Run([&](const Worker& worker) {
      RopeAppend(args, kHeadDim, kKvHeads, got_k.data(), v.data(), **pages,
                 worker);
    });
    for (size_t i = 0; i < q_rows.size() * kQHeads; ++i) {
      EXPECT_TRUE(
          AllNear({&got_q[i * kHeadDim], kHeadDim},
                  NormAndRope(&q[i * kHeadDim], args.q_norm,
                              positions_[q_rows[i / kQHeads]], inv_freq_),
                  1e-6f, 1e-6f))
          << "row " << q_rows[i / kQHeads] << ", head " << i % kQHeads;
    }
    double stored = 0.0, wanted = 0.0;
    for (int page = 0; page < 8; ++page) {
      for (int h = 0; h < kKvHeads; ++h) {
        const auto* tile =
            reinterpret_cast<const float*>((*pages)->Tile(page, h, 0));
        for (int i = 0; i < 2 * kPageTokens * kHeadDim; ++i)
          stored += std::abs(tile[i]);
      }
    }
    for (size_t i = 0; i < kv_rows.size() * kKvHeads; ++i) {
      const int position = positions_[kv_rows[i / kKvHeads]],
                t = position % kPageTokens;
      const std::vector<float> want =
          NormAndRope(&k[i * kHeadDim], args.k_norm, position, inv_freq_);
      const int32_t page = page_tables_[1][kBlocks + position / kPageTokens];
      const auto* keys =
          reinterpret_cast<const float*>((*pages)->Tile(page, i % kKvHeads, 0));
      const float* values = keys + kPageTokens * kHeadDim;
      std::vector<float> got(kHeadDim);
      for (int d = 0; d < kHeadDim; ++d) {
        got[d] = keys[d * kPageTokens + t];
        EXPECT_EQ(values[t * kHeadDim + d], v[i * kHeadDim + d]);
        wanted += std::abs(want[d]) + std::abs(v[i * kHeadDim + d]);
      }
      EXPECT_TRUE(AllNear(got, want, 1e-6f, 1e-6f))
          << "row " << kv_rows[i / kKvHeads];
    }
    // Nothing else was written.
    EXPECT_NEAR(stored, wanted, 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, RopeAppendTest, ::testing::Bool());

}  // namespace
}  // namespace strata::cpu
