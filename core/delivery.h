#ifndef CORE_DELIVERY_H_
#define CORE_DELIVERY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/batch_plan.h"
#include "core/live_request.h"
#include "core/load_report.h"
#include "core/request_table.h"
#include "core/scheduler.h"
#include "monitoring/metrics.h"

namespace strata {

// Takes what a step sampled to the sequences and their sinks, ends what has
// come to its end, and counts all of it. The engine thread's.
class Delivery {
 public:
  // All outlive this.
  Delivery(Scheduler* scheduler, RequestTable* table, LoadMeter* meter,
           Metrics* metrics, int64_t page_bytes);

  // The requests that have ended since the last call.  A plan may still point
  // into them.
  std::vector<std::unique_ptr<LiveRequest>> TakeEnded() {
    return std::exchange(ended_, {});
  }

  // What the scheduler did: takes it into the usage of the sequences, the
  // table's counts and the metrics.
  void Record(std::span<const SchedulerEvent> events);

  // Ends a request that has nothing to run: Score of one token.
  void EndEmpty(LiveRequest* live, absl::Time now);

  // After Commit(plan): `sampled` has one entry for each wanted row, in order.
  void Deliver(const BatchPlan& plan, std::span<const SampledToken> sampled,
               absl::Time now);

  // Ends the request as its client asked: every open index with ABORTED, then
  // OK.
  void Abort(LiveRequest* live, absl::Time now);

  // Ends the request with an error.
  void Fail(LiveRequest* live, const absl::Status& status,
            Metrics::Finish finish, absl::Time now);

 private:
  // Of a sequence that has not ended; it may have been pre-empted.
  void DeliverToken(Sequence* sequence, const SampledToken& sampled,
                    absl::Time now);
  void DeliverScores(Sequence* sequence, std::span<const SampledToken> sampled,
                     absl::Time now);

  // The prompt of `sequence` was run to its end.
  void CountPrompt(LiveRequest* live);
  void CountToken(Sequence* sequence, absl::Time now);
  // Lets the held samples of sample 0's request go; its prompt is in the prefix
  // index now.
  void ReleaseSamples(Sequence* first);
  void RecordAdmission(Sequence* sequence);
  // Counts the request as waiting if none of its sequences runs.
  void CountIfWaiting(LiveRequest* live);
  void RecordSwitch(const SchedulerEvent& event);

  void EndSequence(Sequence* sequence, SequenceDelta delta, FinishReason reason,
                   std::string matched_stop, absl::Time now);
  void EndRequest(LiveRequest* live, const absl::Status& status,
                  Metrics::Finish finish, absl::Time now);
  Usage UsageOf(const Sequence& sequence) const;

  Scheduler* const scheduler_;
  RequestTable* const table_;
  LoadMeter* const meter_;
  Metrics* const metrics_;
  const int64_t page_bytes_;
  std::vector<std::unique_ptr<LiveRequest>> ended_;
};

}  // namespace strata

#endif  // CORE_DELIVERY_H_
