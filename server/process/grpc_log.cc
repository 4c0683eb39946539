#include "server/process/grpc_log.h"

#include <grpc/support/log.h>

#include <string>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace strata {
namespace {

// gRPC's threads may still write when the logger goes.
ABSL_CONST_INIT absl::Mutex mu(absl::kConstInit);
Logger* receiver ABSL_GUARDED_BY(mu) = nullptr;

// Called for what GRPC_VERBOSITY lets through: errors, where it is not set.
void Write(gpr_log_func_args* args) {
  const std::string file = args->file;
  const std::string where =
      absl::StrCat(file.substr(file.rfind('/') + 1),  // npos + 1 is 0
                   ":", args->line);
  absl::ReaderMutexLock lock(&mu);
  if (receiver == nullptr) return;
  // What gRPC calls an error is mostly a peer's fault, such as one that speaks
  // no TLS.
  if (args->severity == GPR_LOG_SEVERITY_ERROR) {
    receiver->Warning("grpc", {{"where", where}, {"message", args->message}});
  } else {
    receiver->Info("grpc", {{"where", where}, {"message", args->message}});
  }
}

void SetReceiver(Logger* logger) {
  absl::MutexLock lock(&mu);
  receiver = logger;
}

}  // namespace

GrpcLog::GrpcLog(Logger* logger) {
  SetReceiver(logger);
  gpr_set_log_function(Write);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
  SetReceiver(nullptr);
}

}  // namespace strata
