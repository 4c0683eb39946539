#ifndef TESTS_LOAD_INVARIANTS_H_
#define TESTS_LOAD_INVARIANTS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/connection.h"
#include "tests/load/call_record.h"
#include "tests/load/server_page.h"

namespace strata {

// Whether every token that the server counted arrived, call by call: one line
// that says what is wrong, or none.
std::vector<std::string> CheckTokens(const std::vector<CallRecord>& records);

// Whether the server holds nothing for anyone any more: no request, no used and
// no reserved byte.  Asks until it is so, at most for `patience`; one line that
// says what is left, or none.  REQUIRES: nobody else uses the server.
std::vector<std::string> CheckIdle(const Connection& connection,
                                   absl::Duration patience);

// Whether the server's counters moved from `before` to `after` as the run's
// calls say: every call ended or refused once, every token that came counted,
// none counted that no call can have had, no page held, the states of the pool
// summing to it.  A call that the client ended may have gone further in the
// server than the client saw; otherwise counts are equal.  One line for each
// thing that is wrong.
// REQUIRES: nobody else used the server.
std::vector<std::string> CheckCounters(const ServerPage& before,
                                       const ServerPage& after,
                                       const std::vector<CallRecord>& records);

// The same against the page at `metrics_address` after the run.  Asks until
// nothing is wrong, at most for `patience`, as a call's end reaches its client
// before it reaches the counters.
std::vector<std::string> CheckPage(const ServerPage& before,
                                   const std::string& metrics_address,
                                   const std::vector<CallRecord>& records,
                                   absl::Duration patience);

}  // namespace strata

#endif  // TESTS_LOAD_INVARIANTS_H_
