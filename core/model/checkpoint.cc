#include "core/model/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/gguf.h"
#include "core/model/gguf_config.h"
#include "core/model/gguf_tokenizer.h"
#include "core/model/hf_config.h"
#include "core/model/safetensors.h"
#include "core/model/weight_binder.h"
#include "core/text/tokenizer_json.h"

namespace strata {
namespace {

// Null where the file is absent.
absl::StatusOr<std::unique_ptr<MappedFile>> OpenIfPresent(const std::string& path) {
  auto file = MappedFile::Open(path);
  if (absl::IsNotFound(file.status())) return nullptr;
  return file;
}

absl::StatusOr<ModelDescription> DescribeDirectory(const std::string& directory) {
  STRATA_ASSIGN_OR_RETURN(const auto config, MappedFile::Open(directory + "/config.json"));
  STRATA_ASSIGN_OR_RETURN(ModelDescription description,
                          ParseHfConfig(config->path(), config->text()));
  STRATA_ASSIGN_OR_RETURN(const auto generation,
                          OpenIfPresent(directory + "/generation_config.json"));
  if (generation != nullptr) {
    STRATA_RETURN_IF_ERROR(
        ApplyGenerationConfig(generation->path(), generation->text(), &description));
  }
  return description;
}

// Ids that the embedding has no row for cannot be run: added ones (a padding token, as a rule) are
// dropped, others contradict the model.
absl::Status FitToVocab(const std::string& path, int vocab_size, TokenizerSpec* spec) {
  std::erase_if(spec->added, [vocab_size](const AddedToken& t) { return t.id >= vocab_size; });
  while (spec->tokens.size() > static_cast<size_t>(vocab_size) && spec->tokens.back().empty()) {
    spec->tokens.pop_back();
  }
  if (spec->tokens.size() > static_cast<size_t>(vocab_size)) {
    return Malformed(path, "has ", spec->tokens.size(), " tokens, the embedding ", vocab_size,
                     " rows");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TokenizerSpec>> ReadTokenizer(const std::string& directory,
                                                           int vocab_size) {
  STRATA_ASSIGN_OR_RETURN(const auto tokenizer, OpenIfPresent(directory + "/tokenizer.json"));
  if (tokenizer == nullptr) return std::nullopt;
  STRATA_ASSIGN_OR_RETURN(const auto config, OpenIfPresent(directory + "/tokenizer_config.json"));
  auto spec = ParseTokenizerJson(tokenizer->text(),
                                 config == nullptr ? std::string_view() : config->text());
  if (!spec.ok()) return InFile(tokenizer->path(), spec.status());
  STRATA_ASSIGN_OR_RETURN(const auto jinja, OpenIfPresent(directory + "/chat_template.jinja"));
  if (jinja != nullptr) spec->chat_template = std::string(jinja->text());
  STRATA_RETURN_IF_ERROR(FitToVocab(tokenizer->path(), vocab_size, &*spec));
  return *std::move(spec);
}

absl::StatusOr<Checkpoint> LoadDirectory(const std::string& directory) {
  STRATA_ASSIGN_OR_RETURN(ModelDescription description, DescribeDirectory(directory));
  STRATA_ASSIGN_OR_RETURN(SafetensorsSet set, OpenSafetensors(directory));
  const std::string source = set.files.size() == 1 ? set.files[0]->path() : directory;
  Checkpoint checkpoint;
  STRATA_RETURN_IF_ERROR(BindWeights(source, set.tensors, TensorNaming::kHuggingFace, description,
                                     &checkpoint));
  STRATA_ASSIGN_OR_RETURN(checkpoint.tokenizer,
                          ReadTokenizer(directory, description.config.vocab_size));
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
  STRATA_RETURN_IF_ERROR(
      BindWeights(path, gguf.tensors, TensorNaming::kGguf, description, &checkpoint));
  STRATA_ASSIGN_OR_RETURN(checkpoint.tokenizer, ParseGgufTokenizer(gguf.metadata, vocab_size));
  STRATA_ASSIGN_OR_RETURN(checkpoint.eos_ids,
                          ParseGgufEosIds(gguf.metadata, vocab_size, checkpoint.tokenizer));
  checkpoint.config = std::move(description.config);
  checkpoint.files.push_back(std::move(file));
  return checkpoint;
}

}  // namespace

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": stat"));
  }
  return S_ISDIR(info.st_mode) ? LoadDirectory(path) : LoadGguf(path);
}

}  // namespace strata
