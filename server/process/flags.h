#ifndef SERVER_PROCESS_FLAGS_H_
#define SERVER_PROCESS_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/process/options.h"

namespace strata {

// The one way from the command line, and the file of --config, to options.  For
// main.cc alone: Abseil's flags are global.

// The text of --help: every flag with its default.
std::string HelpText();

// Reads the command line without the program's name and the file of --config,
// if there is one; the former wins; validates.  INVALID_ARGUMENT, in one line.
absl::StatusOr<ServerOptions> OptionsFromFlags(
    const std::vector<std::string>& args);

}  // namespace strata

#endif  // SERVER_PROCESS_FLAGS_H_
