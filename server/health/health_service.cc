#include "server/health/health_service.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/grpc_status.h"
#include "server/health/health_watch.h"
#include "server/unary.h"

namespace strata {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kPeriod = absl::Milliseconds(100);
// Each holds memory for as long as its client likes, and needs no key.
constexpr size_t kMaxWatches = 1024;
constexpr std::string_view kLiveness = "liveness";
constexpr std::array<std::string_view, 5> kReadinessNames = {
    "", "readiness", "strata.v1.Inference", "inference.GRPCInferenceService",
    "vllm.grpc.engine.VllmEngine"};

}  // namespace

HealthService::HealthService(const ServingState* state)
    : state_(state), ticker_(kPeriod, [this] { UpdateWatches(); }) {}

HealthService::~HealthService() = default;

HealthService::Status HealthService::StatusOf(std::string_view service) const {
  bool good;
  if (service == kLiveness) {
    good = state_->live();
  } else if (std::find(kReadinessNames.begin(), kReadinessNames.end(),
                       service) != kReadinessNames.end()) {
    good = state_->ready();
  } else {
    return HealthCheckResponse::SERVICE_UNKNOWN;
  }
  return good ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::ServerUnaryReactor* HealthService::Check(
    grpc::CallbackServerContext* context, const HealthCheckRequest* message,
    HealthCheckResponse* response) {
  const Status status = StatusOf(message->service());
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return Answer(context, absl::NotFoundError("unknown service"));
  }
  response->set_status(status);
  return Answer(context, absl::OkStatus());
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* message) {
  const std::shared_ptr<HealthWatch> watch =
      HealthWatch::Create(message->service());
  watch->Tell(StatusOf(watch->service()));
  absl::MutexLock lock(&mu_);
  if (ended_) {
    watch->End(ToGrpcStatus(absl::UnavailableError("shutting down")));
  } else if (watches_.size() >= kMaxWatches) {
    watch->End(ToGrpcStatus(absl::ResourceExhaustedError(
        absl::StrCat(kMaxWatches, " calls watch already; Check is answered"))));
  } else {
    watches_.push_back(watch);
  }
  return watch.get();
}

void HealthService::EndWatches() {
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
  }
  for (const std::shared_ptr<HealthWatch>& watch : LivingWatches()) {
    watch->End(ToGrpcStatus(absl::UnavailableError("shutting down")));
  }
}

void HealthService::UpdateWatches() {
  for (const std::shared_ptr<HealthWatch>& watch : LivingWatches()) {
    watch->Tell(StatusOf(watch->service()));
  }
}

std::vector<std::shared_ptr<HealthWatch>> HealthService::LivingWatches() {
  std::vector<std::shared_ptr<HealthWatch>> living;
  absl::MutexLock lock(&mu_);
  std::erase_if(watches_, [&](const std::weak_ptr<HealthWatch>& watch) {
    std::shared_ptr<HealthWatch> lives = watch.lock();
    if (lives == nullptr) return true;
    living.push_back(std::move(lives));
    return false;
  });
  return living;
}

}  // namespace strata
