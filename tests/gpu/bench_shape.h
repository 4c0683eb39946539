#ifndef TESTS_GPU_BENCH_SHAPE_H_
#define TESTS_GPU_BENCH_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace strata {

// A model's dimensions and the cases that are measured of it.
struct BenchShape {
  ModelConfig config;
  int page_tokens = 16;
  int64_t max_pages = 0;   // of the pool, where more would fit
  int chunk_rows = 0;      // of a prefill step
  int max_batch = 0;       // of "the most that fits"
  int64_t copy_bytes = 0;  // of the copy that measures bandwidth
  // Decode attention rotates over caches of this many bytes, so that the
  // device's own cache does not serve it.
  int64_t rotated_bytes = 0;
  int repeats = 0;  // of a decode step; the median counts

  std::vector<int> attention_contexts, attention_rows;
  std::vector<int> product_rows;
  std::vector<int> contexts, batches;  // of decode steps
  std::vector<int> prompts;            // of TTFT
  std::vector<std::string> strategies;
};

BenchShape Qwen3Shape();  // that of Qwen3-8B
BenchShape TinyShape();   // for the simulator

// Weights of a shape.  All matrices are the same memory, as large as the
// largest: uniform random numbers of a deviation that keeps activations small.
// The memory is this object's.
class RandomCheckpoint {
 public:
  explicit RandomCheckpoint(const ModelConfig& config);
  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  WeightView Matrix(int64_t rows, int64_t cols) const;
  WeightView Ones(int64_t count) const;

  std::vector<std::byte> random_;  // bf16
  std::vector<float> ones_;
  Checkpoint checkpoint_;
};

// `count` bf16 numbers, uniform in (-limit, limit), as bytes.
std::vector<std::byte> RandomBf16(int64_t count, float limit);

// Of K and V of one position in one layer, in bf16.
int64_t LayerKvBytes(const ModelConfig& config);
// Of queries against `num_keys` keys in all, and the values.
double AttentionFlops(const ModelConfig& config, double num_keys);
// What Transformer computes of a prompt of `tokens` where `num_leaders` layers
// lead, the last one being `last_leader`: past its K and V only the prompt's
// last row goes on, which is not counted.
double PrefillFlops(const ModelConfig& config, int tokens, int num_leaders,
                    int last_leader);

}  // namespace strata

#endif  // TESTS_GPU_BENCH_SHAPE_H_
