#include "server/operator_pages.h"

namespace strata {
namespace {

HttpResponse AnswerLive(const ServingState& state) {
  if (state.live()) return {.status = 200, .body = "live\n"};
  return {.status = 503, .body = "the engine is stalled or its device lost\n"};
}

HttpResponse AnswerReady(const ServingState& state) {
  if (state.ready()) return {.status = 200, .body = "ready\n"};
  switch (state.phase()) {
    case ServingState::Phase::kLoading:
      return {.status = 503, .body = "loading\n"};
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
    model->metrics->SetHealthy(state.live());
  }
  return {.status = 200,
          .content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = metrics.Render()};
}

}  // namespace

HttpServer::Pages OperatorPages(const ServingState* state,
                                const MetricsPage* metrics) {
  const auto ready = [state] { return AnswerReady(*state); };
  return {
      {"/health", ready},
      {"/health/ready", ready},
      {"/health/live", [state] { return AnswerLive(*state); }},
      {"/metrics",
       [state, metrics] { return AnswerMetrics(*state, *metrics); }},
  };
}

}  // namespace strata
