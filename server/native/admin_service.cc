#include "server/native/admin_service.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/engine.h"
#include "core/strategy_registry.h"
#include "server/access/access_control.h"
#include "server/grpc_status.h"
#include "server/model_info.h"
#include "server/received.h"
#include "server/request.h"
#include "server/unary.h"

namespace strata {
namespace {

constexpr std::string_view kSwitch = "SwitchStrategy";
constexpr std::string_view kPolicy = "SetPolicy";
constexpr size_t kMaxChangeBytes = 512;

absl::StatusOr<SharingStrategy> ResolveSpec(
    const StrategyRegistry& registry,
    const v1::SwitchStrategyRequest& message) {
  if (message.spec().empty()) {
    return absl::InvalidArgumentError("spec is empty");
  }
  return registry.Resolve(message.spec());
}

// False for NaN too.
bool IsThreshold(double value) { return value > 0 && value <= 1; }

absl::Status CheckThreshold(const v1::SetPolicyRequest& message) {
  const double threshold = message.pressure_threshold();
  if (!message.has_pressure_threshold() || IsThreshold(threshold)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("pressure_threshold is ", threshold,
                   ", must be above 0 and at most 1: a part of the pool"));
}

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

AdminService::AdminService(const ServingState* state, Callers callers,
                           const PressurePolicy& policy, AdminLogger logger)
    : state_(state),
      callers_(callers),
      logger_(std::move(logger)),
      policy_(policy) {
  MarkMethodCallback(
      0, NewHandler(this, &AdminService::SwitchStrategy, MalformedMessage));
  MarkMethodCallback(
      1, NewHandler(this, &AdminService::SetPolicy, MalformedMessage));
}

void AdminService::Log(const grpc::CallbackServerContext& context,
                       std::string_view method,
                       const google::protobuf::Message& message,
                       const absl::Status& status) const {
  if (!logger_) return;
  logger_({.method = method,
           .peer = context.peer(),
           .change = message.ShortDebugString().substr(0, kMaxChangeBytes),
           .status = status});
}

grpc::ServerUnaryReactor* AdminService::End(
    grpc::CallbackServerContext* context, std::string_view method,
    const google::protobuf::Message& message,
    const absl::Status& status) const {
  Log(*context, method, message, status);
  return Answer(context, status);
}

absl::Status AdminService::CheckCaller(
    const grpc::CallbackServerContext& context) const {
  if (callers_ == Callers::kAll || IsLocalPeer(context.peer())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      "strata.v1.Admin is for callers on the server's host: the server has no "
      "--admin_key_file");
}

absl::Status AdminService::SwitchDefault(
    const v1::SwitchStrategyRequest& message,
    v1::SwitchStrategyResponse* response) {
  STRATA_ASSIGN_OR_RETURN(const ServedModel* model, state_->Serving());
  absl::MutexLock lock(&mu_);
  STRATA_ASSIGN_OR_RETURN(SharingStrategy strategy,
                          ResolveSpec(*model->strategies, message));
  response->set_canonical(strategy.canonical());
  model->strategies->SetDefault(std::move(strategy));
  PublishStrategyLabels(*model);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::SwitchRequests(
    const ServedModel& model, grpc::CallbackServerContext* context,
    const v1::SwitchStrategyRequest& message,
    v1::SwitchStrategyResponse* response) const {
  const absl::Status label = CheckRequestId(message.request_id());
  if (!label.ok()) return End(context, kSwitch, message, label);
  auto strategy = ResolveSpec(*model.strategies, message);
  if (!strategy.ok()) return End(context, kSwitch, message, strategy.status());
  response->set_canonical(strategy->canonical());
  const int strategy_label = model.strategies->LabelOf(*strategy);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  model.engine->SwitchStrategy(
      message.request_id(), *std::move(strategy), strategy_label,
      message.recompute(),
      [=, this, &message](const absl::StatusOr<int64_t>& freed_bytes) {
        if (freed_bytes.ok()) response->set_freed_bytes(*freed_bytes);
        Log(*context, kSwitch, message, freed_bytes.status());
        reactor->Finish(ToFinalStatus(freed_bytes.status(), context));
      });
  return reactor;
}

absl::Status AdminService::ChangePolicy(const v1::SetPolicyRequest& message,
                                        v1::SetPolicyResponse* response) {
  STRATA_ASSIGN_OR_RETURN(const ServedModel* model, state_->Serving());
  absl::MutexLock lock(&mu_);
  STRATA_RETURN_IF_ERROR(CheckThreshold(message));
  STRATA_RETURN_IF_ERROR(CheckStrategies(*model->strategies, message));
  for (const v1::NamedStrategy& named : message.register_strategies()) {
    STRATA_CHECK(model->strategies->Register(named.name(), named.spec()).ok());
  }
  PublishStrategyLabels(*model);
  if (message.has_demote_under_pressure()) {
    policy_.demote_under_pressure = message.demote_under_pressure();
  }
  if (message.has_pressure_threshold()) {
    policy_.pressure_threshold = message.pressure_threshold();
  }
  model->engine->SetPolicy(policy_.demote_under_pressure,
                           policy_.pressure_threshold);
  response->set_demote_under_pressure(policy_.demote_under_pressure);
  response->set_pressure_threshold(policy_.pressure_threshold);
  for (v1::StrategyInfo& info : DescribeStrategies(*model)) {
    *response->add_strategies() = std::move(info);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::SwitchStrategy(
    grpc::CallbackServerContext* context,
    const v1::SwitchStrategyRequest* message,
    v1::SwitchStrategyResponse* response) {
  const absl::Status access = CheckCaller(*context);
  if (!access.ok()) return End(context, kSwitch, *message, access);
  if (message->request_id().empty()) {
    return End(context, kSwitch, *message, SwitchDefault(*message, response));
  }
  // Requests that live may be switched also while the server drains.
  const auto model = state_->Loaded();
  if (!model.ok()) return End(context, kSwitch, *message, model.status());
  return SwitchRequests(**model, context, *message, response);
}

grpc::ServerUnaryReactor* AdminService::SetPolicy(
    grpc::CallbackServerContext* context, const v1::SetPolicyRequest* message,
    v1::SetPolicyResponse* response) {
  const absl::Status access = CheckCaller(*context);
  if (!access.ok()) return End(context, kPolicy, *message, access);
  return End(context, kPolicy, *message, ChangePolicy(*message, response));
}

}  // namespace strata
