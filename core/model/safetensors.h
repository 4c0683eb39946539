#ifndef CORE_MODEL_SAFETENSORS_H_
#define CORE_MODEL_SAFETENSORS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/mapped_file.h"
#include "core/model/stored_tensor.h"

namespace strata {

// The tensors of a .safetensors file: u64 length of the header, the header
// (JSON), the bytes.  As the format's own library, refuses headers over 100 MB,
// doubled names, sizes that differ from shape and type, gaps, overlaps, and
// bytes that no tensor claims.
absl::StatusOr<TensorMap> ReadSafetensors(const MappedFile& file);

// Tensors of several files.
struct SafetensorsSet {
  std::vector<std::unique_ptr<MappedFile>> files;
  TensorMap tensors;  // views into files
};

// The weights of a Hugging Face directory: model.safetensors, or the shards
// that model.safetensors.index.json names (plain file names in `directory`).
absl::StatusOr<SafetensorsSet> OpenSafetensors(const std::string& directory);

}  // namespace strata

#endif  // CORE_MODEL_SAFETENSORS_H_
