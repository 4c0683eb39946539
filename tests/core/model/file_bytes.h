#ifndef TESTS_CORE_MODEL_FILE_BYTES_H_
#define TESTS_CORE_MODEL_FILE_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Writes model files byte by byte, wrong ones too.
namespace strata {

// A value as its little-endian bytes.
template <typename T>
std::string Bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A string of GGUF.
inline std::string GgufString(std::string_view text) {
  return Bytes<uint64_t>(text.size()) + std::string(text);
}

// A .safetensors file: length, header, data.
inline std::string Safetensors(const std::string& header,
                               const std::string& data) {
  return Bytes<uint64_t>(header.size()) + header + data;
}

// A GGUF file from its parts; tensors are laid out in order at aligned offsets.
class GgufBuilder {
 public:
  // Numbers of metadata types.
  enum Type : uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64
  };

  GgufBuilder& Pair(std::string_view key, uint32_t type,
                    std::string_view value) {
    pairs_ += GgufString(key) + Bytes(type) + std::string(value);
    ++pair_count;
    return *this;
  }
  GgufBuilder& U32(std::string_view key, uint32_t v) {
    return Pair(key, kU32, Bytes(v));
  }
  GgufBuilder& F32(std::string_view key, float v) {
    return Pair(key, kF32, Bytes(v));
  }
  GgufBuilder& Bool(std::string_view key, bool v) {
    return Pair(key, kBool, Bytes<uint8_t>(v));
  }
  GgufBuilder& String(std::string_view key, std::string_view v) {
    return Pair(key, kString, GgufString(v));
  }
  GgufBuilder& Strings(std::string_view key,
                       const std::vector<std::string>& values) {
    std::string bytes =
        Bytes<uint32_t>(kString) + Bytes<uint64_t>(values.size());
    for (const std::string& v : values) bytes += GgufString(v);
    return Pair(key, kArray, bytes);
  }
  GgufBuilder& Int32s(std::string_view key,
                      const std::vector<int32_t>& values) {
    std::string bytes = Bytes<uint32_t>(kI32) + Bytes<uint64_t>(values.size());
    for (const int32_t v : values) bytes += Bytes(v);
    return Pair(key, kArray, bytes);
  }
  // `dims` innermost first, as in the file.
  GgufBuilder& Tensor(std::string_view name, const std::vector<uint64_t>& dims,
                      uint32_t type, std::string_view data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    TensorAt(name, dims, type, data_.size());
    data_ += data;
    return *this;
  }
  // Only the description.
  GgufBuilder& TensorAt(std::string_view name,
                        const std::vector<uint64_t>& dims, uint32_t type,
                        uint64_t offset) {
    infos_ += GgufString(name) + Bytes(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) infos_ += Bytes(dim);
    infos_ += Bytes(type) + Bytes(offset);
    ++tensor_count;
    return *this;
  }

  // Everything before the data.
  std::string Head() const {
    return magic + Bytes(version) + Bytes(tensor_count) + Bytes(pair_count) +
           pairs_ + infos_;
  }
  std::string Build() const {
    std::string file = Head();
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t tensor_count = 0;
  uint64_t pair_count = 0;
  size_t alignment = 32;  // of the layout; the metadata key is the caller's

 private:
  std::string pairs_, infos_, data_;
};

}  // namespace strata

#endif  // TESTS_CORE_MODEL_FILE_BYTES_H_
