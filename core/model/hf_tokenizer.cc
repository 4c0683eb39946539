#include "core/model/hf_tokenizer.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/mapped_file.h"
#include "core/text/tokenizer_json.h"

namespace strata {
namespace {

// Ids that the embedding has no row for cannot be run: added ones (a padding
// token, as a rule) are dropped, others contradict the model.
absl::Status FitToVocab(const std::string& path, int vocab_size,
                        TokenizerSpec* spec) {
  std::erase_if(spec->added, [vocab_size](const AddedToken& t) {
    return t.id >= vocab_size;
  });
  while (spec->tokens.size() > static_cast<size_t>(vocab_size) &&
         spec->tokens.back().empty()) {
    spec->tokens.pop_back();
  }
  if (spec->tokens.size() > static_cast<size_t>(vocab_size)) {
    return Malformed(path, "has ", spec->tokens.size(),
                     " tokens, the embedding ", vocab_size, " rows");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<TokenizerSpec>> ReadHfTokenizer(
    const std::string& directory, int vocab_size) {
  STRATA_ASSIGN_OR_RETURN(
      const auto tokenizer,
      MappedFile::OpenIfPresent(directory + "/tokenizer.json"));
  if (tokenizer == nullptr) return std::nullopt;
  STRATA_ASSIGN_OR_RETURN(
      const auto config,
      MappedFile::OpenIfPresent(directory + "/tokenizer_config.json"));
  auto spec = ParseTokenizerJson(tokenizer->text(), config == nullptr
                                                        ? std::string_view()
                                                        : config->text());
  if (!spec.ok()) return InFile(tokenizer->path(), spec.status());
  STRATA_ASSIGN_OR_RETURN(
      const auto jinja,
      MappedFile::OpenIfPresent(directory + "/chat_template.jinja"));
  if (jinja != nullptr) spec->chat_template = std::string(jinja->text());
  STRATA_RETURN_IF_ERROR(FitToVocab(tokenizer->path(), vocab_size, &*spec));
  return *std::move(spec);
}

}  // namespace strata
