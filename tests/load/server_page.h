#ifndef TESTS_LOAD_SERVER_PAGE_H_
#define TESTS_LOAD_SERVER_PAGE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata {

// What a run is held against, of a server's /metrics.  Counts since the
// server's start.
struct ServerPage {
  double finished = 0;         // requests that ended, for whatever reason
  double finished_whole = 0;   // by a stop or their length
  double finished_errors = 0;  // by the server's fault
  double rejected = 0;
  double rejected_queue_full = 0;
  double prompt_tokens = 0;
  double generation_tokens = 0;
  double kv_pool_bytes = 0;
  double kv_bytes = 0;       // of all states
  double kv_held_bytes = 0;  // used or reserved
  double resident_bytes = 0;

  // INVALID_ARGUMENT: a page without Strata's metrics.
  static absl::StatusOr<ServerPage> Parse(std::string_view page);
};

// Asks http://`address`/metrics.  UNAVAILABLE: nothing answers within seconds,
// or not with a page; INVALID_ARGUMENT: `address` is not HOST:PORT, and as
// Parse.
absl::StatusOr<ServerPage> ScrapeServerPage(const std::string& address);

}  // namespace strata

#endif  // TESTS_LOAD_SERVER_PAGE_H_
