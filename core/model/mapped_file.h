#ifndef CORE_MODEL_MAPPED_FILE_H_
#define CORE_MODEL_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata {

// A whole file mapped read-only.  Owns the mapping.  Whoever truncates the file
// while it is mapped ends the process at the next read, as with every mapping.
//
// Immutable and thread-safe.
class MappedFile {
 public:
  // A regular file, directly or by symbolic links.  NOT_FOUND if there is none;
  // INVALID_ARGUMENT for an empty file and what is no regular file; else the
  // system's error.  Messages name the path.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path);
  // The same, but null where there is no such file.
  static absl::StatusOr<std::unique_ptr<MappedFile>> OpenIfPresent(
      const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);

  const std::string path_;
  const std::span<const std::byte> bytes_;
};

}  // namespace strata

#endif  // CORE_MODEL_MAPPED_FILE_H_
