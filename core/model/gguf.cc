#include "core/model/gguf.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"

namespace strata {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMaxTensors = 1 << 16;
constexpr uint64_t kMaxPairs = 1 << 16;
constexpr uint32_t kMaxDims = 4;
constexpr int kDefaultAlignment = 32;
constexpr uint64_t kMinPairBytes = 8 + 4 + 1;  // length of the key, type, value
constexpr uint64_t kMinTensorBytes =
    8 + 4 + 8 + 4 + 8;  // length of the name ... offset

struct TensorType {
  uint32_t number;
  std::string_view name;
  int block_elements;
  int block_bytes;
  std::optional<DType> type;
};

// The types of ggml (gguf/constants.py, GGML_QUANT_SIZES).
constexpr TensorType kTensorTypes[] = {
    {0, "F32", 1, 4, DType::kF32},
    {1, "F16", 1, 2, DType::kF16},
    {2, "Q4_0", 32, 18, DType::kQ4_0},
    {3, "Q4_1", 32, 20, DType::kQ4_1},
    {6, "Q5_0", 32, 22, std::nullopt},
    {7, "Q5_1", 32, 24, std::nullopt},
    {8, "Q8_0", 32, 34, DType::kQ8_0},
    {9, "Q8_1", 32, 36, std::nullopt},
    {10, "Q2_K", 256, 84, std::nullopt},
    {11, "Q3_K", 256, 110, std::nullopt},
    {12, "Q4_K", 256, 144, std::nullopt},
    {13, "Q5_K", 256, 176, std::nullopt},
    {14, "Q6_K", 256, 210, std::nullopt},
    {15, "Q8_K", 256, 292, std::nullopt},
    {16, "IQ2_XXS", 256, 66, std::nullopt},
    {17, "IQ2_XS", 256, 74, std::nullopt},
    {18, "IQ3_XXS", 256, 98, std::nullopt},
    {19, "IQ1_S", 256, 50, std::nullopt},
    {20, "IQ4_NL", 32, 18, std::nullopt},
    {21, "IQ3_S", 256, 110, std::nullopt},
    {22, "IQ2_S", 256, 82, std::nullopt},
    {23, "IQ4_XS", 256, 136, std::nullopt},
    {24, "I8", 1, 1, std::nullopt},
    {25, "I16", 1, 2, std::nullopt},
    {26, "I32", 1, 4, std::nullopt},
    {27, "I64", 1, 8, std::nullopt},
    {28, "F64", 1, 8, std::nullopt},
    {29, "IQ1_M", 256, 56, std::nullopt},
    {30, "BF16", 1, 2, DType::kBF16},
    {34, "TQ1_0", 256, 54, std::nullopt},
    {35, "TQ2_0", 256, 66, std::nullopt},
    {39, "MXFP4", 32, 17, std::nullopt},
    {40, "NVFP4", 64, 36, std::nullopt},
    {41, "Q1_0", 128, 18, std::nullopt},
};

const TensorType* FindTensorType(uint32_t number) {
  const auto* it = std::ranges::find(kTensorTypes, number, &TensorType::number);
  return it == std::end(kTensorTypes) ? nullptr : it;
}

struct Counts {
  uint64_t tensors = 0;
  uint64_t pairs = 0;
};

absl::StatusOr<Counts> ReadHeader(std::string_view path, ByteReader* reader) {
  uint32_t magic = 0, version = 0;
  Counts counts;
  if (!reader->Read(&magic) || magic != kMagic) {
    return Malformed(path,
                     "is not a GGUF file: it does not begin with \"GGUF\"");
  }
  if (!reader->Read(&version) || !reader->Read(&counts.tensors) ||
      !reader->Read(&counts.pairs)) {
    return Malformed(path, "ends in the header");
  }
  if (version == 0x02000000 || version == 0x03000000) {
    return Unsupported(path, "big-endian GGUF is not supported");
  }
  if (version != 2 && version != 3) {
    return Unsupported(path, "GGUF version ", version,
                       " is not supported; 2 and 3 are");
  }
  if (counts.tensors > kMaxTensors ||
      counts.tensors > reader->left() / kMinTensorBytes) {
    return Malformed(path, "cannot hold ", counts.tensors, " tensors");
  }
  if (counts.pairs > kMaxPairs ||
      counts.pairs > reader->left() / kMinPairBytes) {
    return Malformed(path, "cannot hold ", counts.pairs, " metadata keys");
  }
  return counts;
}

// A description before the place of the data is known.
struct TensorInfo {
  std::string_view name;
  StoredTensor tensor;  // without bytes
  uint64_t offset = 0;  // from the start of the data
  uint64_t num_bytes = 0;
};

// Fills the shape and num_bytes.
absl::Status ReadDims(std::string_view where, uint32_t num_dims,
                      const TensorType& type, std::span<const uint64_t> dims,
                      TensorInfo* info) {
  uint64_t elements = 1;
  for (uint32_t i = 0; i < num_dims; ++i) {
    if (dims[i] == 0) return Malformed(where, "dimension ", i, " is 0");
    if (__builtin_mul_overflow(elements, dims[i], &elements) ||
        elements > INT64_MAX) {
      return Malformed(where, "the product of its dimensions overflows");
    }
  }
  if (dims[0] % type.block_elements != 0) {
    return Malformed(where, "rows of ", dims[0],
                     " elements are not whole blocks of ", type.block_elements,
                     " (", type.name, ")");
  }
  if (__builtin_mul_overflow(elements / type.block_elements,
                             uint64_t(type.block_bytes), &info->num_bytes)) {
    return Malformed(where, "its size overflows");
  }
  info->tensor.shape.assign(std::reverse_iterator(dims.begin() + num_dims),
                            std::reverse_iterator(dims.begin()));
  return absl::OkStatus();
}

absl::StatusOr<TensorInfo> ReadTensorInfo(const MappedFile& file,
                                          ByteReader* reader) {
  const std::string ends =
      Concat(file.path(), ": ends in the descriptions of tensors");
  TensorInfo info;
  uint32_t num_dims = 0, type_number = 0;
  if (!reader->ReadString(&info.name) || !reader->Read(&num_dims)) {
    return absl::InvalidArgumentError(ends);
  }
  const std::string where = Concat(file.path(), ": tensor ", Quote(info.name));
  if (num_dims < 1 || num_dims > kMaxDims) {
    return Malformed(where, "has ", num_dims, " dimensions; 1 to ", kMaxDims,
                     " are allowed");
  }
  uint64_t dims[kMaxDims] = {};
  for (uint32_t i = 0; i < num_dims; ++i) {
    if (!reader->Read(&dims[i])) return absl::InvalidArgumentError(ends);
  }
  if (!reader->Read(&type_number) || !reader->Read(&info.offset)) {
    return absl::InvalidArgumentError(ends);
  }
  const TensorType* type = FindTensorType(type_number);
  if (type == nullptr)
    return Malformed(where, "has the unknown type ", type_number);
  info.tensor.file = file.path();
  info.tensor.type_name = type->name;
  info.tensor.type = type->type;
  STRATA_RETURN_IF_ERROR(ReadDims(where, num_dims, *type, dims, &info));
  return info;
}

absl::StatusOr<uint64_t> ReadAlignment(const GgufMetadata& metadata) {
  STRATA_ASSIGN_OR_RETURN(
      const int alignment,
      metadata.IntegerOr("general.alignment", kDefaultAlignment));
  if (alignment < 8 || !std::has_single_bit(static_cast<uint32_t>(alignment))) {
    return Malformed(metadata.path(), "general.alignment is ", alignment,
                     ", expected a power of two of at least 8");
  }
  return static_cast<uint64_t>(alignment);
}

// Gives the tensor its bytes.
absl::Status Locate(const MappedFile& file, uint64_t data_start,
                    uint64_t alignment, TensorInfo* info) {
  const std::string where = Concat(file.path(), ": tensor ", Quote(info->name));
  const uint64_t file_bytes = file.bytes().size();
  const uint64_t data_bytes = file_bytes - std::min(file_bytes, data_start);
  if (info->offset % alignment != 0) {
    return Malformed(where, "its offset ", info->offset,
                     " is not a multiple of ", alignment);
  }
  if (info->offset > data_bytes ||
      info->num_bytes > data_bytes - info->offset) {
    return Malformed(where, info->num_bytes, " bytes at offset ", info->offset,
                     " are outside the ", data_bytes, " bytes of data");
  }
  info->tensor.bytes =
      file.bytes().subspan(data_start + info->offset, info->num_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Gguf> ReadGguf(const MappedFile& file) {
  ByteReader reader(file.bytes());
  STRATA_ASSIGN_OR_RETURN(const Counts counts,
                          ReadHeader(file.path(), &reader));
  Gguf gguf{.metadata = GgufMetadata(file.path()), .tensors = {}};
  for (uint64_t i = 0; i < counts.pairs; ++i) {
    STRATA_RETURN_IF_ERROR(gguf.metadata.ReadPair(&reader));
  }
  STRATA_ASSIGN_OR_RETURN(const uint64_t alignment,
                          ReadAlignment(gguf.metadata));
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < counts.tensors; ++i) {
    STRATA_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo(file, &reader));
    infos.push_back(std::move(info));
  }
  const uint64_t data_start =
      (reader.position() + alignment - 1) / alignment * alignment;
  for (TensorInfo& info : infos) {
    STRATA_RETURN_IF_ERROR(Locate(file, data_start, alignment, &info));
    if (!gguf.tensors.emplace(info.name, std::move(info.tensor)).second) {
      return Malformed(file.path(), "tensor ", Quote(info.name),
                       " is there twice");
    }
  }
  STRATA_RETURN_IF_ERROR(CheckNoOverlap(gguf.tensors));
  return gguf;
}

}  // namespace strata
