#ifndef TESTS_LOAD_CALL_RECORD_H_
#define TESTS_LOAD_CALL_RECORD_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata {

// One call before it is sent.
struct PlannedCall {
  int strategy = 0;              // index into Mix::items()
  std::vector<uint32_t> tokens;  // the prompt, unless `text` is set
  std::string text;
  int max_tokens = 0;
  uint64_t seed = 0;
  double arrival_s = 0;  // intended start, from the run's beginning
  std::optional<double> cancel_after_s;  // from its start; unset: never
  std::optional<int> cancel_after_responses;
};

// Tokens that came together, `at_s` seconds after the run's beginning.
struct Chunk {
  double at_s = 0;
  int num_tokens = 0;
};

// What became of a call.  Times are seconds from the run's beginning.
struct CallRecord {
  int strategy = 0;
  grpc::Status status = {};
  bool cancel_requested = false;
  double intended_s = 0;
  double start_s = 0;
  double end_s = 0;
  std::vector<Chunk> chunks = {};
  int64_t num_received = 0;  // tokens in `chunks`

  // From the server's Usage; unset where the call did not reach its end.
  bool has_usage = false;
  std::string canonical = "";  // of the strategy that it ended with
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, from the prefix cache
  int64_t generated_tokens = 0;
  uint64_t kv_bytes = 0;
  uint64_t kv_bytes_full = 0;
  int num_switches = 0;
  uint64_t freed_bytes = 0;  // by the switches
  int num_preemptions = 0;

  enum class Outcome { kCompleted, kCancelled, kFailed };
  // A call whose own cancellation came too late has completed.
  Outcome outcome() const {
    if (status.ok()) return Outcome::kCompleted;
    const bool cancelled =
        cancel_requested && status.error_code() == grpc::StatusCode::CANCELLED;
    return cancelled ? Outcome::kCancelled : Outcome::kFailed;
  }
};

}  // namespace strata

#endif  // TESTS_LOAD_CALL_RECORD_H_
