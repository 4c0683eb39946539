#ifndef BASE_FLAGS_H_
#define BASE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace strata {

// Command lines over Abseil's flags, for programs that say themselves what is
// wrong and choose their exit status: absl::ParseCommandLine ends the process
// with 1, for --help too, and takes the flags of every library.
//
// For main functions: flags are global.

// Flags of a program, in the order of its --help.
using FlagList = std::vector<absl::CommandLineFlag*>;

// REQUIRES: each name is that of a flag.
FlagList FlagsNamed(absl::Span<const char* const> names);

// Those defined in files of `folders` ("client/"), by file and name.
FlagList FlagsIn(absl::Span<const absl::string_view> folders);

// Whether `args` have --help or -h before a "--".
bool WantsHelp(const std::vector<std::string>& args);

// Every flag with its default, in lines of at most 80 characters where words
// allow it; an empty line between two files.
std::string FlagHelp(const FlagList& flags);

// Sets flags from `args`, which lack the program's name: --name=value,
// --name value, for booleans --name and --noname; one dash does as well.
// Returns the other words; after "--" all are.  INVALID_ARGUMENT, in one line,
// for a flag that is not in `flags` or a value that is not of its type.
absl::StatusOr<std::vector<std::string>> SetFlags(
    const std::vector<std::string>& args, const FlagList& flags);

}  // namespace strata

#endif  // BASE_FLAGS_H_
