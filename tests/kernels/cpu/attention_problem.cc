#include "tests/kernels/cpu/attention_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/thread_team.h"

namespace strata::cpu {
namespace {

// Uniform in [-2.5, 2.5): large enough that softmaxes are far from even.
// splitmix64.
std::vector<float> RandomRow(uint64_t seed, int64_t count) {
  std::vector<float> row(count);
  uint64_t state = seed * 0x9e3779b97f4a7c15;
  for (float& x : row) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    x = static_cast<float>((z ^ z >> 31) >> 40) * 0x5p-24f - 2.5f;
  }
  return row;
}

}  // namespace

AttentionProblem::AttentionProblem(const AttentionShape& shape,
                                   const std::vector<ChunkShape>& chunks,
                                   uint64_t page_seed)
    : shape_(shape),
      chunk_shapes_(chunks),
      scale_(1.0f / std::sqrt(float(shape.head_dim))) {
  FillPages(page_seed);
  for (size_t c = 0; c < chunk_shapes_.size(); ++c) {
    const ChunkShape& chunk = chunk_shapes_[c];
    chunks_.push_back({.first_row = static_cast<int32_t>(positions_.size()),
                       .num_rows = chunk.num_rows,
                       .first_position = chunk.first_position,
                       .strategy = chunk.strategy,
                       .page_table = page_tables_[c].data(),
                       .blocks_stride = static_cast<int32_t>(
                           page_tables_[c].size() / kLayers)});
    for (int r = 0; r < chunk.num_rows; ++r) {
      const int position = chunk.first_position + r;
      positions_.push_back(position);
      chunk_of_.push_back(c);
      const std::vector<float> row = RandomRow(
          uint64_t{3} << 40 | uint64_t(chunk.sequence) << 20 | position,
          row_floats());
      q_.insert(q_.end(), row.begin(), row.end());
    }
  }
  step_ = {.positions = positions_,
           .chunk_of = chunk_of_,
           .chunks = chunks_,
           .slot_of = slot_of_.data(),
           .num_layers = kLayers};
}

std::vector<float> AttentionProblem::CacheRow(int which, int sequence, int slot,
                                              int position) const {
  std::vector<float> row =
      RandomRow(uint64_t(which) << 40 | uint64_t(sequence) << 20 |
                    uint64_t(slot) << 60 | position,
                int64_t{shape_.kv_heads} * shape_.head_dim);
  if (shape_.type == KvType::kBF16) {
    for (float& x : row) x = ToFloat(ToBf16(x));
  }
  return row;
}

void AttentionProblem::FillPages(uint64_t page_seed) {
  const int tokens = shape_.page_tokens;
  int64_t num_pages = 3;  // never used ones
  for (const ChunkShape& chunk : chunk_shapes_) {
    const int blocks =
        (chunk.first_position + chunk.num_rows + tokens - 1) / tokens + 1;
    page_tables_.emplace_back(kLayers * blocks);
    num_pages += kLayers * blocks;
  }
  auto pages = KvPages::Create({.num_pages = num_pages,
                                .page_tokens = tokens,
                                .kv_heads = shape_.kv_heads,
                                .head_dim = shape_.head_dim},
                               shape_.type);
  STRATA_CHECK(pages.ok());
  pages_ = *std::move(pages);
  const std::vector<float> nan(shape_.head_dim,
                               std::numeric_limits<float>::quiet_NaN());
  for (int64_t page = 0; page < num_pages; ++page) {
    for (int h = 0; h < shape_.kv_heads; ++h) {
      for (int t = 0; t < tokens; ++t)
        pages_->Store(page, h, t, nan.data(), nan.data());
    }
  }
  std::vector<int32_t> numbers(num_pages);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(page_seed));
  for (size_t c = 0; c < chunk_shapes_.size(); ++c) {
    const ChunkShape& chunk = chunk_shapes_[c];
    std::vector<int32_t>& table = page_tables_[c];
    for (int32_t& entry : table) {
      entry = numbers.back();
      numbers.pop_back();
    }
    for (int slot = 0; slot < kLayers; ++slot) {
      for (int t = 0; t < chunk.first_position + chunk.num_rows; ++t) {
        const int32_t page = table[slot * table.size() / kLayers + t / tokens];
        const std::vector<float> k = CacheRow(0, chunk.sequence, slot, t);
        const std::vector<float> v = CacheRow(1, chunk.sequence, slot, t);
        for (int h = 0; h < shape_.kv_heads; ++h) {
          pages_->Store(page, h, t % tokens, &k[h * shape_.head_dim],
                        &v[h * shape_.head_dim]);
        }
      }
    }
  }
}

std::vector<float> AttentionProblem::Run(int layer, Isa isa,
                                         int num_workers) const {
  std::vector<float> out(q_.size(), std::numeric_limits<float>::quiet_NaN());
  const AttentionArgs args = {.layer = layer,
                              .step = &step_,
                              .q = q_.data(),
                              .out = out.data(),
                              .q_heads = shape_.kv_heads * shape_.group,
                              .scale = scale_};
  AttentionScratch scratch(num_workers, isa);
  ThreadTeam team(num_workers);
  team.Run(
      [&](const Worker& worker) { Attention(args, *pages_, scratch, worker); });
  return out;
}

std::vector<float> AttentionProblem::Reference(int layer) const {
  std::vector<float> out(q_.size());
  for (size_t c = 0; c < chunks_.size(); ++c) {
    const ChunkShape& shape = chunk_shapes_[c];
    const int slot = slot_of_[shape.strategy * kLayers + layer],
              head_dim = shape_.head_dim;
    std::vector<std::vector<float>> k, v;
    for (int t = 0; t < shape.first_position + shape.num_rows; ++t) {
      k.push_back(CacheRow(0, shape.sequence, slot, t));
      v.push_back(CacheRow(1, shape.sequence, slot, t));
    }
    for (int i = 0; i < shape.num_rows * shape_.kv_heads * shape_.group; ++i) {
      const int r = i / (shape_.kv_heads * shape_.group);
      const int g = i % (shape_.kv_heads * shape_.group) / shape_.group;
      const int64_t at =
          chunks_[c].first_row * row_floats() + int64_t{i} * head_dim;
      std::vector<double> p;
      double sum = 0.0;
      for (int t = 0; t <= shape.first_position + r; ++t) {
        double dot = 0.0;
        for (int d = 0; d < head_dim; ++d)
          dot += double{q_[at + d]} * k[t][g * head_dim + d];
        p.push_back(dot * scale_);
      }
      const double max = *std::max_element(p.begin(), p.end());
      for (double& x : p) sum += x = std::exp(x - max);
      for (int d = 0; d < head_dim; ++d) {
        double value = 0.0;
        for (size_t t = 0; t < p.size(); ++t)
          value += p[t] * v[t][g * head_dim + d];
        out[at + d] = static_cast<float>(value / sum);
      }
    }
  }
  return out;
}

}  // namespace strata::cpu
