#ifndef SERVER_HEALTH_HEALTH_WATCH_H_
#define SERVER_HEALTH_HEALTH_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/health.pb.h"

namespace strata {

// One Watch call: tells the latest status, skipping what a slow reader missed.
// Owned by gRPC until OnDone.  Thread-safe.
class HealthWatch final
    : public grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse> {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  static std::shared_ptr<HealthWatch> Create(std::string service);

  const std::string& service() const { return service_; }
  // Tells `status` unless it is what was told last.
  void Tell(Status status);
  void End(const grpc::Status& status);

 private:
  explicit HealthWatch(std::string service) : service_(std::move(service)) {}

  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override { grpc_reference_.reset(); }

  // As in TokenStream.
  template <typename Change>
  void Advance(Change change);

  const std::string service_;
  std::shared_ptr<HealthWatch> grpc_reference_;  // until OnDone

  absl::Mutex mu_;
  std::optional<Status> wanted_ ABSL_GUARDED_BY(mu_);
  std::optional<Status> told_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mu_);
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mu_) = false;
  grpc::health::v1::HealthCheckResponse response_;  // gRPC's while is_writing_
};

}  // namespace strata

#endif  // SERVER_HEALTH_HEALTH_WATCH_H_
