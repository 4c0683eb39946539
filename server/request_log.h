#ifndef SERVER_REQUEST_LOG_H_
#define SERVER_REQUEST_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/request.h"
#include "core/token_sink.h"

namespace strata {

// What is logged of a call of Generate or Score when it has ended, or was
// refused.
struct RequestLog {
  std::string_view method;  // "Generate", "Score"
  RequestId id = 0;         // 0: refused before the engine had it
  std::string label;        // the client's words, any text
  std::string strategy;     // canonical; empty where refused
  int num_sequences = 0;
  int prompt_tokens = 0;
  int generated_tokens = 0;  // of all sequences
  int64_t kv_bytes = 0;  // the sum of what each sequence held at its largest
  double queue_seconds = 0;  // these three: of the first sequence that ended
  double prefill_seconds = 0;
  double decode_seconds = 0;
  absl::Duration total;  // arrival to end of stream
  absl::Status status;
};

// Called on gRPC's threads, several at once; must not block long.
using RequestLogger = std::function<void(const RequestLog&)>;

// Starts the line of an accepted request.  The id and the outcome are not known
// yet.
RequestLog StartLog(std::string_view method, const Request& request);

// Adds what one of its sequences cost.
void AddUsage(const Usage& usage, RequestLog* log);

}  // namespace strata

#endif  // SERVER_REQUEST_LOG_H_
