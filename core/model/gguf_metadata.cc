#include "core/model/gguf_metadata.h"

#include <limits>
#include <optional>

#include "base/check.h"
#include "core/model/file_error.h"

namespace strata {
namespace {

// The bytes of a value, the least for a string; 0 for what an array cannot
// hold.
uint64_t MinBytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
    case GgufType::kString:
      return 8;
    case GgufType::kArray:
      break;
  }
  return 0;
}

template <typename Stored, typename Wide>
std::optional<GgufValue> ReadScalar(ByteReader* reader) {
  Stored value = 0;
  if (!reader->Read(&value)) return std::nullopt;
  return static_cast<Wide>(value);
}

std::optional<GgufValue> ReadBool(ByteReader* reader) {
  uint8_t value = 0;
  if (!reader->Read(&value) || value > 1) return std::nullopt;
  return value == 1;
}

}  // namespace

absl::Status GgufMetadata::ReadPair(ByteReader* reader) {
  std::string_view key;
  uint32_t type = 0;
  if (!reader->ReadString(&key) || !reader->Read(&type)) {
    return Malformed(path_, "ends in the metadata, after ", values_.size(),
                     " keys");
  }
  if (key.empty() || key.size() > 65535) {
    return Malformed(path_, "metadata key ", Quote(key), " has ", key.size(),
                     " bytes");
  }
  STRATA_ASSIGN_OR_RETURN(const GgufValue value,
                          ReadValue(key, static_cast<GgufType>(type), reader));
  if (!values_.emplace(key, value).second) {
    return Malformed(path_, "metadata key ", Quote(key), " is there twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufValue> GgufMetadata::ReadValue(std::string_view key,
                                                  GgufType type,
                                                  ByteReader* reader) const {
  std::optional<GgufValue> value;
  switch (type) {
    case GgufType::kUint8:
      value = ReadScalar<uint8_t, uint64_t>(reader);
      break;
    case GgufType::kInt8:
      value = ReadScalar<int8_t, int64_t>(reader);
      break;
    case GgufType::kUint16:
      value = ReadScalar<uint16_t, uint64_t>(reader);
      break;
    case GgufType::kInt16:
      value = ReadScalar<int16_t, int64_t>(reader);
      break;
    case GgufType::kUint32:
      value = ReadScalar<uint32_t, uint64_t>(reader);
      break;
    case GgufType::kInt32:
      value = ReadScalar<int32_t, int64_t>(reader);
      break;
    case GgufType::kFloat32:
      value = ReadScalar<float, double>(reader);
      break;
    case GgufType::kUint64:
      value = ReadScalar<uint64_t, uint64_t>(reader);
      break;
    case GgufType::kInt64:
      value = ReadScalar<int64_t, int64_t>(reader);
      break;
    case GgufType::kFloat64:
      value = ReadScalar<double, double>(reader);
      break;
    case GgufType::kBool:
      value = ReadBool(reader);
      break;
    case GgufType::kString: {
      std::string_view text;
      if (reader->ReadString(&text)) value = text;
      break;
    }
    case GgufType::kArray: {
      STRATA_ASSIGN_OR_RETURN(value, ReadArray(key, reader));
      break;
    }
    default:
      return Malformed(path_, "metadata key ", Quote(key),
                       " has the unknown type ", static_cast<uint32_t>(type));
  }
  if (!value) {
    return Malformed(path_, "the value of metadata key ", Quote(key),
                     " is malformed or longer than the file");
  }
  return *value;
}

absl::StatusOr<GgufArray> GgufMetadata::ReadArray(std::string_view key,
                                                  ByteReader* reader) const {
  uint32_t type = 0;
  GgufArray array;
  if (!reader->Read(&type) || !reader->Read(&array.count)) {
    return Malformed(path_, "ends in the array ", Quote(key));
  }
  array.type = static_cast<GgufType>(type);
  const uint64_t min_bytes = MinBytes(array.type);
  if (min_bytes == 0) {
    return Malformed(path_, "array ", Quote(key), " has elements of type ",
                     type, "; scalars and strings are allowed");
  }
  if (array.count > reader->left() / min_bytes) {
    return Malformed(path_, "array ", Quote(key), " of ", array.count,
                     " elements is longer than the file");
  }
  if (array.type != GgufType::kString) {
    STRATA_CHECK(reader->ReadBytes(array.count * min_bytes, &array.bytes));
    return array;
  }
  ByteReader strings = *reader;
  for (uint64_t i = 0; i < array.count; ++i) {
    std::string_view text;
    if (!strings.ReadString(&text)) {
      return Malformed(path_, "element ", i, " of array ", Quote(key),
                       " is longer than the file");
    }
  }
  STRATA_CHECK(
      reader->ReadBytes(strings.position() - reader->position(), &array.bytes));
  return array;
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

absl::Status GgufMetadata::WrongType(std::string_view key,
                                     std::string_view expected) const {
  if (!Has(key)) return Malformed(path_, key, " is missing");
  return Malformed(path_, key, " is not ", expected);
}

absl::StatusOr<int> GgufMetadata::Integer(std::string_view key) const {
  constexpr int kMax = std::numeric_limits<int>::max();
  if (const GgufValue* value = Find(key)) {
    const auto* wide = std::get_if<uint64_t>(value);
    if (wide != nullptr && *wide <= uint64_t{kMax})
      return static_cast<int>(*wide);
    const auto* narrow = std::get_if<int64_t>(value);
    if (narrow != nullptr && *narrow >= 0 && *narrow <= kMax)
      return static_cast<int>(*narrow);
  }
  return WrongType(key, "an integer in [0, 2^31)");
}

absl::StatusOr<int> GgufMetadata::IntegerOr(std::string_view key,
                                            int fallback) const {
  if (!Has(key)) return fallback;
  return Integer(key);
}

absl::StatusOr<double> GgufMetadata::Number(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value != nullptr && std::holds_alternative<double>(*value))
    return std::get<double>(*value);
  return WrongType(key, "a floating-point number");
}

absl::StatusOr<double> GgufMetadata::NumberOr(std::string_view key,
                                              double fallback) const {
  if (!Has(key)) return fallback;
  return Number(key);
}

absl::StatusOr<bool> GgufMetadata::BoolOr(std::string_view key,
                                          bool fallback) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return fallback;
  if (std::holds_alternative<bool>(*value)) return std::get<bool>(*value);
  return WrongType(key, "a bool");
}

absl::StatusOr<std::string_view> GgufMetadata::StringOr(
    std::string_view key, std::string_view fallback) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return fallback;
  if (std::holds_alternative<std::string_view>(*value))
    return std::get<std::string_view>(*value);
  return WrongType(key, "a string");
}

absl::StatusOr<std::vector<std::string_view>> GgufMetadata::Strings(
    std::string_view key) const {
  const GgufValue* value = Find(key);
  const auto* array =
      value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != GgufType::kString) {
    return WrongType(key, "an array of strings");
  }
  std::vector<std::string_view> strings(array->count);
  ByteReader reader(array->bytes);
  for (std::string_view& text : strings) STRATA_CHECK(reader.ReadString(&text));
  return strings;
}

absl::StatusOr<std::vector<int32_t>> GgufMetadata::Int32s(
    std::string_view key) const {
  const GgufValue* value = Find(key);
  const auto* array =
      value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  if (array == nullptr ||
      (array->type != GgufType::kInt32 && array->type != GgufType::kUint32)) {
    return WrongType(key, "an array of 32-bit integers");
  }
  std::vector<int32_t> integers(array->count);
  ByteReader reader(array->bytes);
  for (int32_t& integer : integers) STRATA_CHECK(reader.Read(&integer));
  return integers;
}

}  // namespace strata
