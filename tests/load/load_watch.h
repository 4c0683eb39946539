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
  // `connection` outlives this.
  explicit LoadWatch(const Connection* connection);

  // Returns the most bytes that live requests were seen to use.  Once.
  uint64_t Stop();

 private:
  void Poll(std::stop_token stop);

  const Connection* const connection_;
  uint64_t peak_bytes_ = 0;  // of the thread until it is joined
  std::jthread thread_;
};

}  // namespace strata

#endif  // TESTS_LOAD_LOAD_WATCH_H_
