#ifndef CORE_MODEL_FILE_ERROR_H_
#define CORE_MODEL_FILE_ERROR_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/quote.h"

// Errors of model files: one line, "PATH: what is wrong".
namespace strata {

// All parts in one string.  absl::StrCat of this Abseil, built for C++14, does
// not take std::string_view.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  const auto printable = []<typename T>(const T& part) -> decltype(auto) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      return std::string(part);
    } else {
      return (part);
    }
  };
  return absl::StrCat(printable(parts)...);
}

// The file contradicts itself or its format.
template <typename... Parts>
absl::Status Malformed(std::string_view path, const Parts&... parts) {
  return absl::InvalidArgumentError(Concat(path, ": ", parts...));
}

// The file may be right, but Strata does not run what it asks for.
template <typename... Parts>
absl::Status Unsupported(std::string_view path, const Parts&... parts) {
  return absl::UnimplementedError(Concat(path, ": ", parts...));
}

// `status` with the path in front of its message.
inline absl::Status InFile(std::string_view path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      Concat(path, ": ", std::string(status.message())));
}

}  // namespace strata

#endif  // CORE_MODEL_FILE_ERROR_H_
