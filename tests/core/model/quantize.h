#ifndef TESTS_CORE_MODEL_QUANTIZE_H_
#define TESTS_CORE_MODEL_QUANTIZE_H_

#include <cstdint>
#include <span>
#include <string>

#include "kernels/dtype.h"

namespace strata {

// The nearest binary16, ties to even.
uint16_t ToHalf(float value);

// `values` in the elements of `type`, rounded to nearest with ggml's choice of
// scales (quantize_row_*_ref). REQUIRES: values.size() % BlockElements(type) ==
// 0.
std::string Quantize(DType type, std::span<const float> values);

}  // namespace strata

#endif  // TESTS_CORE_MODEL_QUANTIZE_H_
