#ifndef CORE_MODEL_STORED_TENSOR_H_
#define CORE_MODEL_STORED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/dtype.h"

namespace strata {

// A tensor as a file describes it.  Its bytes lie in the mapped file and have
// the size that shape and type demand.  Owns no bytes; lives as long as the
// MappedFile.
struct StoredTensor {
  std::string_view file;       // the path of the file
  std::string_view type_name;  // as the format spells it: "BF16", "Q4_K", ...
  std::optional<DType>
      type;  // absent: a type that Strata does not compute with
  std::vector<int64_t> shape;  // outermost first, row-major
  std::span<const std::byte> bytes;
};

using TensorMap = std::map<std::string, StoredTensor, std::less<>>;  // by name

// "[32, 64]"
std::string ShapeText(std::span<const int64_t> shape);

// INVALID_ARGUMENT if two tensors of one file share bytes.
absl::Status CheckNoOverlap(const TensorMap& tensors);

}  // namespace strata

#endif  // CORE_MODEL_STORED_TENSOR_H_
