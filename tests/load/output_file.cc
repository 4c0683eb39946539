#include "tests/load/output_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) file_.open(path_, std::ios::trunc);
}

absl::StatusOr<OutputFile> OutputFile::Open(const std::string& path) {
  OutputFile file(path);
  if (!path.empty() && !file.file_) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be written"));
  }
  return file;
}

absl::StatusOr<OutputFile> OutputFile::OpenIn(const std::string& folder,
                                              const std::string& name) {
  if (folder.empty()) return Open("");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return Open((std::filesystem::path(folder) / name).string());
}

absl::Status OutputFile::Write(const std::string& text) {
  if (path_.empty()) return absl::OkStatus();
  file_ << text << std::flush;
  if (file_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path_, ": cannot be written"));
}

}  // namespace strata
