#ifndef CORE_TEXT_JSON_FIELDS_H_
#define CORE_TEXT_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/quote.h"

namespace strata {

// Reading fields of a JSON object whose types are not trusted.  `key` names the
// field in errors.

// Null for a field that is missing or null, or if `object` is not an object.
inline const nlohmann::json* FindField(const nlohmann::json& object,
                                       const char* key) {
  if (!object.is_object()) return nullptr;
  const auto field = object.find(key);
  return field == object.end() || field->is_null() ? nullptr : &*field;
}

inline absl::StatusOr<bool> GetBool(const nlohmann::json& object,
                                    const char* key, bool otherwise) {
  const nlohmann::json* field = FindField(object, key);
  if (field == nullptr) return otherwise;
  if (!field->is_boolean()) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " is not true or false"));
  }
  return field->get<bool>();
}

// "" where the field is missing or null.
inline absl::StatusOr<std::string> GetText(const nlohmann::json& object,
                                           const char* key) {
  const nlohmann::json* field = FindField(object, key);
  if (field == nullptr) return std::string();
  if (!field->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(key, " is not a string"));
  }
  return field->get<std::string>();
}

// A token id; ids are bounded so that a hostile one does not cost memory.
inline absl::StatusOr<int32_t> ToTokenId(const nlohmann::json& value) {
  constexpr int64_t kMaxIds = int64_t{1} << 22;
  if (!value.is_number_integer() || value < 0 || value >= kMaxIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("token id ", value.dump().substr(0, 40),
                     " is not a number from 0 to ", kMaxIds - 1));
  }
  return value.get<int32_t>();
}

}  // namespace strata

#endif  // CORE_TEXT_JSON_FIELDS_H_
