#include "server/transport/watched_files.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content(kMaxBytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.is_open() || file.bad()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  content.resize(file.gcount());
  if (content.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": larger than ", kMaxBytes, " bytes"));
  }
  return content;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WatchedFiles>> WatchedFiles::Open(
    std::vector<std::string> paths, Use use, Report report) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<WatchedFiles> files(
      new WatchedFiles(std::move(paths), std::move(use), std::move(report)));
  files->handled_ = files->seen_ = files->Read();
  if (!files->seen_.ok()) return files->seen_.status();
  STRATA_RETURN_IF_ERROR(files->use_(*files->seen_));
  return files;
}

WatchedFiles::WatchedFiles(std::vector<std::string> paths, Use use,
                           Report report)
    : paths_(std::move(paths)),
      use_(std::move(use)),
      report_(std::move(report)) {}

absl::StatusOr<WatchedFiles::Contents> WatchedFiles::Read() const {
  Contents contents;
  for (const std::string& path : paths_) {
    STRATA_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
    contents.push_back(std::move(content));
  }
  return contents;
}

void WatchedFiles::Look() {
  absl::StatusOr<Contents> now = Read();
  const bool is_settled = now == seen_;
  seen_ = std::move(now);
  if (!is_settled || seen_ == handled_) return;
  handled_ = seen_;
  report_(seen_.ok() ? use_(*seen_) : seen_.status());
}

}  // namespace strata
