// ./strata admin: changes a running server.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "client/admin_command.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/connection_flags.h"

ABSL_FLAG(bool, recompute, false,
          "switch: to any strategy; what the requests have cached is computed "
          "again under it");
ABSL_FLAG(std::optional<bool>, demote_under_pressure, std::nullopt,
          "policy: whether requests with a floor are switched to it when "
          "memory runs out; those that can never fit otherwise start at it all "
          "the same");
ABSL_FLAG(std::optional<double>, pressure_threshold, std::nullopt,
          "policy: part of the KV pool, above 0 to 1, from which on memory "
          "counts as running out");

namespace strata {
namespace {

constexpr char kUsage[] =
    "Changes a running server, between two steps; what the server refuses "
    "changes nothing.\n\n"
    "  ./strata admin switch REQUEST_ID STRATEGY [--recompute]\n"
    "      switches every live request with this --request_id; memory of "
    "layers that no\n"
    "      longer keep a KV cache is free at once\n"
    "  ./strata admin default STRATEGY\n"
    "      what requests run under that name no strategy, from now on\n"
    "  ./strata admin register NAME=STRATEGY ...\n"
    "      names that requests may give instead of a strategy\n"
    "  ./strata admin policy [--demote_under_pressure=BOOL] "
    "[--pressure_threshold=PART]\n"
    "      when requests with a floor are switched to it; without flags: "
    "shows what holds\n\n"
    "STRATEGY: full, every=N, keep=R, prefix=K, leaders=0,..., sources=0,... "
    "or a registered\n"
    "name.  Where the server has an admin key, --api_key_file is to hold "
    "it.\n\n"
    "Exit status: 0; 1 if the server refuses or does not answer, 2 for a wrong "
    "command line.";

int Fail(int exit_status, absl::string_view line) {
  std::fprintf(stderr, "strata admin: %s\n", std::string(line).c_str());
  return exit_status;
}

int RunAdmin(const std::vector<std::string>& words) {
  const AdminFlags flags = {
      .recompute = absl::GetFlag(FLAGS_recompute),
      .demote_under_pressure = absl::GetFlag(FLAGS_demote_under_pressure),
      .pressure_threshold = absl::GetFlag(FLAGS_pressure_threshold)};
  const auto command = ParseAdminCommand(words, flags);
  if (!command.ok()) return Fail(kBadCommandLine, command.status().message());
  const auto connection = Connection::Open(ConnectionOptionsFromFlags());
  if (!connection.ok()) {
    return Fail(kBadCommandLine, connection.status().message());
  }
  std::string shown;
  const grpc::Status status = RunAdminCommand(**connection, *command, &shown);
  if (!status.ok()) return Fail(kFailed, (*connection)->ErrorLine(status));
  std::fputs(shown.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::RunAdmin(
      strata::WordsOfCommandLine("strata admin", strata::kUsage, argc, argv));
}
