#ifndef TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_
#define TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/ops.h"
#include "tests/kernels/cpu/weights.h"
#include "tests/testing/device_array.h"

namespace strata::cuda {

// Random weights in the layout of a DeviceMatrix, on the host and the device.
class DeviceWeights {
 public:
  DeviceWeights(DType type, int rows, int cols, std::mt19937_64& random)
      : DeviceWeights(type, rows, cols, RandomData(type, rows, cols, random),
                      RandomScales(type, rows, cols, random)) {}

  // All ones: NaN where bf16, and scaled by NaN where quantised.
  static DeviceWeights Nan(DType type, int rows, int cols) {
    return DeviceWeights(
        type, rows, cols,
        std::vector<std::byte>(NumBytes(type, rows, cols), std::byte{0xff}),
        std::vector<F16>(NumScales(type, rows, cols), F16{0xffff}));
  }

  DeviceMatrix matrix() const {
    return {type_, device_data_.get(),
            type_ == DType::kBF16 ? nullptr : device_scales_.get(), rows_,
            cols_};
  }

  // The weight, by the definition of the format.
  float At(int row, int col) const {
    const int64_t i = int64_t{row} * cols_ + col;
    if (type_ == DType::kBF16) {
      Bf16 v;
      std::memcpy(&v, &data_[i * 2], 2);
      return ToFloat(v);
    }
    const auto d =
        static_cast<float>(HalfValue(static_cast<uint16_t>(scales_[i / 32])));
    if (type_ == DType::kQ8_0) return d * static_cast<int8_t>(data_[i]);
    const int pair = static_cast<int>(data_[i / 32 * 16 + i % 16]);
    return d * ((i % 32 < 16 ? pair & 15 : pair >> 4) - 8);
  }

 private:
  DeviceWeights(DType type, int rows, int cols, std::vector<std::byte> data,
                std::vector<F16> scales)
      : type_(type),
        rows_(rows),
        cols_(cols),
        data_(std::move(data)),
        scales_(std::move(scales)),
        device_data_(data_),
        device_scales_(scales_) {}

  static int64_t NumBytes(DType type, int rows, int cols) {
    const int64_t weights = int64_t{rows} * cols;
    if (type == DType::kBF16) return weights * 2;
    return type == DType::kQ8_0 ? weights : weights / 2;
  }
  static int64_t NumScales(DType type, int rows, int cols) {
    return type == DType::kBF16 ? 1 : int64_t{rows} * cols / 32;
  }

  static std::vector<std::byte> RandomData(DType type, int rows, int cols,
                                           std::mt19937_64& random) {
    std::vector<std::byte> data(NumBytes(type, rows, cols));
    if (type != DType::kBF16) {
      for (std::byte& b : data) b = static_cast<std::byte>(random());
      return data;
    }
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < data.size(); i += 2) {
      const Bf16 v = ToBf16(normal(random));
      std::memcpy(&data[i], &v, 2);
    }
    return data;
  }
  // Of all sizes that count beside each other, with all the bits of an f16; the
  // first is subnormal.
  static std::vector<F16> RandomScales(DType type, int rows, int cols,
                                       std::mt19937_64& random) {
    std::uniform_real_distribution<float> scale(0.005f, 0.05f);
    std::vector<F16> scales(NumScales(type, rows, cols));
    for (F16& d : scales) d = F16{TruncateToHalf(scale(random))};
    scales[0] = F16{0x0155};
    return scales;
  }

  DType type_;
  int rows_;
  int cols_;
  std::vector<std::byte> data_;
  std::vector<F16> scales_;
  DeviceArray<std::byte> device_data_;
  DeviceArray<F16> device_scales_;
};

}  // namespace strata::cuda

#endif  // TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_
