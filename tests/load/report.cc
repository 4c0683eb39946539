#include "tests/load/report.h"

#include <algorithm>

#include "client/connection.h"

namespace strata {
namespace {

// Gathers one group's calls.
class GroupBuilder {
 public:
  explicit GroupBuilder(const Goodput& goodput) : goodput_(goodput) {}

  void Add(const CallRecord& record) {
    AddLiveSwitch(record);
    switch (record.outcome()) {
      case CallRecord::Outcome::kCancelled:
        ++report_.cancelled;
        return;
      case CallRecord::Outcome::kExpired:
        ++report_.expired;
        return;
      case CallRecord::Outcome::kFailed:
        ++report_.failed;
        ++report_.errors[CodeName(record.status.error_code())];
        return;
      case CallRecord::Outcome::kCompleted:
        AddCompleted(record);
    }
  }

  GroupReport Finish(double duration_s) {
    report_.duration_s = duration_s;
    report_.ttft_ms = Describe(std::move(ttft_ms_));
    report_.tpot_ms = Describe(std::move(tpot_ms_));
    report_.itl_ms = Describe(std::move(itl_ms_));
    report_.e2el_ms = Describe(std::move(e2el_ms_));
    report_.client_queue_time_ms = Describe(std::move(queue_ms_));
    report_.ttft_including_client_queue_ms =
        Describe(std::move(ttft_with_queue_ms_));
    report_.e2el_including_client_queue_ms =
        Describe(std::move(e2el_with_queue_ms_));
    const double completed = std::max(report_.completed, 1);
    report_.kv_bytes_mean = kv_bytes_ / completed;
    report_.kv_bytes_full_mean = kv_bytes_full_ / completed;
    return std::move(report_);
  }

 private:
  void AddLiveSwitch(const CallRecord& record) {
    switch (record.live_switch) {
      case CallRecord::LiveSwitch::kNone:
        return;
      case CallRecord::LiveSwitch::kDone:
        ++report_.live_switches;
        return;
      case CallRecord::LiveSwitch::kLate:
        ++report_.live_switches_late;
        return;
      case CallRecord::LiveSwitch::kFailed:
        ++report_.live_switch_errors[CodeName(
            record.live_switch_status.error_code())];
    }
  }

  void AddCompleted(const CallRecord& record) {
    if (report_.completed++ == 0) report_.canonical = record.canonical;
    report_.total_input_tokens += record.prompt_tokens;
    report_.total_output_tokens += record.num_received;
    report_.total_cached_tokens += record.cached_tokens;
    report_.switches += record.num_switches;
    report_.switch_freed_bytes += record.freed_bytes;
    report_.preemptions += record.num_preemptions;
    ++report_.ended_under[record.canonical];
    kv_bytes_ += static_cast<double>(record.kv_bytes);
    kv_bytes_full_ += static_cast<double>(record.kv_bytes_full);
    const double e2el_ms = 1e3 * (record.end_s - record.start_s);
    const double queue_ms =
        std::max(0.0, 1e3 * (record.start_s - record.intended_s));
    e2el_ms_.push_back(e2el_ms);
    queue_ms_.push_back(queue_ms);
    e2el_with_queue_ms_.push_back(queue_ms + e2el_ms);

    // A call without tokens has no time to the first, so it meets no limit on
    // it.
    bool good = !goodput_.e2el_ms || queue_ms + e2el_ms <= *goodput_.e2el_ms;
    if (record.chunks.empty()) {
      good = good && !goodput_.ttft_ms;
    } else {
      good = AddTokenTimes(record, queue_ms, e2el_ms) && good;
    }
    if (good) ++report_.good;
  }

  // Whether the limits on TTFT and TPOT are met.  REQUIRES: there are chunks.
  bool AddTokenTimes(const CallRecord& record, double queue_ms,
                     double e2el_ms) {
    const double ttft_ms = 1e3 * (record.chunks.front().at_s - record.start_s);
    ttft_ms_.push_back(ttft_ms);
    ttft_with_queue_ms_.push_back(queue_ms + ttft_ms);
    bool good = !goodput_.ttft_ms || queue_ms + ttft_ms <= *goodput_.ttft_ms;
    if (record.num_received > 1) {
      const double tpot_ms =
          (e2el_ms - ttft_ms) / static_cast<double>(record.num_received - 1);
      tpot_ms_.push_back(tpot_ms);
      good = good && (!goodput_.tpot_ms || tpot_ms <= *goodput_.tpot_ms);
    }
    for (size_t i = 1; i < record.chunks.size(); ++i) {
      itl_ms_.push_back(1e3 *
                        (record.chunks[i].at_s - record.chunks[i - 1].at_s));
    }
    return good;
  }

  const Goodput goodput_;
  GroupReport report_;
  double kv_bytes_ = 0;
  double kv_bytes_full_ = 0;
  std::vector<double> ttft_ms_;
  std::vector<double> tpot_ms_;
  std::vector<double> itl_ms_;
  std::vector<double> e2el_ms_;
  std::vector<double> queue_ms_;
  std::vector<double> ttft_with_queue_ms_;
  std::vector<double> e2el_with_queue_ms_;
};

int64_t MaxTokensPerSecond(const std::vector<CallRecord>& records) {
  std::map<int64_t, int64_t> tokens_of_second;
  int64_t most = 0;
  for (const CallRecord& record : records) {
    for (const Chunk& chunk : record.chunks) {
      int64_t& count = tokens_of_second[static_cast<int64_t>(chunk.at_s)];
      count += chunk.num_tokens;
      most = std::max(most, count);
    }
  }
  return most;
}

}  // namespace

Report MakeReport(const std::vector<CallRecord>& records, int num_strategies,
                  const Goodput& goodput, double duration_s) {
  GroupBuilder total(goodput);
  std::vector<GroupBuilder> groups(num_strategies, GroupBuilder(goodput));
  for (const CallRecord& record : records) {
    total.Add(record);
    groups[record.strategy].Add(record);
  }
  Report report;
  report.total = total.Finish(duration_s);
  for (GroupBuilder& group : groups) {
    report.by_strategy.push_back(group.Finish(duration_s));
  }
  report.max_output_tokens_per_s = MaxTokensPerSecond(records);
  return report;
}

}  // namespace strata
