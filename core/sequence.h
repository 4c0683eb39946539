#ifndef CORE_SEQUENCE_H_
#define CORE_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/page_table.h"
#include "core/request.h"
#include "core/sequence_output.h"
#include "core/token_counts.h"

namespace strata {

struct LiveRequest;

// One sequence of a request on its way through the engine: its tokens, its pages and where it stands.  Knows no other
// sequence.  The engine owns it, the scheduler moves it; the engine thread's.
struct Sequence {
  enum class State {
    kHeld,     // a later sample that waits for sample 0 to have run the prompt
    kWaiting,  // for admission
    kRunning,  // holds pages or promises of them
    kEnded,
  };

  Sequence(LiveRequest* live, const Request& request, int index, SequenceOutput output);

  LiveRequest* const live;
  const Request& request;  // outlives the sequence
  const int index;         // among the request's samples

  State state = State::kWaiting;
  std::vector<int32_t> tokens;  // prompt, then generated
  // Positions [0, num_cached) have K and V in the pages.  The engine runs the next ones.
  int num_cached = 0;
  int num_reused = 0;  // of them, those taken from another sample at admission

  SharingStrategy strategy;  // read anew in each step: it may change between two
  PageTable pages;
  int64_t num_reserved = 0;  // pages promised by the pool and not yet allocated
  int64_t max_held = 0;      // pages held at the largest
  int64_t max_held_full = 0;  // the same under `full`

  // The scheduler's own.
  struct Ticket {
    absl::Time due;       // admission is in the order of (due, number)
    uint64_t number = 0;  // in the order of Scheduler::Add, from 1
    uint64_t donor = 0;   // number of the sample whose prompt pages it may share (that one may be gone); 0: none
    int num_passed = 0;   // later ones admitted before it because it did not fit
  };
  Ticket ticket;

  TokenCounts counts;      // for penalties; empty where none is set
  SequenceOutput output;   // text and stopping

  // Times of the engine's clock; InfinitePast where not yet.
  absl::Time first_scheduled = absl::InfinitePast();
  absl::Time first_token = absl::InfinitePast();
  absl::Time last_token = absl::InfinitePast();

  int num_prompt() const { return static_cast<int>(request.prompt.size()); }
  int num_generated() const { return static_cast<int>(tokens.size()) - num_prompt(); }
  // Positions still to be run before the next token can be sampled (Score: before its end).
  int num_pending() const {
    return static_cast<int>(tokens.size()) - num_cached -
           (request.kind == Request::Kind::kScore ? 1 : 0);
  }
  bool prompt_done() const { return num_cached >= num_prompt(); }
};

}  // namespace strata

#endif  // CORE_SEQUENCE_H_
