#ifndef TESTS_LOAD_OUTPUT_FILE_H_
#define TESTS_LOAD_OUTPUT_FILE_H_

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// A file opened before the work whose result it takes.
//
// Not thread-safe.
class OutputFile {
 public:
  // Opens `path`, empties it if it is there; "": Write does nothing.
  // INVALID_ARGUMENT: it cannot be written.
  static absl::StatusOr<OutputFile> Open(const std::string& path);
  // `folder`/`name`, the folder made if it is missing; folder "": as Open("").
  static absl::StatusOr<OutputFile> OpenIn(const std::string& folder,
                                           const std::string& name);

  // UNAVAILABLE: the disk is full, say.
  absl::Status Write(const std::string& text);

 private:
  explicit OutputFile(std::string path);

  std::string path_;
  std::ofstream file_;
};

}  // namespace strata

#endif  // TESTS_LOAD_OUTPUT_FILE_H_
