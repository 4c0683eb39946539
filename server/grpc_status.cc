#include "server/grpc_status.h"

#include <string>

#include "absl/strings/escaping.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

constexpr size_t kMaxMessageBytes = 512;
// A running request ends about this often on a busy server; a client that
// backs off exponentially from here does no harm.
constexpr char kRetryAfterMs[] = "1000";

grpc::StatusCode ToGrpcCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return grpc::StatusCode::OK;
    case absl::StatusCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case absl::StatusCode::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case absl::StatusCode::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case absl::StatusCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case absl::StatusCode::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case absl::StatusCode::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case absl::StatusCode::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case absl::StatusCode::kFailedPrecondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case absl::StatusCode::kAborted:
      return grpc::StatusCode::ABORTED;
    case absl::StatusCode::kOutOfRange:
      return grpc::StatusCode::OUT_OF_RANGE;
    case absl::StatusCode::kUnimplemented:
      return grpc::StatusCode::UNIMPLEMENTED;
    case absl::StatusCode::kInternal:
      return grpc::StatusCode::INTERNAL;
    case absl::StatusCode::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case absl::StatusCode::kDataLoss:
      return grpc::StatusCode::DATA_LOSS;
    case absl::StatusCode::kUnauthenticated:
      return grpc::StatusCode::UNAUTHENTICATED;
    default:
      return grpc::StatusCode::UNKNOWN;
  }
}

std::string FitMessage(const std::string& message) {
  std::string fit = message.substr(0, kMaxMessageBytes);
  size_t valid = ValidUtf8Prefix(fit);
  const bool is_cut = message.size() > kMaxMessageBytes;
  // Within 3 bytes of the cut it is a character cut in two.
  if (valid < fit.size() && !(is_cut && fit.size() - valid <= 3)) {
    fit = absl::CHexEscape(fit).substr(0, kMaxMessageBytes);
    valid = fit.size();
  }
  fit.resize(valid);
  return fit;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(ToGrpcCode(status.code()),
                      FitMessage(std::string(status.message())));
}

grpc::Status ToFinalStatus(const absl::Status& status,
                           grpc::ServerContextBase* context) {
  if (absl::IsResourceExhausted(status)) {
    context->AddTrailingMetadata("retry-after-ms", kRetryAfterMs);
    context->AddTrailingMetadata("grpc-retry-pushback-ms", kRetryAfterMs);
  }
  return ToGrpcStatus(status);
}

}  // namespace strata
