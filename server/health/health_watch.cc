#include "server/health/health_watch.h"

#include <utility>

namespace strata {

std::shared_ptr<HealthWatch> HealthWatch::Create(std::string service) {
  std::shared_ptr<HealthWatch> watch(new HealthWatch(std::move(service)));
  watch->grpc_reference_ = watch;
  return watch;
}

template <typename Change>
void HealthWatch::Advance(Change change) {
  mu_.Lock();
  change();
  if (is_writing_ || is_finished_) {
    mu_.Unlock();
    return;
  }
  if (end_.has_value()) {
    is_finished_ = true;
    const grpc::Status status = *end_;
    mu_.Unlock();
    Finish(status);
    return;
  }
  if (wanted_ == told_) {
    mu_.Unlock();
    return;
  }
  is_writing_ = true;
  told_ = wanted_;
  response_.set_status(*wanted_);
  mu_.Unlock();
  StartWrite(&response_);
}

void HealthWatch::Tell(Status status) {
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { wanted_ = status; });
}

void HealthWatch::End(const grpc::Status& status) {
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!end_.has_value()) end_ = status;
  });
}

void HealthWatch::OnWriteDone(bool ok) {
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    is_writing_ = false;
    if (!ok && !end_.has_value()) end_ = grpc::Status::CANCELLED;
  });
}

}  // namespace strata
