#ifndef TESTS_SERVER_HOSTED_MODEL_H_
#define TESTS_SERVER_HOSTED_MODEL_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/process/logging.h"
#include "server/process/model_host.h"
#include "server/process/options.h"

namespace strata {

// A logger into a file of the test.
class FileLogger {
 public:
  FileLogger()
      : path_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name(),
            ".log")),
        fd_(open(path_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_APPEND, 0600)),
        logger_(LogFormat::kText, fd_) {}
  ~FileLogger() { close(fd_); }
  FileLogger(const FileLogger&) = delete;
  FileLogger& operator=(const FileLogger&) = delete;

  Logger* get() { return &logger_; }
  std::string Text() const {
    std::ifstream file(path_);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // The number of `key` in the last line of `event`.
  int64_t Number(const std::string& event, const std::string& key) const {
    const std::string text = Text();
    const size_t line = text.rfind(absl::StrCat(" ", event, " "));
    const size_t at = text.find(absl::StrCat(" ", key, "="), line);
    EXPECT_NE(at, text.npos) << text;
    return std::stoll(text.substr(at + key.size() + 2));
  }

 private:
  const std::string path_;
  const int fd_;
  Logger logger_;
};

// Loads the model of `options` as the server does, over a backend of the test.
inline absl::StatusOr<std::unique_ptr<ModelHost>> LoadHost(
    const ServerOptions& options, std::unique_ptr<Backend> backend,
    FileLogger* log) {
  return ModelHost::Load(
      options,
      [&](const ServerOptions&,
          Logger*) -> absl::StatusOr<std::unique_ptr<Backend>> {
        return std::move(backend);
      },
      log->get());
}

}  // namespace strata

#endif  // TESTS_SERVER_HOSTED_MODEL_H_
