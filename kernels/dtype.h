#ifndef KERNELS_DTYPE_H_
#define KERNELS_DTYPE_H_

#include <cstddef>
#include <cstdint>

namespace strata {

// Element types of weights as they lie in files.  The quantised ones are those
// of GGUF: blocks of 32 consecutive elements of a row, each with an f16 scale
// d.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,  // {f16 d; int8 q[32]}: w = d * q
  kQ4_0,  // {f16 d; uint8 q[16]}: w = d * (nibble - 8); low nibbles first 16,
          // high last 16
  kQ4_1,  // {f16 d; f16 m; uint8 q[16]}: w = d * nibble + m
};

// An f16 number (IEEE 754 binary16) as its bits.
enum class F16 : uint16_t {};

// Elements that are stored together: 1, or 32 for the quantised types.
constexpr int BlockElements(DType type) {
  return type >= DType::kQ8_0 ? 32 : 1;
}

constexpr int BlockBytes(DType type) {
  switch (type) {
    case DType::kF32:
      return 4;
    case DType::kF16:
      return 2;
    case DType::kBF16:
      return 2;
    case DType::kQ8_0:
      return 34;
    case DType::kQ4_0:
      return 18;
    case DType::kQ4_1:
      return 20;
  }
  return 0;
}

// As the files' formats spell it: "BF16", "Q4_1", ...
constexpr const char* DTypeName(DType type) {
  switch (type) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kQ8_0:
      return "Q8_0";
    case DType::kQ4_0:
      return "Q4_0";
    case DType::kQ4_1:
      return "Q4_1";
  }
  return "?";
}

// What each of several devices that compute one model together has of a weight
// (kernels/parallel).
enum class Split : uint8_t {
  kWhole,    // all of it
  kOutputs,  // a part of a matrix's rows or of a vector's elements
  kInputs,   // a part of a matrix's columns
};

// A matrix or vector of weights as it lies in a mapped file; owns nothing.
// data is [rows, cols], row-major, without padding; cols % BlockElements(type)
// == 0. A vector has rows == 1.
struct WeightView {
  const std::byte* data = nullptr;  // null: absent
  DType type = DType::kF32;
  int64_t rows = 0;  // outputs
  int64_t cols = 0;  // inputs
  // > 0: each run of this many rows (one head) is stored in the order
  // 0, d/2, 1, d/2 + 1, ... (GGUF's Q and K of the llama architecture, which
  // rotates neighbours); row r of the matrix meant is StoredRow(r) here.
  int interleaved_head_dim = 0;
  Split split = Split::kWhole;
  int split_unit = 1;  // outputs or inputs that one device has together

  int64_t RowBytes() const {
    return cols / BlockElements(type) * BlockBytes(type);
  }
  int64_t NumBytes() const { return rows * RowBytes(); }
  int64_t StoredRow(int64_t row) const {
    if (interleaved_head_dim == 0) return row;
    const int64_t half = interleaved_head_dim / 2;
    const int64_t head = row / interleaved_head_dim,
                  i = row % interleaved_head_dim;
    return head * interleaved_head_dim +
           (i < half ? 2 * i : 2 * (i - half) + 1);
  }
};

}  // namespace strata

#endif  // KERNELS_DTYPE_H_
