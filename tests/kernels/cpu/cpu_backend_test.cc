#include "kernels/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/bf16.h"
#include "tests/kernels/cpu/weights.h"

namespace strata::cpu {
namespace {

constexpr uint64_t kSeed = 7;
constexpr int kDim = 64, kHeadDim = 32, kQHeads = 4, kKvHeads = 2;
constexpr int kQDim = kQHeads * kHeadDim, kKvDim = kKvHeads * kHeadDim;
constexpr int kHidden = 96, kVocab = 100;
constexpr int kPageTokens = 4, kNumPages = 16;

// A layer and a head over random weights, every operation once.
class TinyModel {
 public:
  TinyModel(const CpuOptions& options, DType type) : backend_(options) {
    std::mt19937_64 random(kSeed);
    const auto pack = [&](int64_t rows, int64_t cols) {
      weights_.push_back(
          std::make_unique<TestWeights>(type, rows, cols, random));
      return backend_.Pack(weights_.back()->view);
    };
    wq_ = pack(kQDim, kDim);
    wk_ = pack(kKvDim, kDim);
    wv_ = pack(kKvDim, kDim);
    wo_ = pack(kDim, kQDim);
    gate_ = pack(kHidden, kDim);
    up_ = pack(kHidden, kDim);
    down_ = pack(kDim, kHidden);
    head_ = pack(kVocab, kDim);
    embedding_ =
        std::make_unique<TestWeights>(DType::kF32, kVocab, kDim, random);
    const std::vector<float> norm = RandomFloats(kDim, random);
    norm_ = backend_.NewFloats(
        {.data = reinterpret_cast<const std::byte*>(norm.data()),
         .type = DType::kF32,
         .rows = 1,
         .cols = kDim});
    inv_freq_ = backend_.NewFloats(kHeadDim / 2);
    for (int i = 0; i < kHeadDim / 2; ++i)
      inv_freq_[i] = std::pow(100.0f, -i / 16.0f);
    EXPECT_TRUE(backend_
                    .CreateKvPages({.num_pages = kNumPages,
                                    .page_tokens = kPageTokens,
                                    .kv_heads = kKvHeads,
                                    .head_dim = kHeadDim})
                    .ok());
  }

  // The logits of the last of `tokens`, which lie at [first_position, ...) of
  // the sequence with page_table; each chunk of tokens a step of its own.
  std::vector<float> Forward(const std::vector<int32_t>& tokens,
                             int first_position,
                             const std::vector<int32_t>& page_table,
                             int32_t* sampled) {
    const int rows = static_cast<int>(tokens.size());
    std::vector<int32_t> positions, all, chunk_of(rows, 0);
    for (int i = 0; i < rows; ++i) {
      positions.push_back(first_position + i);
      all.push_back(i);
    }
    const StepChunk chunk = {
        .first_row = 0,
        .num_rows = rows,
        .first_position = first_position,
        .strategy = 0,
        .page_table = page_table.data(),
        .blocks_stride = static_cast<int32_t>(page_table.size())};
    const int32_t slot = 0;
    const Step step = {.positions = positions,
                       .chunk_of = chunk_of,
                       .chunks = {&chunk, 1},
                       .slot_of = &slot,
                       .num_layers = 1};
    float* x = backend_.NewFloats(rows * kDim);
    float* q = backend_.NewFloats(rows * kQDim);
    float* attention = backend_.NewFloats(rows * kQDim);
    float* hidden = backend_.NewFloats(rows * kHidden);
    float* last = backend_.NewFloats(kDim);
    float* logits = backend_.NewFloats(kVocab);
    const RmsNorm norm = {norm_, 1e-5f};
    backend_.Embed({.table = embedding_->view, .tokens = tokens, .x = x});
    QkvArgs qkv;
    qkv.x = x;
    qkv.step = &step;
    qkv.q_rows = all;
    qkv.kv_rows = all;
    qkv.norm = norm;
    qkv.wq = wq_.get();
    qkv.wk = wk_.get();
    qkv.wv = wv_.get();
    qkv.inv_freq = inv_freq_;
    qkv.q = q;
    backend_.Qkv(qkv);
    backend_.Attention({.layer = 0,
                        .step = &step,
                        .q = q,
                        .out = attention,
                        .q_heads = kQHeads,
                        .scale = 0.1f});
    backend_.Linear({.x = attention,
                     .rows = rows,
                     .w = wo_.get(),
                     .y = x,
                     .accumulate = true});
    backend_.GatedMlp({.x = x,
                       .rows = rows,
                       .norm = norm,
                       .gate = gate_.get(),
                       .up = up_.get(),
                       .y = hidden});
    backend_.Linear({.x = hidden,
                     .rows = rows,
                     .w = down_.get(),
                     .y = x,
                     .accumulate = true});
    const int32_t last_row = rows - 1, first_row = 0;
    backend_.Gather(
        {.x = x, .row_ids = {&last_row, 1}, .dim = kDim, .y = last});
    backend_.Head({.x = last,
                   .row_ids = {&first_row, 1},
                   .norm = norm,
                   .w = head_.get(),
                   .logits = logits});
    EXPECT_TRUE(backend_.Submit().ok());
    EXPECT_TRUE(backend_.Wait().ok());
    const std::vector<float> result(logits, logits + kVocab);
    SampleRow sample_row;
    sample_row.temperature = 0.0f;
    SampledToken token;
    backend_.Sample({.logits = logits,
                     .vocab = kVocab,
                     .rows = {&sample_row, 1},
                     .out = &token});
    EXPECT_TRUE(backend_.Submit().ok());
    EXPECT_TRUE(backend_.Wait().ok());
    EXPECT_TRUE(token.finite);
    *sampled = token.token;
    return result;
  }

 private:
  CpuBackend backend_;
  std::vector<std::unique_ptr<TestWeights>> weights_;
  std::unique_ptr<TestWeights> embedding_;
  std::unique_ptr<Matrix> wq_, wk_, wv_, wo_, gate_, up_, down_, head_;
  float* norm_;
  float* inv_freq_;
};

TEST(CpuBackendTest, AStepGivesTheSameBitsWhateverTheThreadsAndChunks) {
  const std::vector<int32_t> tokens = {3, 99, 0, 42, 7, 8, 50, 64, 1};
  const std::vector<int32_t> pages = {5, 0, 11}, other_pages = {2, 9, 1};
  for (const DType type : kAllDTypes) {
    std::vector<float> want;
    for (const int threads : {1, 2, 3}) {
      TinyModel model({.num_threads = threads}, type);
      int32_t sampled;
      const std::vector<float> at_once =
          model.Forward(tokens, 0, pages, &sampled);
      if (threads == 1) want = at_once;
      EXPECT_EQ(std::memcmp(at_once.data(), want.data(), want.size() * 4), 0)
          << DTypeName(type) << ", threads " << threads;
      EXPECT_EQ(sampled,
                std::max_element(want.begin(), want.end()) - want.begin());
      std::vector<float> one_by_one;
      for (size_t i = 0; i < tokens.size(); ++i) {
        one_by_one = model.Forward({tokens[i]}, static_cast<int>(i),
                                   other_pages, &sampled);
      }
      EXPECT_EQ(std::memcmp(one_by_one.data(), want.data(), want.size() * 4), 0)
          << DTypeName(type) << ", one by one, threads " << threads;
    }
  }
}

TEST(CpuBackendTest, ExactModeIsCloseToTheFastOne) {
  const std::vector<int32_t> tokens = {3, 99, 0, 42, 7};
  for (const DType type : kAllDTypes) {
    int32_t sampled;
    TinyModel exact({.num_threads = 2, .exact_f32 = true}, type);
    TinyModel fast({.num_threads = 2}, type);
    const std::vector<float> want = exact.Forward(tokens, 0, {1, 2}, &sampled);
    const std::vector<float> got = fast.Forward(tokens, 0, {1, 2}, &sampled);
    double error = 0, size = 0;
    for (int i = 0; i < kVocab; ++i) {
      error += std::pow(got[i] - want[i], 2);
      size += std::pow(want[i], 2);
    }
    // int8 activations are wrong by about 1/250 of their block's largest, a few
    // times in a row.
    EXPECT_TRUE(std::sqrt(error / size) < 0.1)
        << DTypeName(type) << ": " << std::sqrt(error / size);
  }
}

TEST(CpuBackendTest, NamesItsFormats) {
  const KvLayout layout = {
      .num_pages = 3, .page_tokens = 8, .kv_heads = 2, .head_dim = 6};
  const CpuBackend fast({.num_threads = 1});
  EXPECT_EQ(fast.name(), "cpu");
  EXPECT_EQ(fast.kv_format(), "bf16");
  EXPECT_EQ(fast.PageBytes(layout), 2 * 2 * 8 * 6 * 2);
  const CpuBackend exact({.num_threads = 1, .exact_f32 = true});
  EXPECT_EQ(exact.kv_format(), "f32");
  EXPECT_EQ(exact.PageBytes(layout), 2 * 2 * 8 * 6 * 4);
}

TEST(CpuBackendTest, ConvertsFloats) {
  std::mt19937_64 random(kSeed);
  CpuBackend backend({.num_threads = 1});
  for (const DType type : kAllDTypes) {
    const TestWeights w(type, 12, 32, random, /*interleaved_head_dim=*/6);
    const float* floats = backend.NewFloats(w.view);
    for (int i = 0; i < 12 * 32; ++i) {
      ASSERT_EQ(floats[i], static_cast<float>(w.At(i / 32, i % 32)))
          << DTypeName(type);
    }
  }
  const float* zeros = backend.NewFloats(33);
  for (int i = 0; i < 33; ++i) ASSERT_EQ(zeros[i], 0.0f);
}

TEST(CpuBackendTest, NothingQueuedIsOk) {
  CpuBackend backend({.num_threads = 2});
  EXPECT_TRUE(backend.Submit().ok());
  EXPECT_TRUE(backend.Wait().ok());
}

TEST(CpuBackendTest, PacksWithoutGrowing) {
  std::mt19937_64 random(kSeed);
  CpuBackend backend({.num_threads = 2});
  for (const DType type : kAllDTypes) {
    const TestWeights w(type, 128, 96, random);
    const auto packed = backend.Pack(w.view);
    EXPECT_EQ(packed->rows(), 128);
    EXPECT_EQ(packed->cols(), 96);
    // BF16 in 12 bits, and a table of a cache line for 32 outputs.
    const int64_t want = type == DType::kBF16
                             ? w.view.NumBytes() * 3 / 4 + 128 / 32 * 64
                             : w.view.NumBytes();
    EXPECT_EQ(packed->num_bytes(), want) << DTypeName(type);
    EXPECT_EQ(packed->num_bytes(), *backend.PackedBytes(w.view));
    EXPECT_EQ(*backend.TableBytes(w.view), w.view.NumBytes());
  }
}

}  // namespace
}  // namespace strata::cpu
