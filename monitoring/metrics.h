#ifndef MONITORING_METRICS_H_
#define MONITORING_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace prometheus {
struct MetricFamily;
class Registry;
}  // namespace prometheus

namespace strata {

// Strata's Prometheus metrics: strata_* and, of the same values, the vllm:
// names that dashboards and endpoint pickers read.  Every series exists, at
// zero, from the moment its labels are known, so that rate() misses no first
// event.
//
// Strategies are given by label index (core/strategy_registry.h); label 0 is
// "other", which exists from the start and counts for a label that does not.
//
// Thread-safe.  Of the calls that the engine makes for each token, step or
// change of a sequence, none allocates or waits for a scrape longer than the
// copy of one value.
class Metrics {
 public:
  struct Config {
    std::string model_name;
    std::string version;
    std::string backend;
    std::string kv_format;
    int page_tokens = 0;
    int64_t page_bytes = 0;
    int64_t num_pages = 0;
    int num_layers = 0;
    int max_model_len = 0;
    int max_sequences = 0;        // that run at once
    int max_queued_requests = 0;  // that wait
  };
  // `registry` outlives this.
  Metrics(prometheus::Registry* registry, const Config& config);
  ~Metrics();

  // Creates the series of label `label`.  Labels come in order, from 0; a known
  // one is left as it is. `kv_bytes_per_token`: 0 where it has no one value
  // (label 0).
  void AddStrategy(int label, const std::string& canonical,
                   int64_t kv_bytes_per_token);

  enum class Finish { kStop, kLength, kAbort, kCancelled, kDeadline, kError };
  enum class Rejection {
    kQueueFull,
    kNeverFits,
    kInvalid,
    kDraining,
    kNoAccess
  };

  // A step was run.
  struct StepRecord {
    // To its end, from when it was planned, or from the end of the step before
    // if that was later: durations do not overlap, steps may.
    absl::Duration duration;
    int prompt_rows = 0;
    int decode_rows = 0;
  };
  void RecordStep(const StepRecord& step);

  void AddPromptTokens(
      int label, int64_t count);  // run for the first time, once a request
  void AddGeneratedTokens(int label, int64_t count);  // at every index
  void RecordQueueTime(int label,
                       absl::Duration time);  // arrival to first scheduled
  void RecordFirstToken(int label, absl::Duration since_arrival,
                        absl::Duration since_scheduled);
  void RecordInterToken(int label, absl::Duration gap);

  // A request ended, once whatever its n.
  struct RequestRecord {
    Finish finish = Finish::kStop;
    absl::Duration end_to_end;
    absl::Duration decode;  // first token to last
    int prompt_tokens = 0;
    int generated_tokens = 0;  // of all its sequences
    int max_tokens = 0;
    int num_sequences = 1;
  };
  void RecordRequest(int label, const RequestRecord& request);
  void RecordRejection(Rejection reason);

  // A sequence changed its strategy: as its client asked by a call of Admin, as
  // its request planned, or as the server did under memory pressure.
  // REQUIRES: freed_bytes >= 0.
  enum class SwitchCause { kClient, kPlanned, kPressure };
  void RecordSwitch(SwitchCause cause, int64_t freed_bytes);
  // A sequence was admitted under its request's floor instead of its strategy.
  void RecordFloorStart();
  // A sequence lost its pages to others and will be recomputed.
  void RecordPreemption();
  // A sequence was admitted for the first time: of the `queried` tokens of its
  // prompt `hits` were in the prefix cache.  REQUIRES: 0 <= hits <= queried.
  void RecordPrefixLookup(int label, int64_t queried, int64_t hits);

  // The state after a step, or while idle.  Before the first: all of the pool
  // is free.
  struct StrategyGauges {
    int running = 0;  // requests
    int64_t kv_used_bytes = 0;
    int64_t kv_saved_bytes = 0;  // held less than under `full`
  };
  struct Gauges {
    int running = 0;  // requests
    int waiting = 0;
    int64_t kv_used_bytes = 0;
    int64_t kv_reserved_bytes = 0;
    int64_t kv_cached_bytes = 0;
    int64_t kv_free_bytes = 0;
    double prompt_tokens_per_second = 0;
    double generated_tokens_per_second = 0;
    std::vector<StrategyGauges> strategies;  // by label
  };
  void SetGauges(const Gauges& gauges);
  enum class Fault { kNone, kStalled, kDeviceLost };
  void SetFault(Fault fault);

  // All families, for a scrape.  The gauges are those of one SetGauges: KV
  // bytes sum to the pool.
  std::vector<prometheus::MetricFamily> Collect();

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace strata

#endif  // MONITORING_METRICS_H_
