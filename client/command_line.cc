#include "client/command_line.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/flags.h"

namespace strata {

std::vector<std::string> WordsOfCommandLine(const char* program,
                                            const char* usage, int argc,
                                            char** argv) {
  // gRPC's own lines of log say what our one line says.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const std::vector<std::string> args(argv + 1, argv + argc);
  constexpr absl::string_view kFolders[] = {"client/", "tests/load/"};
  const FlagList flags = FlagsIn(kFolders);
  if (WantsHelp(args)) {
    std::printf("%s\n\n%s", usage, FlagHelp(flags).c_str());
    std::exit(0);
  }
  auto words = SetFlags(args, flags);
  if (!words.ok()) {
    std::fprintf(stderr, "%s: %s\n", program,
                 std::string(words.status().message()).c_str());
    std::exit(kBadCommandLine);
  }
  return *std::move(words);
}

}  // namespace strata
