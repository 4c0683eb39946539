#include "server/http/operator_pages.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

HttpResponse AnswerLive(const ServingState& state) {
  switch (state.health()) {
    case EngineHealth::kStalled:
      return {.status = 503, .body = "the engine is stalled\n"};
    case EngineHealth::kDeviceLost:
      return {.status = 503, .body = "the engine's device is lost\n"};
    case EngineHealth::kGood:
      break;
  }
  return {.status = 200, .body = "live\n"};
}

Metrics::Fault FaultOf(EngineHealth health) {
  switch (health) {
    case EngineHealth::kStalled:
      return Metrics::Fault::kStalled;
    case EngineHealth::kDeviceLost:
      return Metrics::Fault::kDeviceLost;
    case EngineHealth::kGood:
      break;
  }
  return Metrics::Fault::kNone;
}

HttpResponse AnswerReady(const ServingState& state) {
  if (state.ready()) return {.status = 200, .body = "ready\n"};
  switch (state.phase()) {
    case ServingState::Phase::kLoading:
      return {.status = 503, .body = "loading\n"};
    case ServingState::Phase::kLeaving:
    case ServingState::Phase::kDraining:
      return {.status = 503, .body = "draining\n"};
    case ServingState::Phase::kServing:
      break;
  }
  return AnswerLive(state);
}

// A stalled engine cannot say so itself.
HttpResponse AnswerMetrics(const ServingState& state,
                           const MetricsPage& metrics) {
  if (const ServedModel* model = state.model()) {
    model->metrics->SetFault(FaultOf(state.health()));
  }
  return {.status = 200,
          .content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = metrics.Render()};
}

}  // namespace

HttpServer::Pages OperatorPages(const ServingState* state,
                                const MetricsPage* metrics,
                                const AccessControl* metrics_access) {
  const auto ready = [state](const ShownKeys&) { return AnswerReady(*state); };
  const auto live = [state](const ShownKeys&) { return AnswerLive(*state); };
  const auto scrape = [=](const ShownKeys& keys) -> HttpResponse {
    if (metrics_access != nullptr) {
      const absl::Status access = metrics_access->CheckKey(keys);
      if (!access.ok()) {
        return {.status = 401, .body = absl::StrCat(access.message(), "\n")};
      }
    }
    return AnswerMetrics(*state, *metrics);
  };
  return {{"/health", ready},
          {"/health/ready", ready},
          {"/health/live", live},
          {"/metrics", scrape}};
}

}  // namespace strata
