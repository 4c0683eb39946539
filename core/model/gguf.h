#ifndef CORE_MODEL_GGUF_H_
#define CORE_MODEL_GGUF_H_

#include "absl/status/statusor.h"
#include "core/model/gguf_metadata.h"
#include "core/model/mapped_file.h"
#include "core/model/stored_tensor.h"

namespace strata {

// A GGUF file, version 2 or 3, little-endian: header, metadata, tensor
// descriptions, aligned data. Views into the mapped file, which must outlive
// it.
struct Gguf {
  GgufMetadata metadata;
  TensorMap tensors;  // shapes outermost first: the file's dimensions reversed
};

// Checks every count, size and offset against the file before it is used.
absl::StatusOr<Gguf> ReadGguf(const MappedFile& file);

}  // namespace strata

#endif  // CORE_MODEL_GGUF_H_
