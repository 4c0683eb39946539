#include "client/admin_command.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/table.h"
#include "client/text_format.h"

namespace strata {
namespace {

constexpr int kWidth = 120;

absl::Status Wrong(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; see --help"));
}

absl::Status CheckFlags(const std::string& verb, const AdminFlags& flags) {
  if (flags.recompute && verb != "switch") {
    return Wrong("--recompute belongs to switch");
  }
  const bool sets_policy = flags.demote_under_pressure.has_value() ||
                           flags.pressure_threshold.has_value();
  if (sets_policy && verb != "policy") {
    return Wrong(
        "--demote_under_pressure and --pressure_threshold belong to policy");
  }
  return absl::OkStatus();
}

// An empty id would change the default, an empty spec is refused by the server.
absl::StatusOr<AdminCommand> ParseSwitch(const std::vector<std::string>& words,
                                         bool recompute) {
  if (words.size() != 3 || words[1].empty()) {
    return Wrong("switch needs REQUEST_ID STRATEGY");
  }
  v1::SwitchStrategyRequest request;
  request.set_request_id(words[1]);
  request.set_spec(words[2]);
  request.set_recompute(recompute);
  return request;
}

absl::StatusOr<AdminCommand> ParseDefault(
    const std::vector<std::string>& words) {
  if (words.size() != 2) return Wrong("default needs STRATEGY");
  v1::SwitchStrategyRequest request;
  request.set_spec(words[1]);
  return request;
}

absl::StatusOr<AdminCommand> ParseRegister(
    const std::vector<std::string>& words) {
  if (words.size() < 2) return Wrong("register needs NAME=STRATEGY");
  v1::SetPolicyRequest request;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> named =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (named.first.empty() || named.second.empty()) {
      return Wrong(absl::StrCat("'", words[i], "' is no NAME=STRATEGY"));
    }
    v1::NamedStrategy* strategy = request.add_register_strategies();
    strategy->set_name(named.first);
    strategy->set_spec(named.second);
  }
  return request;
}

absl::StatusOr<AdminCommand> ParsePolicy(const std::vector<std::string>& words,
                                         const AdminFlags& flags) {
  if (words.size() != 1) {
    return Wrong(absl::StrCat("policy takes flags only, not '", words[1], "'"));
  }
  v1::SetPolicyRequest request;
  if (auto v = flags.demote_under_pressure) {
    request.set_demote_under_pressure(*v);
  }
  if (auto v = flags.pressure_threshold) request.set_pressure_threshold(*v);
  return request;
}

std::string Describe(const v1::SwitchStrategyRequest& request,
                     const v1::SwitchStrategyResponse& response) {
  if (request.request_id().empty()) {
    return absl::StrCat("requests to come run under ", response.canonical(),
                        " unless they say otherwise\n");
  }
  return absl::StrCat("switched to ", response.canonical(), ", freed ",
                      FormatBytes(response.freed_bytes()), "\n");
}

std::string Describe(const v1::SetPolicyResponse& response) {
  Table table({{"strategy", Table::Align::kLeft},
               {"KV per token"},
               {"pool holds"},
               {"canonical form", Table::Align::kLeft}});
  for (const v1::StrategyInfo& info : response.strategies()) {
    table.AddRow({info.name(), FormatBytes(info.kv_bytes_per_token()),
                  absl::StrCat(info.max_resident_tokens(), " tokens"),
                  info.canonical()});
  }
  return absl::StrCat("demote_under_pressure ",
                      response.demote_under_pressure() ? "true" : "false",
                      ", pressure_threshold ", response.pressure_threshold(),
                      "; the server's strategies:\n", table.Render(kWidth));
}

}  // namespace

absl::StatusOr<AdminCommand> ParseAdminCommand(
    const std::vector<std::string>& words, const AdminFlags& flags) {
  if (words.empty()) {
    return Wrong("a verb is missing: switch, default, register or policy");
  }
  const std::string& verb = words[0];
  const absl::Status allowed = CheckFlags(verb, flags);
  if (!allowed.ok()) return allowed;
  if (verb == "switch") return ParseSwitch(words, flags.recompute);
  if (verb == "default") return ParseDefault(words);
  if (verb == "register") return ParseRegister(words);
  if (verb == "policy") return ParsePolicy(words, flags);
  return Wrong(absl::StrCat(
      "no verb '", verb, "': there are switch, default, register and policy"));
}

grpc::Status RunAdminCommand(const Connection& connection,
                             const AdminCommand& command, std::string* shown) {
  grpc::ClientContext context;
  connection.Authorize(&context);
  if (const auto* policy = std::get_if<v1::SetPolicyRequest>(&command)) {
    v1::SetPolicyResponse response;
    const grpc::Status status =
        connection.admin()->SetPolicy(&context, *policy, &response);
    if (status.ok()) *shown = Describe(response);
    return status;
  }
  const auto& request = std::get<v1::SwitchStrategyRequest>(command);
  v1::SwitchStrategyResponse response;
  const grpc::Status status =
      connection.admin()->SwitchStrategy(&context, request, &response);
  if (status.ok()) *shown = Describe(request, response);
  return status;
}

}  // namespace strata
