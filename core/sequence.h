#ifndef CORE_SEQUENCE_H_
#define CORE_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/page_table.h"
#include "core/prefix_index.h"
#include "core/request.h"
#include "core/sequence_output.h"
#include "core/sharing_strategy.h"
#include "core/strategy_path.h"
#include "core/token_counts.h"
#include "core/token_sink.h"

namespace strata {

struct LiveRequest;
struct LiveStrategy;

// One sequence of a request on its way through the engine: its tokens, its
// pages and where it stands.  Knows no other sequence.  The engine owns it, the
// scheduler moves it; the engine thread's.
struct Sequence {
  enum class State {
    kHeld,     // a later sample that waits for sample 0 to have run the prompt
    kWaiting,  // for admission, the first or one after pre-emption
    kRunning,  // holds pages or promises of them
    kEnded,
  };

  Sequence(LiveRequest* live, const Request& request, int index,
           SequenceOutput output);

  LiveRequest* const live;
  const Request& request;  // outlives the sequence
  const int index;         // among the request's samples

  State state = State::kWaiting;
  std::vector<int32_t> tokens;  // prompt, then generated
  // The token that comes next to `tokens` is sampled by a step in flight, as
  // that step's sampled_as-th; -1: by none.
  int sampled_as = -1;
  // Positions [0, num_cached) have K and V in the pages.  The engine runs the
  // next ones.
  int num_cached = 0;
  int max_cached = 0;  // at any time: less is cached after a pre-emption
  int num_reused = 0;  // of them, those found cached when it was first admitted

  StrategyPath path;
  SharingStrategy strategy;  // path.strategy(); it may change between two steps
  int strategy_label = 0;
  std::vector<SwitchRecord> switches;  // those it went through
  int num_preemptions = 0;

  PageTable pages;
  // Pages promised by the pool and not yet allocated: all that it will allocate
  // before position promised_end.
  int64_t num_reserved = 0;
  int64_t promised_end = 0;
  int64_t max_held = 0;       // pages held at the largest
  int64_t max_held_full = 0;  // the same under `full`

  // KvMemory's own.
  struct PrefixPlace {
    const LiveStrategy* strategy = nullptr;  // of `strategy`
    // By slot: under which lineage the pages to come are entered in the index,
    // or kNone: they were written under more than one.
    std::vector<int32_t> lineages;
    int32_t node = PrefixIndex::kNone;  // after the blocks entered
    int num_blocks = 0;                 // entered
  };
  PrefixPlace prefix;

  // The scheduler's own.
  struct Ticket {
    absl::Time due;       // admission is in the order of (due, number)
    uint64_t number = 0;  // in the order of Scheduler::Add, from 1
    int num_passed = 0;  // later ones admitted before it because it did not fit
    // When it last did not fit: the pages it lacked the pool for, and the step
    // in which its prefix is looked up again even so.
    int64_t num_needed = 0;
    uint64_t retry_step = 0;
  };
  Ticket ticket;

  TokenCounts counts;     // for penalties; empty where none is set
  SequenceOutput output;  // text and stopping

  // Times of the engine's clock; InfinitePast where not yet.
  absl::Time first_scheduled = absl::InfinitePast();
  absl::Time first_token = absl::InfinitePast();
  absl::Time last_token = absl::InfinitePast();

  int num_prompt() const { return static_cast<int>(request.prompt.size()); }
  int num_generated() const {
    return static_cast<int>(tokens.size()) - num_prompt();
  }
  bool is_sampling() const { return sampled_as >= 0; }
  // The token that was sampled.
  void Append(int32_t token) {
    tokens.push_back(token);
    sampled_as = -1;
  }
  // Positions still to be run before the token after all known ones, and the
  // one that is being sampled, can be sampled (Score: before its end).
  int num_pending() const {
    return static_cast<int>(tokens.size()) + is_sampling() - num_cached -
           (request.kind == Request::Kind::kScore ? 1 : 0);
  }
  // Whether every position up to its end was run, or is in flight.
  bool is_at_end() const { return num_cached >= request.MaxPositions(); }
  // Whether it runs what it had run before a pre-emption.
  bool is_replaying() const { return num_cached < max_cached; }
};

}  // namespace strata

#endif  // CORE_SEQUENCE_H_
