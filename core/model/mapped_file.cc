#include "core/model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "core/model/file_error.h"

namespace strata {
namespace {

// Closes the descriptor when it goes out of scope; a mapping stays valid.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status SystemError(const std::string& path, const char* call) {
  return absl::ErrnoToStatus(errno, Concat(path, ": ", call));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return SystemError(path, "open");
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return SystemError(path, "fstat");
  if (!S_ISREG(info.st_mode)) return Malformed(path, "is not a regular file");
  if (info.st_size <= 0) return Malformed(path, "is empty");
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return SystemError(path, "mmap");
  return std::unique_ptr<MappedFile>(
      new MappedFile(path, {static_cast<const std::byte*>(data), size}));
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::OpenIfPresent(
    const std::string& path) {
  auto file = Open(path);
  if (absl::IsNotFound(file.status())) return nullptr;
  return file;
}

MappedFile::MappedFile(std::string path, std::span<const std::byte> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

MappedFile::~MappedFile() {
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace strata
