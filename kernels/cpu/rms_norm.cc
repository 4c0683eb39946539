#include "kernels/cpu/rms_norm.h"

#include <cmath>
#include <cstring>

namespace strata::cpu {
namespace {

float SumOfSquares(const float* x, int dim) {
  constexpr int kLanes = 16;
  float lanes[kLanes] = {};
  int c = 0;
  for (; c + kLanes <= dim; c += kLanes) {
    for (int i = 0; i < kLanes; ++i) lanes[i] += x[c + i] * x[c + i];
  }
  for (int i = 0; c < dim; ++c, ++i) lanes[i] += x[c] * x[c];
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace

void NormalizeRow(const float* x, const RmsNorm& norm, int dim, float* y) {
  if (norm.weight == nullptr) {
    if (y != x) std::memcpy(y, x, dim * sizeof(float));
    return;
  }
  const float scale =
      1.0f /
      std::sqrt(SumOfSquares(x, dim) / static_cast<float>(dim) + norm.eps);
  for (int c = 0; c < dim; ++c) y[c] = x[c] * scale * norm.weight[c];
}

}  // namespace strata::cpu
