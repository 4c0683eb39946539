#include "server/admin_service.h"

#include <utility>

#include "base/check.h"
#include "server/model_info.h"
#include "server/received.h"
#include "server/unary.h"

namespace strata {
namespace {

// All or nothing: every name is tried on a copy of the registry first.
absl::Status CheckStrategies(const StrategyRegistry& registry,
                             const v1::SetPolicyRequest& message) {
  StrategyRegistry copy(registry.num_layers(), registry.default_strategy());
  for (const StrategyRegistry::Named& named : registry.registered()) {
    STRATA_RETURN_IF_ERROR(
        copy.Register(named.name, named.strategy.canonical()));
  }
  for (const v1::NamedStrategy& named : message.register_strategies()) {
    STRATA_RETURN_IF_ERROR(copy.Register(named.name(), named.spec()));
  }
  return absl::OkStatus();
}

}  // namespace

AdminService::AdminService(const ServingState* state) : state_(state) {
  MarkMethodCallback(
      0, NewHandler(this, &AdminService::SwitchStrategy, MalformedMessage));
  MarkMethodCallback(
      1, NewHandler(this, &AdminService::SetPolicy, MalformedMessage));
}

absl::Status AdminService::SwitchDefault(
    const v1::SwitchStrategyRequest& message,
    v1::SwitchStrategyResponse* response) {
  STRATA_ASSIGN_OR_RETURN(const ServedModel* model, state_->Serving());
  if (!message.request_id().empty()) {
    return absl::UnimplementedError(
        "switching a running request is not supported yet: leave request_id "
        "empty to change the default");
  }
  if (message.spec().empty()) {
    return absl::InvalidArgumentError("spec is empty");
  }
  absl::MutexLock lock(&mu_);
  STRATA_ASSIGN_OR_RETURN(SharingStrategy strategy,
                          model->strategies->Resolve(message.spec()));
  response->set_canonical(strategy.canonical());
  model->strategies->SetDefault(std::move(strategy));
  PublishStrategyLabels(*model);
  return absl::OkStatus();
}

absl::Status AdminService::Register(const v1::SetPolicyRequest& message,
                                    v1::SetPolicyResponse* response) {
  STRATA_ASSIGN_OR_RETURN(const ServedModel* model, state_->Serving());
  if (message.has_demote_under_pressure() || message.has_pressure_threshold()) {
    return absl::UnimplementedError(
        "demote_under_pressure and pressure_threshold are not supported yet");
  }
  absl::MutexLock lock(&mu_);
  STRATA_RETURN_IF_ERROR(CheckStrategies(*model->strategies, message));
  for (const v1::NamedStrategy& named : message.register_strategies()) {
    STRATA_CHECK(model->strategies->Register(named.name(), named.spec()).ok());
  }
  PublishStrategyLabels(*model);
  for (v1::StrategyInfo& info : DescribeStrategies(*model)) {
    *response->add_strategies() = std::move(info);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::SwitchStrategy(
    grpc::CallbackServerContext* context,
    const v1::SwitchStrategyRequest* message,
    v1::SwitchStrategyResponse* response) {
  return Answer(context, SwitchDefault(*message, response));
}

grpc::ServerUnaryReactor* AdminService::SetPolicy(
    grpc::CallbackServerContext* context, const v1::SetPolicyRequest* message,
    v1::SetPolicyResponse* response) {
  return Answer(context, Register(*message, response));
}

}  // namespace strata
