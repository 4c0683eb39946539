#include "server/process/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace strata {
namespace {

// Threads of gRPC may still write when the logger goes.
ABSL_CONST_INIT absl::Mutex mu(absl::kConstInit);
Logger* receiver ABSL_GUARDED_BY(mu) = nullptr;

std::string Where(const std::string& file, int line) {
  return absl::StrCat(file.substr(file.rfind('/') + 1),  // npos + 1 is 0
                      ":", line);
}

// Warnings, as what they call an error is mostly a peer's fault, such as one
// that speaks no TLS.  gRPC has this called for what GRPC_VERBOSITY lets
// through: errors, where it is not set.
void WriteGrpc(gpr_log_func_args* args) {
  absl::ReaderMutexLock lock(&mu);
  if (receiver == nullptr) return;
  receiver->Warning("grpc", {{"where", Where(args->file, args->line)},
                             {"message", args->message}});
}

void WriteProtobuf(google::protobuf::LogLevel, const char* file, int line,
                   const std::string& message) {
  absl::ReaderMutexLock lock(&mu);
  if (receiver == nullptr) return;
  receiver->Warning("protobuf",
                    {{"where", Where(file, line)}, {"message", message}});
}

void SetReceiver(Logger* logger) {
  absl::MutexLock lock(&mu);
  receiver = logger;
}

}  // namespace

LibraryLog::LibraryLog(Logger* logger) {
  SetReceiver(logger);
  gpr_set_log_function(WriteGrpc);
  google::protobuf::SetLogHandler(WriteProtobuf);
}

LibraryLog::~LibraryLog() { SetReceiver(nullptr); }

}  // namespace strata
