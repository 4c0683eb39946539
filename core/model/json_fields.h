#ifndef CORE_MODEL_JSON_FIELDS_H_
#define CORE_MODEL_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata {

// Parses `text`, which must be one JSON object.  Refused: doubled keys, nesting
// deeper than 16, more than 2^21 values.  Errors begin with `path`.
absl::StatusOr<nlohmann::json> ParseJsonObject(const std::string& path,
                                               std::string_view text);

// Typed reading of the fields of one object.  A field that is null counts as
// absent.  Errors are INVALID_ARGUMENT, "PATH: PREFIX.KEY is ..., expected
// ...".
//
// Owns nothing: path and object must outlive it.
class JsonFields {
 public:
  // REQUIRES: object.is_object().
  JsonFields(std::string_view path, const nlohmann::json& object,
             std::string prefix = "");

  std::string_view path() const { return path_; }
  // The key as errors write it.
  std::string Name(std::string_view key) const;

  const nlohmann::json* Find(std::string_view key) const;  // null: absent
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  bool HasKey(std::string_view key) const {
    return object_.contains(key);
  }  // null or not

  absl::StatusOr<int> Integer(std::string_view key) const;
  absl::StatusOr<int> IntegerOr(std::string_view key, int fallback) const;
  absl::StatusOr<double> Number(std::string_view key) const;
  absl::StatusOr<double> NumberOr(std::string_view key, double fallback) const;
  absl::StatusOr<bool> BoolOr(std::string_view key, bool fallback) const;
  absl::StatusOr<std::string> StringOr(std::string_view key,
                                       std::string_view fallback) const;

 private:
  absl::Status WrongType(std::string_view key, std::string_view expected) const;

  const std::string_view path_;
  const nlohmann::json& object_;
  const std::string prefix_;
};

}  // namespace strata

#endif  // CORE_MODEL_JSON_FIELDS_H_
