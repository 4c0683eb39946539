#ifndef TESTS_KERNELS_CUDA_PAGED_PROBLEM_H_
#define TESTS_KERNELS_CUDA_PAGED_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
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

namespace strata {

// Consecutive rows of a step that belong to one sequence.
struct TestChunk {
  int strategy = 0;
  int first_position = 0;  // -1: padding rows
  int num_rows = 1;
};

struct TestShape {
  int head_dim = 64;
  int group = 4;
  int kv_heads = 2;
  int page_tokens = 16;
  float scale = 0.5f;
  // Keys grow by this share of the first from token to token; below 0 they
  // shrink, the first being the largest.
  float ramp = 0.0f;
  std::vector<TestChunk> chunks;
  cuda::KvFormat format = cuda::KvFormat::kBf16;
  // Of fp8: 0 or 1, what of token 0 was not finite: its keys or its values.
  std::optional<int> not_finite = std::nullopt;
};

// Attention over a paged cache: its tensors on the host, and the output that
// the formula gives in double, without pages.
//
// Every slot of every sequence has keys and values of its own.  What no token
// fills is NaN, as is page 0, to which all unused table entries point.  In fp8
// the numbers are what the pages hold, with the scale of each token and head up
// to 8 times what it needs.
class PagedTensors {
 public:
  static constexpr int kLayers = 3, kLayer = 2;

  explicit PagedTensors(const TestShape& shape)
      : shape_(shape), q_heads_(shape.group * shape.kv_heads) {
    MakePages();
    for (const TestChunk& chunk : shape.chunks) AddChunk(chunk);
  }

  std::vector<int32_t> positions, strategies, table_strides;  // [rows]
  std::vector<int64_t> tables;                                // [rows]
  std::vector<int32_t> pages;
  std::vector<Bf16> q;
  std::vector<unsigned char> slab;
  int64_t page_bytes = 0;
  std::vector<float> want;  // [rows, q_heads, head_dim]

  // Layer 2 has a slot of its own, or that of layer 1, or that of layer 0.
  static const std::vector<int32_t>& SlotOf() {
    static const std::vector<int32_t> slot_of = {0, 1, 2,   //
                                                 0, 1, 1,   //
                                                 0, 0, 0};  // [., kLayers]
    return slot_of;
  }
  static int NumSlots(int strategy) { return 3 - strategy; }

 private:
  // Of one sequence and slot, [kv_heads][tokens][head_dim].
  struct Cache {
    std::vector<float> kv[2];    // K, V
    std::vector<int> scales[2];  // [kv_heads][tokens], of fp8
  };

  float RandomBf16() {
    return ToFloat(
        ToBf16(std::uniform_real_distribution(-1.0f, 1.0f)(random_)));
  }

  int BlocksOf(const TestChunk& chunk) const {
    return chunk.first_position < 0 ? 0
                                    : (chunk.first_position + chunk.num_rows -
                                       1) / shape_.page_tokens +
                                          1;
  }

  void MakePages() {
    int count = 1;
    for (const TestChunk& chunk : shape_.chunks) {
      count += BlocksOf(chunk) * NumSlots(chunk.strategy);
    }
    free_.resize(count - 1);
    std::iota(free_.begin(), free_.end(), 1);
    std::shuffle(free_.begin(), free_.end(), random_);
    page_bytes = KvPageBytes(shape_.format, shape_.kv_heads, shape_.page_tokens,
                             shape_.head_dim);
    slab.assign(count * page_bytes, 0xff);
  }

  void AddChunk(const TestChunk& chunk) {
    if (chunk.first_position < 0) return AddPadding(chunk.num_rows);
    pages.resize(pages.size() + 3);  // the table starts anywhere
    const int64_t table = pages.size();
    const int blocks = BlocksOf(chunk), slots = NumSlots(chunk.strategy);
    const int stride = blocks + 1 + static_cast<int>(positions.size()) % 4;
    pages.resize(table + slots * stride);
    std::vector<Cache> caches;
    for (int s = 0; s < slots; ++s) {
      caches.push_back(MakeCache(chunk.first_position + chunk.num_rows));
      for (int b = 0; b < blocks; ++b) {
        pages[table + s * stride + b] = free_.back();
        free_.pop_back();
      }
      FillPages(caches.back(), &pages[table + s * stride]);
    }
    const int slot = SlotOf()[chunk.strategy * kLayers + kLayer];
    for (int r = 0; r < chunk.num_rows; ++r) {
      positions.push_back(chunk.first_position + r);
      strategies.push_back(chunk.strategy);
      tables.push_back(table);
      table_strides.push_back(stride);
      AddRow(caches[slot], chunk.first_position + r);
    }
  }

  void AddPadding(int num_rows) {
    constexpr int kGarbage = 1 << 29;
    for (int r = 0; r < num_rows; ++r) {
      positions.push_back(-1);
      strategies.push_back(kGarbage);
      tables.push_back(kGarbage);
      table_strides.push_back(kGarbage);
    }
    const int count = num_rows * q_heads_ * shape_.head_dim;
    q.resize(q.size() + count, ToBf16(NAN));
    want.resize(want.size() + count, 0.0f);
  }

  Cache MakeCache(int tokens) {
    Cache cache;
    for (int h = 0; h < shape_.kv_heads; ++h) {
      for (int t = 0; t < tokens; ++t) {
        const float gain = shape_.ramp >= 0 ? 1 + shape_.ramp * t
                                            : 1 - shape_.ramp * (tokens - t);
        for (int d = 0; d < shape_.head_dim; ++d) {
          cache.kv[0].push_back(ToFloat(ToBf16(gain * RandomBf16())));
          cache.kv[1].push_back(RandomBf16());
        }
        if (shape_.format == cuda::KvFormat::kFp8) RoundLastToken(&cache);
      }
    }
    return cache;
  }

  void RoundLastToken(Cache* cache) {
    for (int i = 0; i < 2; ++i) {
      const auto token = std::span(cache->kv[i]).last(shape_.head_dim);
      float max = 0;
      for (float v : token) max = std::max(max, std::abs(v));
      const int scale = LeastScale(max) + static_cast<int>(random_() % 4);
      cache->scales[i].push_back(scale);
      const float unit = std::ldexp(1.0f, scale - 127);
      for (float& v : token) v = ToFloat(ToFp8(v / unit)) * unit;
    }
  }

  void FillPages(const Cache& cache, const int32_t* table) {
    const bool is_fp8 = shape_.format == cuda::KvFormat::kFp8;
    const int dim = shape_.head_dim, page_tokens = shape_.page_tokens;
    const int tokens = cache.kv[0].size() / (shape_.kv_heads * dim);
    const int page_rows = shape_.kv_heads * page_tokens;  // of K, or of V
    for (size_t i = 0; i < cache.kv[0].size(); ++i) {
      const int d = i % dim, t = i / dim % tokens, h = i / dim / tokens;
      unsigned char* page = &slab[table[t / page_tokens] * page_bytes];
      for (int j = 0; j < 2; ++j) {
        const int row = j * page_rows + h * page_tokens + t % page_tokens;
        const float v = cache.kv[j][i];
        if (is_fp8) {
          const int scale = cache.scales[j][h * tokens + t];
          const Fp8 number = ToFp8(std::ldexp(v, 127 - scale));
          page[row * dim + d] = static_cast<unsigned char>(number);
          page[2 * page_rows * dim + row] = static_cast<unsigned char>(scale);
          if (t > 0 || shape_.not_finite != j) continue;
          page[row * dim + d] = 0;
          page[2 * page_rows * dim + row] = 255;
        } else {
          reinterpret_cast<Bf16*>(page)[row * dim + d] = ToBf16(v);
        }
      }
    }
  }

  void AddRow(const Cache& cache, int position) {
    const int dim = shape_.head_dim;
    const int tokens = cache.kv[0].size() / (shape_.kv_heads * dim);
    for (int h = 0; h < q_heads_; ++h) {
      std::vector<float> query(dim);
      for (float& v : query) v = RandomBf16();
      for (float v : query) q.push_back(ToBf16(v));
      const int64_t first = int64_t{h / shape_.group} * tokens * dim;
      std::vector<double> weights(position + 1);
      for (int t = 0; t <= position; ++t) {
        for (int d = 0; d < dim; ++d) {
          weights[t] += double{query[d]} * cache.kv[0][first + t * dim + d];
        }
        weights[t] *= shape_.scale;
      }
      const double max = *std::ranges::max_element(weights);
      double sum = 0;
      for (double& w : weights) sum += w = std::exp(w - max);
      for (int d = 0; d < dim; ++d) {
        double out = 0;
        for (int t = 0; t <= position; ++t) {
          out += weights[t] * cache.kv[1][first + t * dim + d];
        }
        want.push_back(static_cast<float>(out / sum));
      }
    }
  }

  const TestShape shape_;
  const int q_heads_;
  std::mt19937_64 random_{7};
  std::vector<int32_t> free_;  // page numbers in no order
};

// The same in device memory, as arguments.
class PagedProblem {
 public:
  explicit PagedProblem(const TestShape& shape) : shape_(shape), host_(shape) {}

  int rows() const { return static_cast<int>(host_.positions.size()); }
  int q_heads() const { return shape_.group * shape_.kv_heads; }
  const std::vector<float>& want() const { return host_.want; }

  cuda::AttentionArgs args() const {
    return {.q = q_.get(),
            .step = {.rows = rows(),
                     .positions = positions_.get(),
                     .strategies = strategies_.get(),
                     .tables = tables_.get(),
                     .table_strides = table_strides_.get(),
                     .slot_of = slot_of_.get(),
                     .pages = pages_.get(),
                     .layers = PagedTensors::kLayers},
            .pages = {.data = slab_.get(),
                      .kv_heads = shape_.kv_heads,
                      .page_tokens = shape_.page_tokens,
                      .head_dim = shape_.head_dim,
                      .format = shape_.format,
                      .page_bytes = host_.page_bytes},
            .layer = PagedTensors::kLayer,
            .q_heads = q_heads(),
            .scale = shape_.scale,
            .out = out_.get()};
  }

  // args().out, as floats.
  std::vector<float> Output() const {
    const std::vector<Bf16> out = out_.ToHost();
    std::vector<float> floats(out.size());
    std::ranges::transform(out, floats.begin(),
                           [](Bf16 v) { return ToFloat(v); });
    return floats;
  }
  void FillOutputWithNan() const { out_.FillWithNan(); }

 private:
  const TestShape shape_;
  const PagedTensors host_;
  const DeviceArray<int32_t> positions_{host_.positions},
      strategies_{host_.strategies}, table_strides_{host_.table_strides},
      slot_of_{PagedTensors::SlotOf()}, pages_{host_.pages};
  const DeviceArray<int64_t> tables_{host_.tables};
  const DeviceArray<Bf16> q_{host_.q}, out_{host_.q.size()};
  const DeviceArray<unsigned char> slab_{host_.slab};
};

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_PAGED_PROBLEM_H_
