#include "server/serving_state.h"

#include "base/check.h"

namespace strata {
namespace {

absl::Status LoadingError() {
  return absl::UnavailableError("the model is still loading");
}

}  // namespace

void ServingState::Publish(const ServedModel* model) {
  STRATA_CHECK(model != nullptr);
  absl::MutexLock lock(&mu_);
  model_ = model;
  // An end that began while the model was loading goes on.
  if (phase_ == Phase::kLoading) phase_ = Phase::kServing;
}

void ServingState::BeginLeaving() {
  absl::MutexLock lock(&mu_);
  if (phase_ != Phase::kDraining) phase_ = Phase::kLeaving;
}

void ServingState::BeginDrain() {
  absl::MutexLock lock(&mu_);
  phase_ = Phase::kDraining;
}

ServingState::Phase ServingState::phase() const {
  absl::MutexLock lock(&mu_);
  return phase_;
}

absl::StatusOr<const ServedModel*> ServingState::Serving() const {
  absl::MutexLock lock(&mu_);
  switch (phase_) {
    case Phase::kLoading:
      return LoadingError();
    case Phase::kDraining:
      return absl::UnavailableError("the server is shutting down");
    case Phase::kServing:
      return model_;
    case Phase::kLeaving:
      break;
  }
  if (model_ == nullptr) return LoadingError();
  return model_;
}

absl::StatusOr<const ServedModel*> ServingState::Loaded() const {
  const ServedModel* loaded = model();
  if (loaded == nullptr) return LoadingError();
  return loaded;
}

const ServedModel* ServingState::model() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

EngineHealth ServingState::health() const {
  const ServedModel* served = model();
  return served == nullptr ? EngineHealth::kGood : served->engine->health();
}

bool ServingState::ready() const {
  return phase() == Phase::kServing && live();
}

}  // namespace strata
