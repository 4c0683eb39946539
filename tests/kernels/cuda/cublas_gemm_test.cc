#include "kernels/cuda/cublas_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "tests/kernels/cuda/device_weights.h"
#include "tests/testing/device_array.h"

// On a GPU only: the library has no part in tests on the CPU.
namespace strata::cuda {
namespace {

class CublasGemmTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<GemmLibrary>> library = LoadCublasGemm();
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *std::move(library);
  }
  std::unique_ptr<GemmLibrary> library_;
};

struct Case {
  int rows;
  std::vector<int> outputs;  // of each matrix
  int cols;
  int num_matrices;  // that are wanted
  bool bias = false;
  ProductArgs::Then then = ProductArgs::Then::kStore;
};

void Check(GemmLibrary* library, const Case& c, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message()
               << c.rows << " rows, " << c.cols << " columns, "
               << c.num_matrices << " matrices");
  std::normal_distribution<float> normal;
  std::vector<Bf16> x(c.rows * c.cols);
  for (Bf16& v : x) v = ToBf16(normal(random));
  const DeviceArray<Bf16> device_x(x);
  ProductArgs args = {.x = device_x.get(), .rows = c.rows, .then = c.then};
  std::vector<std::unique_ptr<DeviceWeights>> weights;
  std::vector<std::vector<float>> bias;
  std::vector<std::unique_ptr<DeviceArray<float>>> device_bias;
  int width = 0;
  for (size_t m = 0; m < c.outputs.size(); ++m) {
    width += c.outputs[m];
    weights.push_back(std::make_unique<DeviceWeights>(
        WeightFormat::kBf16, c.outputs[m], c.cols, random));
    bias.emplace_back(c.outputs[m]);
    for (float& v : bias.back()) v = normal(random);
    device_bias.push_back(std::make_unique<DeviceArray<float>>(bias.back()));
    args.w[m] = weights.back()->matrix();
    if (c.bias) args.bias[m] = device_bias.back()->get();
  }
  std::vector<float> before(c.rows * width);
  for (float& v : before) v = normal(random);
  const DeviceArray<float> y(before);
  args.y = y.get();
  ASSERT_TRUE(library->Product(args, c.num_matrices, nullptr));
  const std::vector<float> got = y.ToHost();
  for (int r = 0; r < c.rows; ++r) {
    int at = r * width;
    for (int m = 0; m < static_cast<int>(c.outputs.size()); ++m) {
      for (int o = 0; o < c.outputs[m]; ++o, ++at) {
        if (m >= c.num_matrices) {
          ASSERT_EQ(got[at], before[at]) << r << ' ' << m << ' ' << o;
          continue;
        }
        double want = c.then == ProductArgs::Then::kAdd ? before[at] : 0.0;
        double size = 1;
        if (c.bias) want += bias[m][o];
        for (int k = 0; k < c.cols; ++k) {
          const double term =
              double{weights[m]->At(o, k)} * ToFloat(x[r * c.cols + k]);
          want += term;
          size += std::abs(term);
        }
        ASSERT_TRUE(std::abs(got[at] - want) <= 2e-6 * size)
            << r << ' ' << m << ' ' << o << ": got " << got[at] << ", want "
            << want;
      }
    }
  }
}

TEST_F(CublasGemmTest, IsTheProduct) {
  constexpr auto kAdd = ProductArgs::Then::kAdd;
  std::mt19937_64 random(1);
  for (const bool bias : {false, true}) {
    Check(library_.get(), {17, {64, 16, 16}, 80, 3, bias}, random);
    Check(library_.get(), {33, {64, 16, 16}, 80, 1, bias}, random);
    Check(library_.get(), {65, {128}, 96, 1, bias, kAdd}, random);
    Check(library_.get(), {130, {272}, 1040, 1, bias}, random);
  }
}

// The first rows of x are the same numbers, whatever comes after.
TEST_F(CublasGemmTest, RowsDoNotDependOnOtherRows) {
  constexpr int kOutputs = 272, kCols = 1040, kMostRows = 1500;
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  std::vector<Bf16> x(kMostRows * kCols);
  for (Bf16& v : x) v = ToBf16(normal(random));
  const DeviceArray<Bf16> device_x(x);
  const DeviceWeights weights(WeightFormat::kBf16, kOutputs, kCols, random);
  const auto product = [&](int rows) {
    const DeviceArray<float> y(rows * kOutputs);
    ProductArgs args = {.x = device_x.get(), .rows = rows, .y = y.get()};
    args.w[0] = weights.matrix();
    EXPECT_TRUE(library_->Product(args, 1, nullptr));
    return y.ToHost();
  };
  const std::vector<float> all = product(kMostRows);
  for (const int rows : {17, 70, 500}) {
    SCOPED_TRACE(rows);
    EXPECT_EQ(product(rows),
              std::vector<float>(all.begin(), all.begin() + rows * kOutputs));
  }
}

}  // namespace
}  // namespace strata::cuda
