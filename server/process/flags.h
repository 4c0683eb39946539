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

// Whether `argv` asks for it.
bool WantsHelp(const std::vector<char*>& argv);

// Reads the file of --config, if `argv` names one, then the command line, which
// wins; validates.  An unknown flag or one whose value has the wrong type ends
// the process: Abseil prints why.  Other errors: INVALID_ARGUMENT, in one line.
absl::StatusOr<ServerOptions> OptionsFromFlags(const std::vector<char*>& argv);

}  // namespace strata

#endif  // SERVER_PROCESS_FLAGS_H_
