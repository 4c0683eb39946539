#ifndef SERVER_TRANSPORT_WATCHED_FILES_H_
#define SERVER_TRANSPORT_WATCHED_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// Small files whose contents are used together, and used anew when they change.
// Whoever calls Look sees to it that it is called now and then.
//
// Contents count as changed once two looks have found the same: a file that is
// being written, or the first of two that belong together, is waited for.
//
// One thread at a time.
class WatchedFiles {
 public:
  // The contents, in the order of the paths.
  using Contents = std::vector<std::string>;
  // Takes contents into use.  After an error the former stay in use.
  using Use = std::function<absl::Status(const Contents&)>;
  // Told what came of each change.
  using Report = std::function<void(const absl::Status&)>;

  // Reads and uses the files for the first time.  NOT_FOUND, with the path: one
  // cannot be read.  INVALID_ARGUMENT: larger than 1 MiB.  Else what `use`
  // says.
  static absl::StatusOr<std::unique_ptr<WatchedFiles>> Open(
      std::vector<std::string> paths, Use use, Report report);

  void Look();

 private:
  WatchedFiles(std::vector<std::string> paths, Use use, Report report);
  absl::StatusOr<Contents> Read() const;

  const std::vector<std::string> paths_;
  const Use use_;
  const Report report_;
  absl::StatusOr<Contents> seen_;     // by the latest look
  absl::StatusOr<Contents> handled_;  // used, or found wrong
};

}  // namespace strata

#endif  // SERVER_TRANSPORT_WATCHED_FILES_H_
