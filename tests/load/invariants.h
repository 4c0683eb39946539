#ifndef TESTS_LOAD_INVARIANTS_H_
#define TESTS_LOAD_INVARIANTS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/connection.h"
#include "tests/load/call_record.h"

namespace strata {

// Whether every token that the server counted arrived, call by call: one line
// that says what is wrong, or none.
std::vector<std::string> CheckTokens(const std::vector<CallRecord>& records);

// Whether the server holds nothing for anyone any more: no request, no used and
// no reserved byte.  Asks until it is so, at most for `patience`; one line that
// says what is left, or none.  REQUIRES: nobody else uses the server.
std::vector<std::string> CheckIdle(const Connection& connection,
                                   absl::Duration patience);

}  // namespace strata

#endif  // TESTS_LOAD_INVARIANTS_H_
