#ifndef CORE_MODEL_GGUF_METADATA_H_
#define CORE_MODEL_GGUF_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/byte_reader.h"

namespace strata {

// Types of metadata values, numbered as in the file.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// `count` values of `type` that lie one after the other in the file; all of
// them are there.
struct GgufArray {
  GgufType type = GgufType::kUint8;
  uint64_t count = 0;
  std::span<const std::byte> bytes;
};

// All integers are widened, all floats are double.
using GgufValue =
    std::variant<bool, uint64_t, int64_t, double, std::string_view, GgufArray>;

// The key-value pairs of a GGUF file, read by name and type.  Errors are
// INVALID_ARGUMENT, "PATH: KEY is ...".
//
// Owns no strings: the mapped file must outlive it.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string_view path) : path_(path) {}

  // Reads the next pair of the file.
  absl::Status ReadPair(ByteReader* reader);

  std::string_view path() const { return path_; }
  const GgufValue* Find(std::string_view key) const;  // null: absent
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // An integer of any width in [0, 2^31).
  absl::StatusOr<int> Integer(std::string_view key) const;
  absl::StatusOr<int> IntegerOr(std::string_view key, int fallback) const;
  absl::StatusOr<double> Number(std::string_view key) const;
  absl::StatusOr<double> NumberOr(std::string_view key, double fallback) const;
  absl::StatusOr<bool> BoolOr(std::string_view key, bool fallback) const;
  absl::StatusOr<std::string_view> StringOr(std::string_view key,
                                            std::string_view fallback) const;
  absl::StatusOr<std::vector<std::string_view>> Strings(
      std::string_view key) const;
  absl::StatusOr<std::vector<int32_t>> Int32s(std::string_view key) const;

 private:
  absl::Status WrongType(std::string_view key, std::string_view expected) const;
  absl::StatusOr<GgufValue> ReadValue(std::string_view key, GgufType type,
                                      ByteReader* reader) const;
  absl::StatusOr<GgufArray> ReadArray(std::string_view key,
                                      ByteReader* reader) const;

  const std::string_view path_;
  std::map<std::string_view, GgufValue, std::less<>> values_;
};

}  // namespace strata

#endif  // CORE_MODEL_GGUF_METADATA_H_
