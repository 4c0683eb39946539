#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "kernels/cuda/ops.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"

namespace strata::cuda {
namespace {

using Then = ProductArgs::Then;

constexpr DType kTypes[] = {DType::kBF16, DType::kQ8_0, DType::kQ4_0};
constexpr float kEps = 0.25f;  // as large as u^2: losing it is seen

struct Shape {
  int rows;
  std::vector<int> outputs;  // of each matrix
  int cols;
};

struct Options {
  DType type = DType::kBF16;
  Then then = Then::kStore;
  bool norm = false;
  bool by_id = false;  // of norm: rows 1 + 2 i, and none for row 1
  bool bias = false;
  std::optional<int> any = std::nullopt;
};

// A sum, and how far off a result may be.
struct Want {
  double sum = 0;
  double error = 0;
};

// A product on random numbers.  Whatever is not to be read is NaN.
class Problem {
 public:
  Problem(const Shape& shape, const Options& options, uint64_t seed)
      : shape_(shape), options_(options), random_(seed) {
    MakeInput();
    const bool skips = options.any == 0;
    for (size_t m = 0; m < shape.outputs.size(); ++m) {
      const int outputs = shape.outputs[m];
      width_ += outputs;
      weights_.emplace_back(new DeviceWeights(
          skips && m > 0
              ? DeviceWeights::Nan(options.type, outputs, shape.cols)
              : DeviceWeights(options.type, outputs, shape.cols, random_)));
      bias_.push_back(Normals(outputs));
      device_bias_.push_back(
          std::make_unique<DeviceArray<float>>(bias_.back()));
    }
    old_y_ = options.then == Then::kAdd
                 ? Normals(shape.rows * width_)
                 : std::vector<float>(shape.rows * width_, NAN);
    for (int r = 0; r < shape.rows; ++r) {
      for (size_t m = 0; m < weights_.size(); ++m) {
        for (int o = 0; o < shape.outputs[m]; ++o) {
          want_.push_back(skips && m > 0 ? Want{} : WantOf(r, m, o));
        }
      }
    }
  }

  // y, or z widened; fails the test if it is wrong.
  std::vector<float> Run(uint64_t schedules) {
    std::vector<float> got;
    ForEachSchedule(schedules, [&] {
      if (options_.then == Then::kSwiGlu) {
        const DeviceArray<Bf16> z(shape_.rows * shape_.outputs[0]);
        Launch(nullptr, z.get());
        got.clear();
        for (const Bf16 v : z.ToHost()) got.push_back(ToFloat(v));
        CheckSwiGlu(got);
      } else {
        const DeviceArray<float> y(old_y_);
        Launch(y.get(), nullptr);
        got = y.ToHost();
        CheckSums(got);
      }
    });
    return got;
  }

 private:
  std::vector<float> Normals(int64_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& v : values) v = normal(random_);
    return values;
  }

  void MakeInput() {
    const int rows = shape_.rows, cols = shape_.cols;
    norm_ = Normals(cols);
    u_.assign((2 * rows + 1) * cols, NAN);
    for (int r = 0; r < rows; ++r) {
      const int id = !options_.by_id ? r : r == 1 ? -1 : 1 + 2 * r;
      row_ids_.push_back(id);
      std::vector<float> row = Normals(cols);
      double sum = 0;
      for (float& v : row) {
        v *= 0.5f;
        sum += double{v} * v;
      }
      const double scale = 1 / std::sqrt(sum / cols + kEps);
      for (int c = 0; c < cols; ++c) {
        if (!options_.norm) {
          x_.push_back(ToBf16(row[c]));
        } else if (id < 0) {
          x_.push_back(ToBf16(0.0f));
        } else {
          u_[id * cols + c] = row[c];
          x_.push_back(ToBf16(static_cast<float>(row[c] * scale * norm_[c])));
        }
      }
    }
    device_x_ = std::make_unique<DeviceArray<Bf16>>(x_);
    device_u_ = std::make_unique<DeviceArray<float>>(u_);
    device_norm_ = std::make_unique<DeviceArray<float>>(norm_);
    device_ids_ = std::make_unique<DeviceArray<int32_t>>(row_ids_);
    device_any_ = std::make_unique<DeviceArray<int32_t>>(
        std::vector<int32_t>{options_.any.value_or(0)});
  }

  Want WantOf(int row, int matrix, int output) const {
    // Above kMaxSmallRows a weight is rounded.
    const bool rounds = shape_.rows > kMaxSmallRows;
    Want want;
    double size = 0, largest = 0;
    for (int c = 0; c < shape_.cols; ++c) {
      float w = weights_[matrix]->At(output, c);
      if (rounds) w = ToFloat(ToBf16(w));
      const double term = double{w} * ToFloat(x_[row * shape_.cols + c]);
      want.sum += term;
      size += std::abs(term);
      largest = std::max(largest, std::abs(term));
    }
    if (options_.bias) want.sum += bias_[matrix][output];
    // Of fp32 sums; and a norm may be rounded to a neighbour here and there.
    want.error = 2e-6 * (1 + size) + (options_.norm ? largest / 64 : 0);
    return want;
  }

  void Launch(float* y, Bf16* z) {
    ProductArgs args;
    if (options_.norm) {
      args.u = device_u_->get();
      args.row_ids = options_.by_id ? device_ids_->get() : nullptr;
      args.norm = device_norm_->get();
      args.eps = kEps;
    } else {
      args.x = device_x_->get();
    }
    args.rows = shape_.rows;
    for (size_t m = 0; m < weights_.size(); ++m) {
      args.w[m] = weights_[m]->matrix();
      if (options_.bias) args.bias[m] = device_bias_[m]->get();
    }
    if (options_.any.has_value()) args.any = device_any_->get();
    args.then = options_.then;
    args.y = y;
    args.z = z;
    const DeviceArray<std::byte> scratch(ProductScratchBytes(args));
    args.scratch = scratch.get();
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  void CheckSums(const std::vector<float>& y) const {
    for (int i = 0; i < shape_.rows * width_; ++i) {
      if (options_.any == 0 && i % width_ >= shape_.outputs[0]) {
        ASSERT_EQ(std::memcmp(&y[i], &old_y_[i], sizeof(float)), 0)
            << "row " << i / width_ << ", skipped output " << i % width_;
        continue;
      }
      const double want =
          want_[i].sum + (options_.then == Then::kAdd ? old_y_[i] : 0.0f);
      ASSERT_TRUE(std::abs(y[i] - want) <= want_[i].error)
          << "row " << i / width_ << ", output " << i % width_ << ": got "
          << y[i] << ", want " << want << " to " << want_[i].error;
    }
  }

  void CheckSwiGlu(const std::vector<float>& z) const {
    const int outputs = shape_.outputs[0];
    for (int i = 0; i < shape_.rows * outputs; ++i) {
      const Want& gate = want_[i / outputs * width_ + i % outputs];
      const Want& up = want_[i / outputs * width_ + outputs + i % outputs];
      const double silu = gate.sum / (1 + std::exp(-gate.sum));
      const double want = silu * up.sum;
      const double error = std::abs(want) / 256 + std::abs(silu) * up.error +
                           1.1 * gate.error * (std::abs(up.sum) + up.error);
      ASSERT_TRUE(std::abs(z[i] - want) <= error)
          << "row " << i / outputs << ", output " << i % outputs << ": got "
          << z[i] << ", want " << want << " to " << error;
    }
  }

  Shape shape_;
  Options options_;
  std::mt19937_64 random_;
  int width_ = 0;  // outputs in all
  std::vector<float> u_, norm_, old_y_;
  std::vector<Bf16> x_;
  std::vector<int32_t> row_ids_;
  std::vector<std::vector<float>> bias_;
  std::vector<Want> want_;
  std::vector<std::unique_ptr<DeviceWeights>> weights_;
  std::vector<std::unique_ptr<DeviceArray<float>>> device_bias_;
  std::unique_ptr<DeviceArray<Bf16>> device_x_;
  std::unique_ptr<DeviceArray<float>> device_u_, device_norm_;
  std::unique_ptr<DeviceArray<int32_t>> device_ids_, device_any_;
};

void Check(const Shape& shape, const Options& options, uint64_t schedules = 4) {
  SCOPED_TRACE(::testing::Message()
               << shape.rows << " rows, " << shape.outputs[0] << " outputs, "
               << shape.cols << " columns of " << DTypeName(options.type));
  Problem(shape, options, shape.rows + shape.cols).Run(schedules);
}

// Rows, outputs and columns that no tile divides, in each regime; the widest
// keeps every pipeline busy beyond its depth.
const Shape kGemvShapes[] = {
    {1, {33, 31, 1}, 32}, {2, {1}, 288}, {3, {7, 2}, 1056}, {4, {257}, 96}};
const Shape kSmallShapes[] = {
    {5, {33, 31, 1}, 32}, {8, {1}, 1312}, {9, {17, 2}, 1312}, {16, {513}, 96}};
const Shape kGemmShapes[] = {
    {17, {33, 31, 1}, 32}, {33, {7}, 480}, {65, {1}, 160}, {130, {129, 5}, 96}};

template <typename Check>
void ForEachShape(Check check) {
  for (const Shape& shape : kGemvShapes) check(shape);
  for (const Shape& shape : kSmallShapes) check(shape);
  for (const Shape& shape : kGemmShapes) check(shape);
}

TEST(ProductTest, Stores) {
  for (const DType type : kTypes) {
    ForEachShape([&](const Shape& shape) { Check(shape, {.type = type}); });
  }
}

TEST(ProductTest, LongRowsOfEveryType) {
  for (const DType type : kTypes) Check({1, {3}, 4192}, {.type = type});
}

TEST(ProductTest, RowsTooLongForSharedMemory) {
  Check({1, {3}, 16416}, {.norm = true}, 2);
}

// Whose last stage or slice, and reordered chunks, are only half there.
TEST(ProductTest, ColumnsThatAreNoMultipleOf32) {
  for (const bool norm : {false, true}) {
    for (const Shape& shape :
         {Shape{1, {5}, 16}, Shape{4, {33, 2}, 144}, Shape{3, {7}, 208},
          Shape{5, {33, 31, 1}, 16}, Shape{8, {3}, 1328}, Shape{16, {17}, 80},
          Shape{17, {33, 31, 1}, 16}, Shape{33, {7}, 496}, Shape{65, {1}, 176},
          Shape{130, {129, 5}, 80}}) {
      Check(shape, {.norm = norm});
    }
  }
}

TEST(ProductTest, AddsWithBias) {
  ForEachShape([](const Shape& shape) {
    Check(shape, {.then = Then::kAdd, .bias = true});
  });
}

TEST(ProductTest, NormComesFirst) {
  for (const bool by_id : {false, true}) {
    ForEachShape([&](const Shape& shape) {
      Check(shape, {.norm = true, .by_id = by_id, .bias = true}, 2);
    });
  }
}

TEST(ProductTest, SwiGlu) {
  for (const DType type : kTypes) {
    for (const Shape& shape :
         {Shape{1, {33, 33}, 96}, Shape{4, {1, 1}, 288}, Shape{5, {17, 17}, 96},
          Shape{16, {33, 33}, 544}, Shape{17, {33, 33}, 96},
          Shape{33, {17, 17}, 32}, Shape{130, {65, 65}, 32}}) {
      Check(shape, {.type = type, .then = Then::kSwiGlu, .norm = true}, 2);
    }
  }
}

TEST(ProductTest, AnySkipsTheOtherMatrices) {
  for (const int any : {0, 3}) {
    for (const Then then : {Then::kStore, Then::kAdd}) {
      for (const Shape& shape :
           {Shape{2, {33, 31, 1}, 96}, Shape{9, {33, 31, 1}, 96},
            Shape{33, {33, 31, 1}, 96}}) {
        Check(shape, {.then = then, .bias = true, .any = any}, 2);
      }
    }
  }
}

// A part of the columns of a wider y; the others stay.
TEST(ProductTest, RowsOfYMayLieApart) {
  constexpr int kOutputs = 65, kCols = 96, kStride = 96, kFirst = 28;
  for (const int rows : {3, 9, 40}) {
    SCOPED_TRACE(rows);
    std::mt19937_64 random(5);
    const DeviceWeights weights(DType::kBF16, kOutputs, kCols, random);
    std::normal_distribution<float> normal;
    std::vector<Bf16> x(rows * kCols);
    for (Bf16& v : x) v = ToBf16(normal(random));
    const DeviceArray<Bf16> device_x(x);
    const DeviceArray<float> together(rows * kOutputs);
    ProductArgs args = {.x = device_x.get(), .rows = rows, .y = together.get()};
    args.w[0] = weights.matrix();
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    const DeviceArray<float> apart(std::vector<float>(rows * kStride, -7.0f));
    args.y = apart.get() + kFirst;
    args.y_stride = kStride;
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    const std::vector<float> want = together.ToHost(), got = apart.ToHost();
    for (int i = 0; i < rows * kStride; ++i) {
      const int output = i % kStride - kFirst;
      const bool is_written = output >= 0 && output < kOutputs;
      ASSERT_EQ(got[i],
                is_written ? want[i / kStride * kOutputs + output] : -7.0f);
    }
  }
}

// The first rows of x are the same numbers, whatever comes after.
TEST(ProductTest, RowsDoNotDependOnOtherRows) {
  for (const DType type : kTypes) {
    for (const auto& [few, many] :
         {std::pair(1, 4), {5, 16}, {17, 33}, {33, 70}, {70, 130}}) {
      SCOPED_TRACE(::testing::Message() << few << ' ' << many);
      std::mt19937_64 random(3);
      constexpr int kOutputs = 129, kCols = 288;
      const DeviceWeights weights(type, kOutputs, kCols, random);
      std::normal_distribution<float> normal;
      std::vector<Bf16> x(many * kCols);
      for (Bf16& v : x) v = ToBf16(normal(random));
      std::vector<float> got[2];
      for (const int rows : {few, many}) {
        const DeviceArray<Bf16> device_x(
            std::vector<Bf16>(x.begin(), x.begin() + rows * kCols));
        const DeviceArray<float> y(rows * kOutputs);
        ProductArgs args = {.x = device_x.get(), .rows = rows, .y = y.get()};
        args.w[0] = weights.matrix();
        ASSERT_EQ(Product(args, nullptr), cudaSuccess);
        got[rows == many] = y.ToHost();
      }
      got[1].resize(few * kOutputs);
      EXPECT_EQ(got[0], got[1]);
    }
  }
}

TEST(ProductTest, MatricesOfSeveralTypes) {
  std::mt19937_64 random(4);
  constexpr int kOutputs = 31, kCols = 96;
  std::vector<std::unique_ptr<DeviceWeights>> weights;
  for (const DType type : kTypes) {
    weights.push_back(
        std::make_unique<DeviceWeights>(type, kOutputs, kCols, random));
  }
  for (const int rows : {2, 9, 33}) {
    SCOPED_TRACE(rows);
    const DeviceArray<Bf16> x(std::vector<Bf16>(rows * kCols, ToBf16(0.5f)));
    const DeviceArray<float> together(rows * kOutputs * 3);
    ProductArgs args = {.x = x.get(), .rows = rows, .y = together.get()};
    for (int m = 0; m < 3; ++m) args.w[m] = weights[m]->matrix();
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    for (int m = 0; m < 3; ++m) {
      const DeviceArray<float> alone(rows * kOutputs);
      ProductArgs one = {.x = x.get(), .rows = rows, .y = alone.get()};
      one.w[0] = weights[m]->matrix();
      ASSERT_EQ(Product(one, nullptr), cudaSuccess);
      const std::vector<float> want = alone.ToHost(), got = together.ToHost();
      for (int i = 0; i < rows * kOutputs; ++i) {
        ASSERT_EQ(got[(i / kOutputs * 3 + m) * kOutputs + i % kOutputs],
                  want[i])
            << m << ' ' << i;
      }
    }
  }
}

TEST(ProductTest, WrongShapesAreRefused) {
  ProductArgs args = {.rows = 1};
  args.w[0] = {.rows = 8, .cols = 40};  // no multiple of 16
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[0] = {.type = DType::kQ8_0, .rows = 8, .cols = 48};  // nor of 32
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[0].type = DType::kBF16;
  args.w[0].cols = 64;
  args.w[1] = {.rows = 8, .cols = 96};
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[1] = {.rows = 9, .cols = 64};
  args.then = Then::kSwiGlu;
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[1] = {.type = DType::kQ8_0, .rows = 8, .cols = 64};
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
}

TEST(ProductTest, NoRowsIsNoLaunch) {
  ProductArgs args;
  args.w[0] = {.rows = 8, .cols = 32};
  EXPECT_EQ(Product(args, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace strata::cuda
