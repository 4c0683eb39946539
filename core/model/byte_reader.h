#ifndef CORE_MODEL_BYTE_READER_H_
#define CORE_MODEL_BYTE_READER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace strata {

static_assert(std::endian::native == std::endian::little,
              "the files are little-endian");

// Reads little-endian values one after the other and never past the end: what
// does not fit is not read, and the call returns false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  template <typename T>
  bool Read(T* value) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (left() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  bool ReadBytes(uint64_t count, std::span<const std::byte>* bytes) {
    if (left() < count) return false;
    *bytes = bytes_.subspan(position_, count);
    position_ += count;
    return true;
  }

  // A string of GGUF: u64 length, bytes.
  bool ReadString(std::string_view* text) {
    uint64_t length = 0;
    std::span<const std::byte> bytes;
    if (!Read(&length) || !ReadBytes(length, &bytes)) return false;
    *text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }

 private:
  const std::span<const std::byte> bytes_;
  uint64_t position_ = 0;  // <= bytes_.size()
};

}  // namespace strata

#endif  // CORE_MODEL_BYTE_READER_H_
