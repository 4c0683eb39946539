#include "core/model/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/json_fields.h"

namespace strata {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "the files are little-endian");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDims = 8;

struct ElementType {
  std::string_view name;
  int bits;
  std::optional<DType> type;
};

constexpr ElementType kElementTypes[] = {
    {"BF16", 16, DType::kBF16},   {"F16", 16, DType::kF16},
    {"F32", 32, DType::kF32},     {"BOOL", 8, std::nullopt},
    {"U8", 8, std::nullopt},      {"I8", 8, std::nullopt},
    {"F4", 4, std::nullopt},      {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F8_E5M2", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},
    {"I16", 16, std::nullopt},    {"U16", 16, std::nullopt},
    {"I32", 32, std::nullopt},    {"U32", 32, std::nullopt},
    {"I64", 64, std::nullopt},    {"U64", 64, std::nullopt},
    {"F64", 64, std::nullopt},    {"C64", 64, std::nullopt},
};

const ElementType* FindElementType(std::string_view name) {
  const auto* it = std::ranges::find(kElementTypes, name, &ElementType::name);
  return it == std::end(kElementTypes) ? nullptr : it;
}

// False unless `value` is an array of at most max_count unsigned integers that
// fit int64.
bool ReadIntegers(const json& value, size_t max_count,
                  std::vector<int64_t>* out) {
  if (!value.is_array() || value.size() > max_count) return false;
  for (const json& item : value) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX)
      return false;
    out->push_back(static_cast<int64_t>(item.get<uint64_t>()));
  }
  return true;
}

// False if the product overflows.
bool NumBits(const std::vector<int64_t>& shape, int element_bits,
             int64_t* bits) {
  *bits = element_bits;
  for (const int64_t dim : shape) {
    if (__builtin_mul_overflow(*bits, dim, bits)) return false;
  }
  return true;
}

absl::StatusOr<StoredTensor> ReadTensor(const MappedFile& file,
                                        std::span<const std::byte> data,
                                        const std::string& name,
                                        const json& entry) {
  const std::string where = Concat(file.path(), ": tensor ", Quote(name));
  if (!entry.is_object()) return Malformed(where, "its entry is not an object");
  STRATA_ASSIGN_OR_RETURN(const std::string type_name,
                          JsonFields(where, entry).StringOr("dtype", ""));
  const ElementType* type = FindElementType(type_name);
  if (type == nullptr)
    return Malformed(where, "unknown dtype ", Quote(type_name));

  StoredTensor tensor{.file = file.path(),
                      .type_name = type->name,
                      .type = type->type,
                      .shape = {},
                      .bytes = {}};
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !ReadIntegers(*shape, kMaxDims, &tensor.shape)) {
    return Malformed(where, "shape is not a list of at most ", kMaxDims,
                     " sizes");
  }
  std::vector<int64_t> offsets;
  const auto data_offsets = entry.find("data_offsets");
  if (data_offsets == entry.end() ||
      !ReadIntegers(*data_offsets, 2, &offsets) || offsets.size() != 2) {
    return Malformed(where, "data_offsets is not a list of two offsets");
  }
  const auto [begin, end] = std::pair(offsets[0], offsets[1]);
  const auto data_bytes = static_cast<int64_t>(data.size());
  if (begin > end || end > data_bytes) {
    return Malformed(where, "data_offsets ", ShapeText(offsets),
                     " are outside the ", data_bytes, " bytes of data");
  }
  int64_t bits = 0;
  if (!NumBits(tensor.shape, type->bits, &bits)) {
    return Malformed(where, "shape ", ShapeText(tensor.shape), " overflows");
  }
  if (bits % 8 != 0 || bits / 8 != end - begin) {
    return Malformed(where, type_name, " ", ShapeText(tensor.shape),
                     " does not take the ", end - begin,
                     " bytes of its data_offsets");
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// As a whole: no overlaps, no gaps.
absl::Status CheckCoverage(const MappedFile& file,
                           std::span<const std::byte> data,
                           const TensorMap& tensors) {
  STRATA_RETURN_IF_ERROR(CheckNoOverlap(tensors));
  size_t claimed = 0;
  for (const auto& [name, tensor] : tensors) claimed += tensor.bytes.size();
  if (claimed == data.size()) return absl::OkStatus();
  return Malformed(file.path(), "has ", data.size(),
                   " bytes of data, its tensors take ", claimed);
}

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

absl::StatusOr<SafetensorsSet> OpenShards(const std::string& directory,
                                          const MappedFile& index) {
  STRATA_ASSIGN_OR_RETURN(const json root,
                          ParseJsonObject(index.path(), index.text()));
  const auto weight_map = root.find("weight_map");
  if (weight_map == root.end() || !weight_map->is_object() ||
      weight_map->empty()) {
    return Malformed(index.path(), "weight_map is missing or empty");
  }
  SafetensorsSet set;
  std::map<std::string, TensorMap> shards;  // by file name
  for (const auto& [name, shard] : weight_map->items()) {
    if (!shard.is_string() ||
        !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return Malformed(index.path(), "weight_map of ", Quote(name),
                       " is not the plain name of a file");
    }
    const std::string& shard_name = shard.get_ref<const std::string&>();
    auto it = shards.find(shard_name);
    if (it == shards.end()) {
      STRATA_ASSIGN_OR_RETURN(auto file,
                              MappedFile::Open(directory + "/" + shard_name));
      STRATA_ASSIGN_OR_RETURN(TensorMap tensors, ReadSafetensors(*file));
      it = shards.emplace(shard_name, std::move(tensors)).first;
      set.files.push_back(std::move(file));
    }
    const auto tensor = it->second.find(name);
    if (tensor == it->second.end()) {
      return Malformed(index.path(), "weight_map puts ", Quote(name), " into ",
                       Quote(shard_name), ", which lacks it");
    }
    set.tensors.insert(*tensor);
  }
  return set;
}

}  // namespace

absl::StatusOr<TensorMap> ReadSafetensors(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    return Malformed(file.path(), "is too short for a safetensors header");
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes ||
      header_bytes > bytes.size() - sizeof(header_bytes)) {
    return Malformed(file.path(), "header of ", header_bytes,
                     " bytes is longer than ",
                     header_bytes > kMaxHeaderBytes ? "100 MB" : "the file");
  }
  STRATA_ASSIGN_OR_RETURN(
      const json header,
      ParseJsonObject(file.path(),
                      file.text().substr(sizeof(header_bytes), header_bytes)));
  const std::span<const std::byte> data =
      bytes.subspan(sizeof(header_bytes) + header_bytes);
  TensorMap tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    STRATA_ASSIGN_OR_RETURN(StoredTensor tensor,
                            ReadTensor(file, data, name, entry));
    tensors.emplace(name, std::move(tensor));
  }
  STRATA_RETURN_IF_ERROR(CheckCoverage(file, data, tensors));
  return tensors;
}

absl::StatusOr<SafetensorsSet> OpenSafetensors(const std::string& directory) {
  const std::string single = directory + "/model.safetensors";
  auto file = MappedFile::Open(single);
  if (file.ok()) {
    SafetensorsSet set;
    STRATA_ASSIGN_OR_RETURN(set.tensors, ReadSafetensors(**file));
    set.files.push_back(*std::move(file));
    return set;
  }
  if (!absl::IsNotFound(file.status())) return file.status();
  auto index = MappedFile::Open(single + ".index.json");
  if (absl::IsNotFound(index.status())) {
    return absl::NotFoundError(Concat(
        directory,
        ": has neither model.safetensors nor model.safetensors.index.json"));
  }
  if (!index.ok()) return index.status();
  return OpenShards(directory, **index);
}

}  // namespace strata
