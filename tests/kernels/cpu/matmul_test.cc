#include "kernels/cpu/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/thread_team.h"
#include "tests/kernels/cpu/packed.h"
#include "tests/kernels/cpu/weights.h"

namespace strata::cpu {
namespace {

constexpr double kEpsilon = 0x1p-24;  // of one rounding to f32
constexpr int kMaxRows = 257;
constexpr int kMaxOutputs = 257;

// How far the sizes of BF16 weights are apart, which decides how a
// PackedMatrix has them.
enum class Spread { kNormal, kSomeFar, kWide };

struct Mode {
  Isa isa;
  DType type;
  bool exact;
  Spread spread = Spread::kNormal;
};

std::vector<Mode> AllModes() {
  std::vector<Mode> modes;
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > DetectIsa()) continue;
    for (DType type : kAllDTypes) {
      modes.push_back({isa, type, false});
      modes.push_back({isa, type, true});
    }
    for (const Spread spread : {Spread::kSomeFar, Spread::kWide}) {
      modes.push_back({isa, DType::kBF16, false, spread});
      modes.push_back({isa, DType::kBF16, true, spread});
    }
  }
  return modes;
}

class MatmulTest : public ::testing::TestWithParam<Mode> {
 protected:
  static constexpr uint64_t kSeed = 20261129;

  // Inputs that the type allows.
  std::vector<int> Inputs() const {
    if (BlockElements(GetParam().type) == 32) return {32, 96, 576};
    return {1, 31, 32, 33, 96, 576};
  }

  TestWeights NewWeights(int64_t rows, int64_t cols, int head_dim = 0) {
    TestWeights w(GetParam().type, rows, cols, random_, head_dim);
    const Spread spread = GetParam().spread;
    if (spread == Spread::kNormal) return w;
    auto* values = reinterpret_cast<Bf16*>(w.bytes.data());
    for (int64_t i = 0; i < rows * cols; ++i) {
      if (spread == Spread::kSomeFar && random_() % 700 != 0) continue;
      const int exponent = static_cast<int>(random_() % 31);
      values[i] = ToBf16(std::ldexp(ToFloat(values[i]),
                                    random_() % 2 == 0 ? exponent : -exponent));
    }
    return w;
  }

  TileFormat Format() const {
    const auto [isa, type, exact, spread] = GetParam();
    return type == DType::kBF16 && spread != Spread::kWide
               ? TileFormat::kBF16In12
               : PlainFormat(type);
  }

  // x as the kernel is meant to see it.
  std::vector<double> Rounded(const std::vector<float>& x) const {
    const auto [isa, type, exact, spread] = GetParam();
    std::vector<double> rounded(x.begin(), x.end());
    if (exact) return rounded;
    if (type == DType::kBF16 && isa == Isa::kAvx512) {
      for (size_t i = 0; i < x.size(); ++i) rounded[i] = ToFloat(ToBf16(x[i]));
    }
    if (BlockElements(type) == 32) {
      for (size_t b = 0; b < x.size(); b += 32) {
        float max = 0.0f;
        for (size_t i = b; i < b + 32; ++i) max = std::max(max, std::abs(x[i]));
        for (size_t i = b; i < b + 32; ++i) {
          rounded[i] =
              double{max / 127.0f} * std::nearbyint(x[i] * (127.0f / max));
        }
      }
    }
    return rounded;
  }

  Matmul NewMatmul(int num_workers = 1) const {
    return Matmul(GetParam().isa, GetParam().exact, num_workers);
  }

  std::mt19937_64 random_{kSeed};
};

// w x in double, and how far the kernels may be off: every input (or block of
// them) adds at most 4 roundings to a sum that is never larger than that of the
// absolute values.
struct Reference {
  std::vector<double> values;  // [kMaxRows, kMaxOutputs]
  std::vector<double> bounds;

  Reference(const TestWeights& w, const std::vector<double>& x, Spread spread) {
    const int64_t cols = w.view.cols;
    values.resize(kMaxRows * kMaxOutputs);
    bounds.resize(kMaxRows * kMaxOutputs);
    std::vector<double> row(cols), sizes(cols);
    for (int o = 0; o < kMaxOutputs; ++o) {
      for (int c = 0; c < cols; ++c) row[c] = w.At(o, c, &sizes[c]);
      for (int r = 0; r < kMaxRows; ++r) {
        double sum = 0, size = 0;
        for (int c = 0; c < cols; ++c) {
          sum += row[c] * x[r * cols + c];
          size += sizes[c] * std::abs(x[r * cols + c]);
        }
        values[r * kMaxOutputs + o] = sum;
        // Roundings of many inputs do not all point the same way: a tenth of
        // the worst case is generous, but where few weights outweigh all.
        const double share = spread == Spread::kNormal ? 0.1 : 1.0;
        bounds[r * kMaxOutputs + o] = kEpsilon * size * (4 + share * cols);
      }
    }
  }
};

TEST_P(MatmulTest, IsTheProductForAllShapes) {
  for (const int inputs : Inputs()) {
    const TestWeights w = NewWeights(kMaxOutputs, inputs);
    const std::vector<float> x = RandomFloats(kMaxRows * inputs, random_);
    const Reference reference(w, Rounded(x), GetParam().spread);
    Matmul matmul = NewMatmul();
    matmul.Reserve(kMaxRows, inputs);
    for (const int outputs : {1, 31, 33, 65, 257}) {
      WeightView view = w.view;
      view.rows = outputs;
      const auto packed = Packed(view);
      if (outputs > 1 && inputs > 1) {
        ASSERT_EQ(packed->format(), Format());
      }
      for (const int rows : {1, 2, 3, 7, 16, 33, 257}) {
        std::vector<float> y(rows * outputs, NAN);
        const MatmulOutput output = {.w = packed.get(), .y = y.data()};
        matmul.Run({.x = x.data(), .cols = inputs, .num_rows = rows},
                   {&output, 1}, Worker{});
        for (int i = 0; i < rows * outputs; ++i) {
          const int at = i / outputs * kMaxOutputs + i % outputs;
          const double want = reference.values[at];
          ASSERT_TRUE(std::abs(y[i] - want) <= reference.bounds[at])
              << y[i] << " for " << want << " +- " << reference.bounds[at]
              << " at row " << i / outputs << " of " << rows << ", output "
              << i % outputs << " of " << outputs << ", inputs " << inputs
              << ", seed " << kSeed;
        }
      }
    }
  }
}

TEST_P(MatmulTest, GivesARowTheSameBitsInEveryBatchAndTeam) {
  constexpr int kInputs = 864, kOutputs = 257, kRows = 100;
  const TestWeights w = NewWeights(kOutputs, kInputs);
  const TestWeights up = NewWeights(kOutputs, kInputs);
  const auto packed = Packed(w.view), packed_up = Packed(up.view);
  const std::vector<float> x = RandomFloats(kRows * kInputs, random_);
  const std::vector<float> norm = RandomFloats(kInputs, random_);

  // Rows alone.
  std::vector<float> want(kRows * kOutputs), want_gated(kRows * kOutputs);
  Matmul alone = NewMatmul();
  alone.Reserve(1, kInputs);
  for (int r = 0; r < kRows; ++r) {
    const MatmulOutput outputs[] = {
        {.w = packed.get(), .y = want.data() + r * kOutputs},
        {.w = packed.get(),
         .up = packed_up.get(),
         .y = want_gated.data() + r * kOutputs}};
    alone.Run({.x = x.data() + r * kInputs,
               .cols = kInputs,
               .num_rows = 1,
               .norm = {norm.data(), 1e-5f}},
              outputs, Worker{});
  }

  for (const int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    Matmul matmul = NewMatmul(threads);
    matmul.Reserve(kRows, kInputs);
    for (const int rows : {1, 2, 5, 9, 16, 31, 63, 65, 100}) {
      // The last rows, backwards.
      std::vector<int32_t> ids;
      for (int i = 0; i < rows; ++i) ids.push_back(kRows - 1 - i);
      std::vector<float> got(rows * kOutputs), got_gated(rows * kOutputs);
      const MatmulOutput outputs[] = {
          {.w = packed.get(), .y = got.data()},
          {.w = packed.get(), .up = packed_up.get(), .y = got_gated.data()}};
      team.Run([&](const Worker& worker) {
        matmul.Run({.x = x.data(),
                    .cols = kInputs,
                    .num_rows = rows,
                    .row_ids = ids.data(),
                    .norm = {norm.data(), 1e-5f}},
                   outputs, worker);
      });
      for (int i = 0; i < rows; ++i) {
        ASSERT_EQ(std::memcmp(&got[i * kOutputs], &want[ids[i] * kOutputs],
                              kOutputs * 4),
                  0)
            << "row " << i << " of " << rows << ", threads " << threads;
        ASSERT_EQ(std::memcmp(&got_gated[i * kOutputs],
                              &want_gated[ids[i] * kOutputs], kOutputs * 4),
                  0)
            << "gated row " << i << " of " << rows << ", threads " << threads;
      }
    }
  }
}

TEST_P(MatmulTest, AddsBiasAndResidual) {
  constexpr int kInputs = 96, kOutputs = 65, kRows = 3;
  const TestWeights w = NewWeights(kOutputs, kInputs);
  const auto packed = Packed(w.view);
  const std::vector<float> x = RandomFloats(kRows * kInputs, random_);
  const std::vector<float> bias = RandomFloats(kOutputs, random_);
  const std::vector<float> residual = RandomFloats(kRows * kOutputs, random_);
  std::vector<float> plain(kRows * kOutputs), biased(kRows * kOutputs);
  std::vector<float> both = residual;
  const MatmulOutput outputs[] = {
      {.w = packed.get(), .y = plain.data()},
      {.w = packed.get(), .bias = bias.data(), .y = biased.data()},
      {.w = packed.get(),
       .bias = bias.data(),
       .y = both.data(),
       .accumulate = true}};
  Matmul matmul = NewMatmul();
  matmul.Reserve(kRows, kInputs);
  matmul.Run({.x = x.data(), .cols = kInputs, .num_rows = kRows}, outputs,
             Worker{});
  for (int i = 0; i < kRows * kOutputs; ++i) {
    const float sum = plain[i] + bias[i % kOutputs];
    ASSERT_EQ(biased[i], sum);
    ASSERT_EQ(both[i], residual[i] + sum);
  }
}

TEST_P(MatmulTest, GatesWithSilu) {
  constexpr int kInputs = 96, kOutputs = 65, kRows = 9;
  const TestWeights gate = NewWeights(kOutputs, kInputs);
  const TestWeights up = NewWeights(kOutputs, kInputs);
  const auto packed_gate = Packed(gate.view), packed_up = Packed(up.view);
  std::vector<float> x = RandomFloats(kRows * kInputs, random_);
  for (int i = 0; i < kInputs; ++i)
    x[i] *= 100.0f;  // where exp is 0 or infinite
  std::vector<float> g(kRows * kOutputs), u(g), y(g);
  const MatmulOutput outputs[] = {
      {.w = packed_gate.get(), .y = g.data()},
      {.w = packed_up.get(), .y = u.data()},
      {.w = packed_gate.get(), .up = packed_up.get(), .y = y.data()}};
  Matmul matmul = NewMatmul();
  matmul.Reserve(kRows, kInputs);
  matmul.Run({.x = x.data(), .cols = kInputs, .num_rows = kRows}, outputs,
             Worker{});
  for (int i = 0; i < kRows * kOutputs; ++i) {
    const double want = g[i] / (1 + std::exp(-double{g[i]})) * u[i];
    // exp 2 ulp, then a sum, a quotient and a product; where exp overflows the
    // result is 0.
    ASSERT_TRUE(std::abs(y[i] - want) <= 8 * kEpsilon * std::abs(want) + 1e-30)
        << y[i] << " for " << want << " of " << g[i] << ", seed " << kSeed;
  }
}

TEST_P(MatmulTest, NormalizesItsInput) {
  constexpr int kInputs = 576, kOutputs = 33, kRows = 5;
  const TestWeights w = NewWeights(kOutputs, kInputs);
  const auto packed = Packed(w.view);
  const std::vector<float> x = RandomFloats(kRows * kInputs, random_);
  const std::vector<float> weight = RandomFloats(kInputs, random_);
  const RmsNorm norm = {weight.data(), 0.5f};
  std::vector<float> normalized(x.size());
  for (int r = 0; r < kRows; ++r) {
    NormalizeRow(&x[r * kInputs], norm, kInputs, &normalized[r * kInputs]);
  }
  std::vector<float> got(kRows * kOutputs), want(got);
  Matmul matmul = NewMatmul();
  matmul.Reserve(kRows, kInputs);
  MatmulOutput output = {.w = packed.get(), .y = got.data()};
  matmul.Run({.x = x.data(), .cols = kInputs, .num_rows = kRows, .norm = norm},
             {&output, 1}, Worker{});
  output.y = want.data();
  matmul.Run({.x = normalized.data(), .cols = kInputs, .num_rows = kRows},
             {&output, 1}, Worker{});
  EXPECT_EQ(got, want);
}

TEST_P(MatmulTest, UndoesInterleavedHeads) {
  constexpr int kHeadDim = 6, kOutputs = 7 * kHeadDim, kInputs = 32;
  const TestWeights w = NewWeights(kOutputs, kInputs, kHeadDim);
  WeightView in_file = w.view;
  in_file.interleaved_head_dim = 0;
  const auto packed = Packed(w.view), packed_in_file = Packed(in_file);
  const std::vector<float> x = RandomFloats(kInputs, random_);
  std::vector<float> got(kOutputs), stored(kOutputs);
  const MatmulOutput outputs[] = {
      {.w = packed.get(), .y = got.data()},
      {.w = packed_in_file.get(), .y = stored.data()}};
  Matmul matmul = NewMatmul();
  matmul.Reserve(1, kInputs);
  matmul.Run({.x = x.data(), .cols = kInputs, .num_rows = 1}, outputs,
             Worker{});
  constexpr int kStored[] = {0, 2, 4, 1, 3, 5};
  for (int o = 0; o < kOutputs; ++o) {
    ASSERT_EQ(got[o], stored[o / kHeadDim * kHeadDim + kStored[o % kHeadDim]]);
  }
}

TEST_P(MatmulTest, PassesOnWhatIsNotFinite) {
  constexpr int kInputs = 64, kOutputs = 33;
  const TestWeights w = NewWeights(kOutputs, kInputs);
  const auto packed = Packed(w.view);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = RandomFloats(3 * kInputs, random_);
    x[kInputs + 40] = bad;
    std::vector<float> y(3 * kOutputs);
    const MatmulOutput output = {.w = packed.get(), .y = y.data()};
    Matmul matmul = NewMatmul();
    matmul.Reserve(3, kInputs);
    matmul.Run({.x = x.data(), .cols = kInputs, .num_rows = 3}, {&output, 1},
               Worker{});
    for (int i = 0; i < 3 * kOutputs; ++i) {
      // A quantised weight may be 0; times infinity that is NaN, so never
      // finite.
      ASSERT_EQ(std::isfinite(y[i]), i / kOutputs != 1) << i << " of " << bad;
    }
  }
}

TEST_P(MatmulTest, OfZerosIsZero) {
  constexpr int kInputs = 64, kOutputs = 33;
  const TestWeights w = NewWeights(kOutputs, kInputs);
  const auto packed = Packed(w.view);
  const std::vector<float> x(kInputs);
  std::vector<float> y(kOutputs, NAN);
  const MatmulOutput output = {.w = packed.get(), .y = y.data()};
  Matmul matmul = NewMatmul();
  matmul.Reserve(1, kInputs);
  matmul.Run({.x = x.data(), .cols = kInputs, .num_rows = 1}, {&output, 1},
             Worker{});
  EXPECT_EQ(y, std::vector<float>(kOutputs));
}

constexpr const char* kSpreadNames[] = {"", "_some_far", "_wide"};

INSTANTIATE_TEST_SUITE_P(
    Modes, MatmulTest, ::testing::ValuesIn(AllModes()), [](const auto& info) {
      return std::string(IsaName(info.param.isa)) + "_" +
             DTypeName(info.param.type) + (info.param.exact ? "_exact" : "") +
             kSpreadNames[static_cast<int>(info.param.spread)];
    });

}  // namespace
}  // namespace strata::cpu
