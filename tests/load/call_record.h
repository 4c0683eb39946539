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
  std::optional<double> deadline_s;  // one that it may well miss
  double read_delay_s = 0;           // before each read but the first
  std::string switch_to;             // by Admin; empty: never
  int switch_after_responses = 0;
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
  bool has_deadline = false;  // PlannedCall::deadline_s
  bool is_slow = false;       // PlannedCall::read_delay_s
  double intended_s = 0;
  double start_s = 0;
  double end_s = 0;
  std::vector<Chunk> chunks = {};
  int64_t num_received = 0;           // tokens in `chunks`
  int max_tokens = 0;                 // of the plan, as the next
  int64_t planned_prompt_tokens = 0;  // 0: a text's, which nobody counted

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

  // What Admin.SwitchStrategy answered, where the plan says to ask for it.
  // Late: the request had ended, or the call before it was sent.
  enum class LiveSwitch { kNone, kDone, kLate, kFailed };
  LiveSwitch live_switch = LiveSwitch::kNone;
  grpc::Status live_switch_status = {};

  // Expired: its planned deadline passed.  A call whose own cancellation or
  // deadline came too late has completed.
  enum class Outcome { kCompleted, kCancelled, kExpired, kFailed };
  Outcome outcome() const {
    if (status.ok()) return Outcome::kCompleted;
    const bool cancelled =
        cancel_requested && status.error_code() == grpc::StatusCode::CANCELLED;
    if (cancelled) return Outcome::kCancelled;
    const bool expired =
        has_deadline &&
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    return expired ? Outcome::kExpired : Outcome::kFailed;
  }
};

}  // namespace strata

#endif  // TESTS_LOAD_CALL_RECORD_H_
