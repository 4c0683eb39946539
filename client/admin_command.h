#ifndef CLIENT_ADMIN_COMMAND_H_
#define CLIENT_ADMIN_COMMAND_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "proto/strata.pb.h"

namespace strata {

// The flags of ./strata admin that belong to one of its verbs.
struct AdminFlags {
  bool recompute = false;                          // switch
  std::optional<bool> demote_under_pressure = {};  // policy
  std::optional<double> pressure_threshold = {};   // policy
};

// One change of a running server.
using AdminCommand =
    std::variant<v1::SwitchStrategyRequest, v1::SetPolicyRequest>;

// From the words behind `./strata admin`:
//
//   switch REQUEST_ID STRATEGY
//   default STRATEGY
//   register NAME=STRATEGY ...
//   policy
//
// INVALID_ARGUMENT says what is missing, left over or of another verb.
absl::StatusOr<AdminCommand> ParseAdminCommand(
    const std::vector<std::string>& words, const AdminFlags& flags);

// Runs it.  On success *shown is what the server did, for people; lines end in
// a newline.
grpc::Status RunAdminCommand(const Connection& connection,
                             const AdminCommand& command, std::string* shown);

}  // namespace strata

#endif  // CLIENT_ADMIN_COMMAND_H_
