#ifndef CLIENT_COMMAND_LINE_H_
#define CLIENT_COMMAND_LINE_H_

#include <string>
#include <vector>

namespace strata {

// Exit statuses of the programs that talk to a server.
inline constexpr int kFailed = 1;          // refused by it, or it is not there
inline constexpr int kBadCommandLine = 2;  // also a file that a flag names
inline constexpr int kInterrupted = 130;   // what shells expect after Ctrl-C

// Sets the flags of client/ and tests/load/ from the command line; returns the
// words between them.  Ends the process after --help, which prints `usage` and
// the flags, with 0, and after wrong flags, which it says in one line that
// begins with `program`, with kBadCommandLine.
std::vector<std::string> WordsOfCommandLine(const char* program,
                                            const char* usage, int argc,
                                            char** argv);

}  // namespace strata

#endif  // CLIENT_COMMAND_LINE_H_
