#ifndef TESTS_LOAD_LOAD_WATCH_H_
#define TESTS_LOAD_LOAD_WATCH_H_

#include <cstdint>
#include <thread>

#include "client/connection.h"

namespace strata {

// Asks the server for its load ten times a second, on a thread of its own, from
// construction to Stop.
class LoadWatch {
 public:
  struct Seen {
    uint64_t kv_bytes_peak = 0;  // used by live requests
    int running_peak = 0;        // sequences resident at once
    double running_mean = 0;     // of all answers
  };

  // `connection` outlives this.
  explicit LoadWatch(const Connection* connection);

  // Returns what was seen.  Once.
  Seen Stop();

 private:
  void Poll(std::stop_token stop);

  const Connection* const connection_;
  // Of the thread until it is joined.
  Seen seen_;
  int64_t num_answers_ = 0;
  std::jthread thread_;
};

}  // namespace strata

#endif  // TESTS_LOAD_LOAD_WATCH_H_
