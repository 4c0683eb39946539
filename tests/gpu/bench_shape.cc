#include "tests/gpu/bench_shape.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/bf16.h"

namespace strata {
namespace {

std::vector<float> InvFreq(int head_dim, float base) {
  std::vector<float> inv_freq(head_dim / 2);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    inv_freq[i] = std::pow(base, -2.0f * static_cast<float>(i) / head_dim);
  }
  return inv_freq;
}

// Parameters of a layer's matrices but K and V.
double LayerParameters(const ModelConfig& c) {
  return double{1} * c.hidden_size *
         (2.0 * c.num_heads * c.head_dim + 3.0 * c.intermediate_size);
}

double KvParameters(const ModelConfig& c) {
  return 2.0 * c.hidden_size * c.num_kv_heads * c.head_dim;
}

}  // namespace

BenchShape Qwen3Shape() {
  return {.config = {.architecture = "qwen3",
                     .num_layers = 36,
                     .hidden_size = 4096,
                     .intermediate_size = 12288,
                     .num_heads = 32,
                     .num_kv_heads = 8,
                     .head_dim = 128,
                     .vocab_size = 151936,
                     .max_positions = 40960,
                     .rms_norm_eps = 1e-6f,
                     .rope_inv_freq = InvFreq(128, 1e6f)},
          .max_pages = int64_t{1} << 30,
          .chunk_rows = 2048,
          .max_batch = 256,
          .copy_bytes = int64_t{4} << 30,
          .rotated_bytes = int64_t{512} << 20,
          .repeats = 12,
          .attention_contexts = {1024, 4096, 16384, 32768},
          .attention_rows = {1, 4, 8, 16, 32, 64},
          .product_rows = {1, 2, 4, 8, 16, 32, 64, 2048},
          .contexts = {256, 2048, 8192, 16384, 32768},
          .batches = {1, 4, 16},
          .prompts = {2048, 8192, 16384, 32768},
          .strategies = {"full", "every=2", "every=4", "every=8"}};
}

BenchShape TinyShape() {
  return {.config = {.architecture = "qwen3",
                     .num_layers = 4,
                     .hidden_size = 64,
                     .intermediate_size = 96,
                     .num_heads = 4,
                     .num_kv_heads = 2,
                     .head_dim = 32,
                     .vocab_size = 160,
                     .max_positions = 64,
                     .rms_norm_eps = 1e-6f,
                     .rope_inv_freq = InvFreq(32, 1e4f)},
          .max_pages = 48,
          .chunk_rows = 16,
          .max_batch = 6,
          .copy_bytes = 1 << 20,
          .rotated_bytes = 1 << 14,
          .repeats = 1,
          .attention_contexts = {33},
          .attention_rows = {1, 3},
          .product_rows = {1, 5, 17},
          .contexts = {33},
          .batches = {1, 2},
          .prompts = {33},
          .strategies = {"full", "every=4"}};
}

std::vector<std::byte> RandomBf16(int64_t count, float limit) {
  std::mt19937_64 random(1);
  std::vector<Bf16> numbers(count);
  // A draw is four numbers of 16 bits.
  for (int64_t i = 0; i < count; i += 4) {
    uint64_t bits = random();
    for (int64_t j = i; j < std::min(i + 4, count); ++j, bits >>= 16) {
      numbers[j] =
          ToBf16(limit * (static_cast<float>(bits & 0xffff) / 32768.0f - 1.0f));
    }
  }
  std::vector<std::byte> bytes(count * sizeof(Bf16));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

RandomCheckpoint::RandomCheckpoint(const ModelConfig& c) {
  const int64_t q = int64_t{c.num_heads} * c.head_dim;
  const int64_t kv = int64_t{c.num_kv_heads} * c.head_dim;
  const int64_t hidden = c.hidden_size;
  const int64_t rows =
      std::max<int64_t>({q, c.intermediate_size, c.vocab_size});
  // Products of normed inputs get a deviation of about 1.
  random_ = RandomBf16(rows * hidden, std::sqrt(3.0f / hidden));
  ones_.assign(std::max<int64_t>(hidden, c.head_dim), 1.0f);
  checkpoint_.config = c;
  checkpoint_.embedding = checkpoint_.head = Matrix(c.vocab_size, hidden);
  checkpoint_.final_norm = Ones(hidden);
  const LayerWeights layer = {.attention_norm = Ones(hidden),
                              .wq = Matrix(q, hidden),
                              .wk = Matrix(kv, hidden),
                              .wv = Matrix(kv, hidden),
                              .wo = Matrix(hidden, q),
                              .bq = {},
                              .bk = {},
                              .bv = {},
                              .bo = {},
                              .q_norm = Ones(c.head_dim),
                              .k_norm = Ones(c.head_dim),
                              .mlp_norm = Ones(hidden),
                              .gate = Matrix(c.intermediate_size, hidden),
                              .up = Matrix(c.intermediate_size, hidden),
                              .down = Matrix(hidden, c.intermediate_size)};
  checkpoint_.layers.assign(c.num_layers, layer);
}

WeightView RandomCheckpoint::Matrix(int64_t rows, int64_t cols) const {
  return {
      .data = random_.data(), .type = DType::kBF16, .rows = rows, .cols = cols};
}

WeightView RandomCheckpoint::Ones(int64_t count) const {
  return {.data = reinterpret_cast<const std::byte*>(ones_.data()),
          .type = DType::kF32,
          .rows = 1,
          .cols = count};
}

int64_t LayerKvBytes(const ModelConfig& c) {
  return int64_t{2} * c.num_kv_heads * c.head_dim *
         static_cast<int64_t>(sizeof(Bf16));
}

double AttentionFlops(const ModelConfig& c, double num_keys) {
  return 4.0 * c.num_heads * c.head_dim * num_keys;
}

double PrefillFlops(const ModelConfig& c, int tokens, int num_leaders,
                    int last_leader) {
  const double keys = 0.5 * tokens * (tokens + 1.0);
  return last_leader *
             (2.0 * tokens * LayerParameters(c) + AttentionFlops(c, keys)) +
         num_leaders * 2.0 * tokens * KvParameters(c);
}

}  // namespace strata
