#include "core/model/checkpoint.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/gguf.h"
#include "core/model/gguf_config.h"
#include "core/model/gguf_tokenizer.h"
#include "core/model/hf_config.h"
#include "core/model/hf_tokenizer.h"
#include "core/model/safetensors.h"
#include "core/model/weight_binder.h"

namespace strata {
namespace {

absl::StatusOr<ModelDescription> DescribeDirectory(
    const std::string& directory) {
  STRATA_ASSIGN_OR_RETURN(const auto config,
                          MappedFile::Open(directory + "/config.json"));
  STRATA_ASSIGN_OR_RETURN(ModelDescription description,
                          ParseHfConfig(config->path(), config->text()));
  STRATA_ASSIGN_OR_RETURN(
      const auto generation,
      MappedFile::OpenIfPresent(directory + "/generation_config.json"));
  if (generation != nullptr) {
    STRATA_RETURN_IF_ERROR(ApplyGenerationConfig(
        generation->path(), generation->text(), &description));
  }
  return description;
}

absl::StatusOr<Checkpoint> LoadDirectory(const std::string& directory) {
  STRATA_ASSIGN_OR_RETURN(ModelDescription description,
                          DescribeDirectory(directory));
  STRATA_ASSIGN_OR_RETURN(SafetensorsSet set, OpenSafetensors(directory));
  const std::string source =
      set.files.size() == 1 ? set.files[0]->path() : directory;
  Checkpoint checkpoint;
  STRATA_RETURN_IF_ERROR(BindWeights(source, set.tensors,
                                     TensorNaming::kHuggingFace, description,
                                     &checkpoint));
  STRATA_ASSIGN_OR_RETURN(
      checkpoint.tokenizer,
      ReadHfTokenizer(directory, description.config.vocab_size));
  checkpoint.config = std::move(description.config);
  checkpoint.eos_ids = std::move(description.eos_ids);
  checkpoint.files = std::move(set.files);
  return checkpoint;
}

absl::StatusOr<Checkpoint> LoadGguf(const std::string& path) {
  STRATA_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));
  STRATA_ASSIGN_OR_RETURN(const Gguf gguf, ReadGguf(*file));
  STRATA_ASSIGN_OR_RETURN(ModelDescription description, ParseGgufConfig(gguf));
  const int vocab_size = description.config.vocab_size;
  Checkpoint checkpoint;
  STRATA_RETURN_IF_ERROR(BindWeights(path, gguf.tensors, TensorNaming::kGguf,
                                     description, &checkpoint));
  STRATA_ASSIGN_OR_RETURN(checkpoint.tokenizer,
                          ParseGgufTokenizer(gguf.metadata, vocab_size));
  STRATA_ASSIGN_OR_RETURN(
      checkpoint.eos_ids,
      ParseGgufEosIds(gguf.metadata, vocab_size, checkpoint.tokenizer));
  checkpoint.config = std::move(description.config);
  checkpoint.files.push_back(std::move(file));
  return checkpoint;
}

}  // namespace

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, Concat(path, ": stat"));
  }
  return S_ISDIR(info.st_mode) ? LoadDirectory(path) : LoadGguf(path);
}

}  // namespace strata
