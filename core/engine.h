#ifndef CORE_ENGINE_H_
#define CORE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/fit_request.h"
#include "core/request.h"
#include "core/token_sink.h"

namespace strata {

// The state of the engine after its latest step, for GetLoad.
struct LoadReport {
  struct Strategy {
    std::string label;
    int running;
    int64_t kv_used_bytes;
  };
  int running;  // requests
  int waiting;
  int64_t kv_pool_bytes;  // used + reserved + cached + free
  int64_t kv_used_bytes;
  int64_t kv_reserved_bytes;
  int64_t kv_cached_bytes;
  int64_t kv_free_bytes;
  int64_t kv_saved_bytes;
  double prompt_tokens_per_second;  // over the last 10 s
  double generated_tokens_per_second;
  std::vector<Strategy> strategies;
};

// Runs requests: owns the one thread that plans steps, runs them and hands out their tokens.  All that reaches the
// scheduler, the pool and the backend goes through its inbox.
//
// Thread-safe.
class Engine {
 public:
  // Queues a request; results and refusals (RESOURCE_EXHAUSTED: the queue is full; UNAVAILABLE: draining) go to `sink`.
  // REQUIRES: FitRequest(limits(), ...) accepted it.
  RequestId Submit(Request request, std::shared_ptr<TokenSink> sink);

  // Ends a request with CANCELLED between two steps; no effect if it has ended.  Does not wait.
  void Cancel(RequestId id);

  // Ends every live request with this label: finish reason ABORTED, status OK.  Calls `done` with their number.
  void Abort(std::string label, std::function<void(int)> done);

  LoadReport GetLoad() const;
  const EngineLimits& limits() const;

  // Whether the loop is alive: false once the device has failed, or when requests wait and no step has ended for 30 s.
  bool healthy() const;

  // From now on Submit refuses.  Returns when nothing runs or waits, or after `timeout`; what is left then is ended with
  // UNAVAILABLE.  Ends the thread.  Idempotent.
  void Drain(absl::Duration timeout);
};

}  // namespace strata

#endif  // CORE_ENGINE_H_
