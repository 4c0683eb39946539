#ifndef TESTS_LOAD_RUNNER_H_
#define TESTS_LOAD_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "tests/load/call.h"
#include "tests/load/call_record.h"
#include "tests/load/options.h"
#include "tests/load/plan.h"

namespace strata {

// How far a run is.
struct Progress {
  double elapsed_s = 0;
  int num_calls = 0;
  double duration_s = 0;  // after which no call starts; 0: no limit
  int num_started = 0;
  int num_done = 0;
  int num_failed = 0;
  int64_t num_tokens = 0;  // received so far
};

// Carries a plan out: starts each call at its time or, under a cap on
// concurrency, when a place is free; cancels those that are to be.
//
// Run is for one thread, once; Stop for any.
class Runner : private Call::Observer {
 public:
  using ProgressSink = std::function<void(const Progress&)>;

  // The arguments outlive this.
  Runner(const LoadOptions* options, const Plan* plan,
         const Connection* connection)
      : options_(options), plan_(plan), connection_(connection) {}

  // Returns when every started call has ended.  `progress` is called several
  // times a second on the calling thread.  Records are in order of the plan,
  // those of calls never started left out.
  std::vector<CallRecord> Run(const ProgressSink& progress);

  // Starts no further calls and cancels those in flight.
  void Stop();

  int max_concurrent() const { return max_concurrent_; }

 private:
  using CancelTime = std::pair<double, int>;  // seconds, index of the call

  void OnTokens(int num_tokens) override { num_tokens_ += num_tokens; }
  void OnCallDone(int index) override;

  double Elapsed() const;
  // Whether the plan holds another call that may start, now or later.
  bool HasMore() const;
  bool HasPlace() const;
  void StartDueCalls();
  void StartCall(int index);
  void CancelDueCalls();
  // Moves the records of ended calls out and destroys them.
  void Collect(std::vector<int> ended);
  // Seconds until a call or a cancellation is due, at most `longest`.
  double UntilNextDue(double longest) const;

  const LoadOptions* const options_;
  const Plan* const plan_;
  const Connection* const connection_;

  // Of the thread in Run.
  absl::Time start_;
  int next_ = 0;  // first call of the plan that has not started
  int num_failed_ = 0;
  int max_concurrent_ = 0;
  std::map<int, std::unique_ptr<Call>> active_;
  std::map<int, CallRecord> records_;
  std::priority_queue<CancelTime, std::vector<CancelTime>, std::greater<>>
      cancels_;

  std::atomic<int64_t> num_tokens_ = 0;
  absl::Mutex mu_;
  std::vector<int> ended_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // TESTS_LOAD_RUNNER_H_
