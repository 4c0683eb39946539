#ifndef TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_
#define TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/ops.h"
#include "kernels/fp8.h"
#include "tests/kernels/cpu/weights.h"
#include "tests/testing/device_array.h"

namespace strata::cuda {

inline constexpr WeightFormat kAllFormats[] = {
    WeightFormat::kBf16, WeightFormat::kQ8_0, WeightFormat::kQ4_0,
    WeightFormat::kFp8};

// Random weights in the layout of a DeviceMatrix, on the host and the device.
class DeviceWeights {
 public:
  DeviceWeights(WeightFormat format, int rows, int cols,
                std::mt19937_64& random)
      : DeviceWeights(format, rows, cols,
                      RandomData(format, rows, cols, random),
                      RandomBlockScales(format, rows, cols, random),
                      RandomRowScales(format, rows, random)) {}

  // All ones: NaN where bf16, and scaled by NaN where there are scales.
  static DeviceWeights Nan(WeightFormat format, int rows, int cols) {
    return DeviceWeights(
        format, rows, cols,
        std::vector<std::byte>(rows * RowBytes(format, cols), std::byte{0xff}),
        std::vector<F16>(NumBlockScales(format, rows, cols), F16{0xffff}),
        std::vector<float>(NumRowScales(format, rows), NAN));
  }

  DeviceMatrix matrix() const {
    return {
        .format = format_,
        .data = device_data_.get(),
        .block_scales =
            block_scales_.empty() ? nullptr : device_block_scales_.get(),
        .row_scales = row_scales_.empty() ? nullptr : device_row_scales_.get(),
        .rows = rows_,
        .cols = cols_};
  }

  // The weight, by the definition of the format.
  float At(int row, int col) const {
    const int64_t i = int64_t{row} * cols_ + col;
    if (format_ == WeightFormat::kBf16) {
      Bf16 v;
      std::memcpy(&v, &data_[i * 2], 2);
      return ToFloat(v);
    }
    if (format_ == WeightFormat::kFp8) {
      return row_scales_[row] * ToFloat(static_cast<Fp8>(data_[i]));
    }
    const auto d = static_cast<float>(
        HalfValue(static_cast<uint16_t>(block_scales_[i / 32])));
    if (format_ == WeightFormat::kQ8_0)
      return d * static_cast<int8_t>(data_[i]);
    const int pair = static_cast<int>(data_[i / 32 * 16 + i % 16]);
    return d * ((i % 32 < 16 ? pair & 15 : pair >> 4) - 8);
  }

 private:
  DeviceWeights(WeightFormat format, int rows, int cols,
                std::vector<std::byte> data, std::vector<F16> block_scales,
                std::vector<float> row_scales)
      : format_(format),
        rows_(rows),
        cols_(cols),
        data_(std::move(data)),
        block_scales_(std::move(block_scales)),
        row_scales_(std::move(row_scales)),
        device_data_(data_),
        device_block_scales_(block_scales_),
        device_row_scales_(row_scales_) {}

  static int64_t NumBlockScales(WeightFormat format, int rows, int cols) {
    return HasBlockScales(format) ? int64_t{rows} * cols / 32 : 0;
  }
  static int64_t NumRowScales(WeightFormat format, int rows) {
    return format == WeightFormat::kFp8 ? rows : 0;
  }

  static std::vector<std::byte> RandomData(WeightFormat format, int rows,
                                           int cols, std::mt19937_64& random) {
    std::vector<std::byte> data(rows * RowBytes(format, cols));
    if (format != WeightFormat::kBf16) {
      for (std::byte& b : data) {
        do {
          b = static_cast<std::byte>(random());
        } while (format == WeightFormat::kFp8 && std::isnan(ToFloat(Fp8(b))));
      }
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
  static std::vector<F16> RandomBlockScales(WeightFormat format, int rows,
                                            int cols, std::mt19937_64& random) {
    std::uniform_real_distribution<float> scale(0.005f, 0.05f);
    std::vector<F16> scales(NumBlockScales(format, rows, cols));
    for (F16& d : scales) d = F16{TruncateToHalf(scale(random))};
    if (!scales.empty()) scales[0] = F16{0x0155};
    return scales;
  }
  // Powers of two, no two neighbours alike.
  static std::vector<float> RandomRowScales(WeightFormat format, int rows,
                                            std::mt19937_64& random) {
    std::vector<float> scales(NumRowScales(format, rows));
    int exponent = -8;
    for (float& d : scales) {
      exponent = (exponent + 8 + 1 + static_cast<int>(random() % 6)) % 7 - 8;
      d = std::ldexp(1.0f, exponent);
    }
    return scales;
  }

  WeightFormat format_;
  int rows_;
  int cols_;
  std::vector<std::byte> data_;
  std::vector<F16> block_scales_;
  std::vector<float> row_scales_;
  DeviceArray<std::byte> device_data_;
  DeviceArray<F16> device_block_scales_;
  DeviceArray<float> device_row_scales_;
};

}  // namespace strata::cuda

#endif  // TESTS_KERNELS_CUDA_DEVICE_WEIGHTS_H_
