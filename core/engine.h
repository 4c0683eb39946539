#ifndef CORE_ENGINE_H_
#define CORE_ENGINE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/delivery.h"
#include "core/fit_request.h"
#include "core/inbox.h"
#include "core/kv_pool.h"
#include "core/load_report.h"
#include "core/request.h"
#include "core/request_table.h"
#include "core/scheduler.h"
#include "core/step_pipeline.h"
#include "core/strategy_registry.h"
#include "core/text/tokenizer.h"
#include "core/token_sink.h"
#include "core/transformer.h"
#include "monitoring/metrics.h"

namespace strata {

// Whether the engine's loop is alive.
enum class EngineHealth { kGood, kStalled, kDeviceLost };

// Runs requests: owns the one thread that plans steps, runs them and hands out
// their tokens, and with it the scheduler, the pool and the sequences.  All
// that reaches these goes through the inbox.
//
// Thread-safe.
class Engine {
 public:
  struct Options {
    Scheduler::Options scheduler;
    PressurePolicy pressure = {};   // until SetPolicy
    int max_queued_requests = 256;  // waiting ones; 0: none may wait
    int max_model_len = 0;          // positions of a sequence
    int64_t num_pages = 0;          // of the backend's slab
    int64_t page_bytes = 0;
    absl::Duration stall_limit = absl::Seconds(30);  // of the watchdog
  };

  // What the engine works with; all outlive it but for the transformer, which
  // it takes.
  struct Parts {
    std::unique_ptr<Transformer> transformer;
    const Tokenizer* tokenizer = nullptr;  // null: tokens only
    std::vector<int32_t> eos_ids;
    StrategyRegistry* strategies = nullptr;
    Metrics* metrics = nullptr;
    std::function<absl::Time()> now = absl::Now;
    // Called once, on the engine thread, with the device's error.
    std::function<void(const absl::Status&)> on_device_lost = nullptr;
  };

  // Runs one short request, so that the first client does not pay for cold
  // memory, and starts the thread.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const Options& options,
                                                        Parts parts);
  // Drains without patience.
  ~Engine();

  // Queues a request; results and refusals (RESOURCE_EXHAUSTED: the queue is
  // full; UNAVAILABLE: draining) go to `sink`. REQUIRES: FitRequest(limits(),
  // ...) accepted it.
  RequestId Submit(Request request, std::shared_ptr<TokenSink> sink);

  // Ends a request with CANCELLED between two steps; no effect if it has ended.
  // Does not wait.
  void Cancel(RequestId id);

  // Ends every live request with this label: finish reason ABORTED, status OK.
  // Calls `done` with their number.
  void Abort(std::string label, std::function<void(int)> done);

  // Switches every live request with this label, running, queued or pre-empted,
  // to `strategy`, between two steps: pages of leaders that it drops are free
  // at once, and nothing is recomputed.  With `recompute` the positions run so
  // far are run again under it, and it may be any.  Calls `done` with the bytes
  // given back, or NOT_FOUND, or FAILED_PRECONDITION (its leaders are not a
  // subset and no `recompute`; or the pool can never hold a request under it):
  // nothing is changed then.  UNAVAILABLE after Drain.
  void SwitchStrategy(std::string label, SharingStrategy strategy,
                      int strategy_label, bool recompute,
                      std::function<void(absl::StatusOr<int64_t>)> done);

  // When requests are demoted to their floors.  Fields that are absent stay.
  // REQUIRES: 0 < pressure_threshold <= 1.
  void SetPolicy(std::optional<bool> demote_under_pressure,
                 std::optional<double> pressure_threshold);

  // The state after the latest step.
  LoadReport GetLoad() const;
  const EngineLimits& limits() const { return limits_; }
  const std::vector<int32_t>& eos_ids() const { return parts_.eos_ids; }

  // Stalled: requests are there and no step has ended for stall_limit.
  EngineHealth health() const;

  // From now on Submit refuses.  Returns when nothing runs or waits, or after
  // `timeout`; what is left then is ended with UNAVAILABLE.  Ends the thread.
  // Idempotent.
  void Drain(absl::Duration timeout);

 private:
  Engine(const Options& options, Parts parts);

  // On the engine thread.
  absl::Status WarmUp();
  void Loop();
  // Launches a step and finishes the one before; where no two may be in flight,
  // finishes the same.  Returns false if there was nothing to do.
  bool RunStep();
  // Plans a step and starts it; null if nothing is to run.
  const StepPipeline::Step* LaunchStep();
  // Waits for the oldest step in flight and delivers its tokens.
  void FinishStep();
  void LoseDevice(const absl::Status& status);
  void Accept(std::unique_ptr<LiveRequest> live);
  void Refuse(LiveRequest& live, absl::Status status,
              Metrics::Rejection reason);
  void RecordEvents();
  void EndExpired();
  void Expire(LiveRequest* live, absl::Time now);
  void EndAll(const absl::Status& status);
  void Publish();

  const Options options_;
  Parts parts_;  // the transformer has gone to pipeline_
  const EngineLimits limits_;

  // The engine thread's.
  KvPool pool_;
  Scheduler scheduler_;
  RequestTable table_;
  LoadMeter meter_;
  Delivery delivery_;
  StepPipeline pipeline_;
  absl::Time step_end_ = absl::InfinitePast();  // of the latest finished
  std::vector<SchedulerEvent> events_;
  bool draining_ = false;
  absl::Status device_;  // an error is permanent

  Inbox inbox_;
  std::atomic<RequestId> next_id_{1};
  std::atomic<bool> stop_{false};
  std::atomic<bool> device_lost_{false};
  std::atomic<bool> busy_{false};  // requests are live
  std::atomic<int64_t> last_progress_ms_{
      0};  // Unix time of the last step, or of becoming busy

  mutable std::mutex mu_;
  std::condition_variable changed_;  // drained_ became true
  LoadReport report_ ABSL_GUARDED_BY(mu_);
  bool drained_ ABSL_GUARDED_BY(mu_) = false;
  std::mutex drain_mu_;  // held by the one who drains
  std::thread thread_;
};

}  // namespace strata

#endif  // CORE_ENGINE_H_
