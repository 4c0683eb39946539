#ifndef TESTS_KERNELS_CUDA_PRODUCT_PROBLEM_H_
#define TESTS_KERNELS_CUDA_PRODUCT_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

struct ProductShape {
  int rows;
  std::vector<int> outputs;  // of each matrix
  int cols;
};

struct ProductOptions {
  WeightFormat format = WeightFormat::kBf16;
  ProductArgs::Then then = ProductArgs::Then::kStore;
  bool norm = false;
  bool by_id = false;  // of norm: rows 1 + 2 i, and none for row 1
  bool bias = false;
  std::optional<int> any = std::nullopt;
};

// A product on random numbers.  Whatever is not to be read is NaN.
class ProductProblem {
 public:
  ProductProblem(const ProductShape& shape, const ProductOptions& options,
                 uint64_t seed)
      : shape_(shape), options_(options), random_(seed) {
    MakeInput();
    const bool skips = options.any == 0;
    for (size_t m = 0; m < shape.outputs.size(); ++m) {
      const int outputs = shape.outputs[m];
      width_ += outputs;
      weights_.emplace_back(new DeviceWeights(
          skips && m > 0
              ? DeviceWeights::Nan(options.format, outputs, shape.cols)
              : DeviceWeights(options.format, outputs, shape.cols, random_)));
      bias_.push_back(Normals(outputs));
      device_bias_.push_back(
          std::make_unique<DeviceArray<float>>(bias_.back()));
    }
    old_y_ = options.then == ProductArgs::Then::kAdd
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
      if (options_.then == ProductArgs::Then::kSwiGlu) {
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
  // A sum, and how far off a result may be.
  struct Want {
    double sum = 0;
    double error = 0;
  };

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
    // Above kMaxSmallRows a weight is rounded; of fp8 that changes nothing.
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
          want_[i].sum +
          (options_.then == ProductArgs::Then::kAdd ? old_y_[i] : 0.0f);
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

  static constexpr float kEps = 0.25f;  // as large as u^2: losing it is seen

  ProductShape shape_;
  ProductOptions options_;
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

}  // namespace strata::cuda

#endif  // TESTS_KERNELS_CUDA_PRODUCT_PROBLEM_H_
