#ifndef CORE_LIVE_REQUEST_H_
#define CORE_LIVE_REQUEST_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/request.h"
#include "core/sequence.h"
#include "core/token_sink.h"

namespace strata {

// A request between Submit and OnEnd, with its sequences.  The engine thread's.
struct LiveRequest {
  LiveRequest(RequestId id, Request request, std::shared_ptr<TokenSink> sink,
              absl::Time arrival)
      : id(id),
        request(std::move(request)),
        sink(std::move(sink)),
        arrival(arrival),
        strategy_label(this->request.strategy_label) {}

  const RequestId id;
  const Request request;
  const std::shared_ptr<TokenSink> sink;
  const absl::Time arrival;

  std::vector<std::unique_ptr<Sequence>> sequences;  // by index
  int num_live = 0;         // sequences that have not ended
  int num_generated = 0;    // tokens, at every index
  int strategy_label;       // that it is counted under at present
  bool is_running = false;  // else it waits: counted so
  bool looked_up = false;   // its prefix, when it was first admitted
  bool prompt_run = false;  // the prompt was run to its end once
};

}  // namespace strata

#endif  // CORE_LIVE_REQUEST_H_
