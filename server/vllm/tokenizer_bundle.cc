#include "server/vllm/tokenizer_bundle.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"
#include "server/vllm/zip_file.h"

namespace strata::vllm {
namespace {

namespace fs = std::filesystem;

// SMG takes no more out of a bundle.
constexpr uintmax_t kMaxBytes = 100 << 20;

constexpr std::string_view kNames[] = {
    "chat_template.json",      "config.json",
    "generation_config.json",  "merges.txt",
    "special_tokens_map.json", "tokenizer.json",
    "tokenizer_config.json",   "vocab.json"};
constexpr std::string_view kExtensions[] = {".jinja", ".model", ".tiktoken"};

bool IsOfTokenizer(const fs::path& path) {
  const auto is = [](const std::string& text) {
    return [&text](std::string_view wanted) { return text == wanted; };
  };
  const std::string name = path.filename().string();
  const std::string extension = path.extension().string();
  return std::any_of(std::begin(kNames), std::end(kNames), is(name)) ||
         std::any_of(std::begin(kExtensions), std::end(kExtensions),
                     is(extension));
}

absl::StatusOr<std::string> Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (file.fail() || bytes.fail()) {
    return absl::InternalError(
        absl::StrCat(Quote(path.filename().string()), " cannot be read"));
  }
  return bytes.str();
}

// By name.
absl::StatusOr<std::vector<fs::path>> FindFiles(const std::string& model) {
  std::error_code error;
  std::vector<fs::path> paths;
  uintmax_t num_bytes = 0;
  for (fs::directory_iterator entry(model, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsOfTokenizer(entry->path()) || !entry->is_regular_file(error)) {
      continue;
    }
    num_bytes += entry->file_size(error);
    paths.push_back(entry->path());
  }
  if (error) {
    return absl::InternalError(
        absl::StrCat("the model's folder cannot be read: ", error.message()));
  }
  if (num_bytes > kMaxBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the tokenizer's files have ", num_bytes,
                     " bytes, at most ", kMaxBytes, " are sent"));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Sha256(const std::string& bytes) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
         digest.data());
  return absl::BytesToHexString(std::string(digest.begin(), digest.end()));
}

}  // namespace

absl::StatusOr<TokenizerBundle> ReadTokenizerBundle(const std::string& model) {
  if (!fs::is_directory(model)) {
    return absl::UnimplementedError(
        "the model is a GGUF file: its tokenizer is in there, and there are no "
        "files to send");
  }
  STRATA_ASSIGN_OR_RETURN(const std::vector<fs::path> paths, FindFiles(model));
  if (paths.empty()) {
    return absl::FailedPreconditionError(
        "the model's folder has no files of a tokenizer");
  }
  std::vector<NamedBytes> files;
  for (const fs::path& path : paths) {
    STRATA_ASSIGN_OR_RETURN(std::string bytes, Read(path));
    files.push_back({path.filename().string(), std::move(bytes)});
  }
  TokenizerBundle bundle;
  bundle.zip = ZipFile(files);
  bundle.sha256 = Sha256(bundle.zip);
  return bundle;
}

}  // namespace strata::vllm
