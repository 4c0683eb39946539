#ifndef CORE_MODEL_FILE_ERROR_H_
#define CORE_MODEL_FILE_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

// Errors of model files: one line, "PATH: what is wrong".
namespace strata {

// The file contradicts itself or its format.
template <typename... Parts>
absl::Status Malformed(std::string_view path, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", parts...));
}

// The file may be right, but Strata does not run what it asks for.
template <typename... Parts>
absl::Status Unsupported(std::string_view path, const Parts&... parts) {
  return absl::UnimplementedError(absl::StrCat(path, ": ", parts...));
}

// `status` with the path in front of its message.
inline absl::Status InFile(std::string_view path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

// Text from a file, safe to print in one line: escaped, cut to 80 bytes.
inline std::string Quoted(std::string_view text) {
  const bool is_cut = text.size() > 80;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), is_cut ? "...\"" : "\"");
}

}  // namespace strata

#endif  // CORE_MODEL_FILE_ERROR_H_
