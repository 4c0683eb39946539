#ifndef SERVER_REQUEST_LOG_H_
#define SERVER_REQUEST_LOG_H_

#include <cstdint>
#include <functional>
#include <optional>
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
  int num_sequences = 0;    // 0: refused
  int prompt_tokens = 0;
  int generated_tokens = 0;  // of all sequences, as far as they came
  // These three: of the first sequence that ended by itself.
  std::optional<double> queue_seconds;
  std::optional<double> prefill_seconds;
  std::optional<double> decode_seconds;
  // Of the sequences that ended by themselves, summed.
  int cached_tokens = 0;
  int num_switches = 0;
  int num_preemptions = 0;
  int num_ended = 0;              // sequences, by themselves
  int64_t kv_bytes_of_ended = 0;  // the sum of what each held at its largest
  absl::Duration total;           // arrival to end of stream
  absl::Status status;
};

// Called on gRPC's threads, several at once; must not block long.
using RequestLogger = std::function<void(const RequestLog&)>;

// The line of a call that has just come.  `method`: a literal.
RequestLog StartLog(std::string_view method, const std::string& label);

// Adds what an accepted request asks for.
void Describe(const Request& request, RequestLog* log);

// Adds what one of its sequences cost when it had ended, but for its tokens.
void AddUsage(const Usage& usage, RequestLog* log);

}  // namespace strata

#endif  // SERVER_REQUEST_LOG_H_
