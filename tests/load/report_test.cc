#include "tests/load/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/load/progress.h"
#include "tests/load/report_json.h"
#include "tests/load/report_table.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

CallRecord Completed(int strategy, double intended_s, double start_s,
                     double end_s, std::vector<Chunk> chunks) {
  CallRecord record = {.strategy = strategy,
                       .intended_s = intended_s,
                       .start_s = start_s,
                       .end_s = end_s,
                       .chunks = std::move(chunks),
                       .has_usage = true,
                       .canonical = strategy == 0 ? "full" : "every=2",
                       .prompt_tokens = 10,
                       .cached_tokens = strategy == 0 ? 4 : 3,
                       .kv_bytes = strategy == 0 ? 800u : 400u,
                       .kv_bytes_full = 800,
                       .num_switches = 1 + strategy,
                       .freed_bytes = strategy == 0 ? 1024u : 2048u,
                       .num_preemptions = 3 + strategy};
  for (const Chunk& chunk : record.chunks) {
    record.num_received += chunk.num_tokens;
  }
  record.generated_tokens = record.num_received;
  return record;
}

CallRecord Ended(grpc::StatusCode code, bool cancel_requested) {
  return {.strategy = 1,
          .status = grpc::Status(code, "why"),
          .cancel_requested = cancel_requested};
}

// Two calls that completed, one of each other end.
std::vector<CallRecord> Records() {
  return {Completed(0, 0.5, 1.0, 3.0, {{1.5, 1}, {2.0, 3}, {2.75, 1}}),
          Completed(1, 2.0, 2.0, 2.5, {{2.25, 1}}),
          Ended(grpc::StatusCode::CANCELLED, true),
          Ended(grpc::StatusCode::CANCELLED, false),
          Ended(grpc::StatusCode::RESOURCE_EXHAUSTED, true)};
}

TEST(ReportTest, CountsEveryCallOnce) {
  const Report report = MakeReport(Records(), 2, {}, 4);
  EXPECT_EQ(report.total.completed, 2);
  EXPECT_EQ(report.total.cancelled, 1);
  EXPECT_EQ(report.total.failed, 2);
  EXPECT_EQ(report.total.errors.at("CANCELLED"), 1);
  EXPECT_EQ(report.total.errors.at("RESOURCE_EXHAUSTED"), 1);
  EXPECT_EQ(report.by_strategy[0].completed, 1);
  EXPECT_EQ(report.by_strategy[0].failed, 0);
  EXPECT_EQ(report.by_strategy[1].failed, 2);
  EXPECT_EQ(report.total.total_input_tokens, 20);
  EXPECT_EQ(report.total.total_output_tokens, 6);
  EXPECT_EQ(report.by_strategy[0].total_output_tokens, 5);
  EXPECT_EQ(report.by_strategy[1].canonical, "every=2");
  EXPECT_DOUBLE_EQ(report.total.kv_bytes_mean, 600);
  EXPECT_DOUBLE_EQ(report.total.kv_bytes_full_mean, 800);
  // Second 2 has 3 + 1 tokens of the first call and 1 of the second.
  EXPECT_EQ(report.max_output_tokens_per_s, 5);
}

TEST(ReportTest, EconomyIsOfCompletedCalls) {
  std::vector<CallRecord> records = Records();
  records.push_back(Completed(0, 3, 3, 4, {{3.5, 2}}));
  records.back().canonical = "every=4";
  for (CallRecord& record : records) {
    if (record.outcome() == CallRecord::Outcome::kCompleted) continue;
    record.cached_tokens = 100;
    record.num_preemptions = 100;
  }
  const Report report = MakeReport(records, 2, {}, 4);
  EXPECT_EQ(report.total.total_cached_tokens, 4 + 3 + 4);
  EXPECT_DOUBLE_EQ(report.total.prefix_hit_rate(), 11 / 30.0);
  EXPECT_DOUBLE_EQ(report.by_strategy[0].prefix_hit_rate(), 0.4);
  EXPECT_EQ(report.total.switches, 1 + 2 + 1);
  EXPECT_EQ(report.total.switch_freed_bytes, 1024u + 2048u + 1024u);
  EXPECT_EQ(report.by_strategy[1].switch_freed_bytes, 2048u);
  EXPECT_EQ(report.total.preemptions, 3 + 4 + 3);
  EXPECT_THAT(report.by_strategy[0].ended_under,
              ElementsAre(Pair("every=4", 1), Pair("full", 1)));
  EXPECT_EQ(report.by_strategy[0].canonical, "full");
  EXPECT_EQ(MakeReport({}, 2, {}, 0).total.prefix_hit_rate(), 0);
}

TEST(ReportTest, LatenciesAreThoseOfVllm) {
  const GroupReport group = MakeReport(Records(), 2, {}, 4).by_strategy[0];
  EXPECT_DOUBLE_EQ(group.ttft_ms.mean, 500);
  EXPECT_DOUBLE_EQ(group.e2el_ms.mean, 2000);
  EXPECT_DOUBLE_EQ(group.tpot_ms.mean, (2000 - 500) / 4.0);
  EXPECT_DOUBLE_EQ(group.itl_ms.mean, (500 + 750) / 2.0);
  EXPECT_DOUBLE_EQ(group.client_queue_time_ms.mean, 500);
  EXPECT_DOUBLE_EQ(group.e2el_including_client_queue_ms.mean, 2500);
  // One token has no time per token.
  EXPECT_EQ(MakeReport(Records(), 2, {}, 4).by_strategy[1].tpot_ms.mean, 0);
}

TEST(ReportTest, GoodputNeedsEveryLimit) {
  const auto good = [](const char* limits) {
    return MakeReport(Records(), 2, *Goodput::Parse(limits), 4).total.good;
  };
  EXPECT_EQ(good(""), 2);
  EXPECT_EQ(good("ttft:400"), 1);
  EXPECT_EQ(good("ttft:1100,tpot:400"), 2);
  EXPECT_EQ(good("ttft:1100,tpot:300"), 1);
  EXPECT_EQ(good("e2el:100"), 0);
}

LoadOptions Options() {
  return {.num_prompts = 5,
          .concurrency = 3,
          .request_rate = std::numeric_limits<double>::infinity(),
          .burstiness = 1,
          .mix = *Mix::Parse("full,every=2"),
          .prompt_lengths = *Lengths::Parse("10"),
          .shared_prefix_tokens = 6,
          .output_lengths = *Lengths::Parse("5"),
          .text_prompts = false,
          .bypass_prefix_cache = true,
          .ignore_eos = true,
          .temperature = 0,
          .timeout_s = 0,
          .goodput = *Goodput::Parse("ttft:400"),
          .allow_errors = {},
          .seed = 9};
}

TEST(ReportJsonTest, HasTheKeysOfVllmBenchServe) {
  const Report report = MakeReport(Records(), 2, Options().goodput, 4);
  const auto json = nlohmann::json::parse(ReportJson(
      report, Options(),
      {.model_id = "m",
       .max_concurrent_requests = 3,
       .seen = {.kv_bytes_peak = 12345, .running_peak = 7, .running_mean = 2.5},
       .violations = {"x"}}));
  EXPECT_EQ(json["duration"], 4);
  EXPECT_EQ(json["completed"], 2);
  EXPECT_EQ(json["failed"], 2);
  EXPECT_EQ(json["cancelled"], 1);
  EXPECT_EQ(json["total_input_tokens"], 20);
  EXPECT_EQ(json["total_output_tokens"], 6);
  EXPECT_EQ(json["request_throughput"], 0.5);
  EXPECT_EQ(json["request_goodput"], 0.25);
  EXPECT_EQ(json["output_throughput"], 1.5);
  EXPECT_EQ(json["total_token_throughput"], 6.5);
  EXPECT_EQ(json["max_output_tokens_per_s"], 5);
  EXPECT_EQ(json["max_concurrent_requests"], 3);
  EXPECT_EQ(json["max_concurrency"], 3);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["kv_bytes_peak"], 12345);
  EXPECT_EQ(json["running_peak"], 7);
  EXPECT_EQ(json["running_mean"], 2.5);
  EXPECT_EQ(json["errors"]["RESOURCE_EXHAUSTED"], 1);
  EXPECT_EQ(json["violations"][0], "x");
  for (const char* part : {"ttft", "tpot", "itl", "e2el"}) {
    for (const char* of :
         {"mean", "median", "std", "p50", "p90", "p95", "p99"}) {
      const std::string key = std::string(of) + "_" + part + "_ms";
      EXPECT_TRUE(json.contains(key)) << key;
      EXPECT_TRUE(json["by_strategy"]["every=2"].contains(key)) << key;
    }
  }
  EXPECT_EQ(json["mean_ttft_ms"], 375);
  EXPECT_EQ(json["by_strategy"]["full"]["mean_ttft_ms"], 500);
  EXPECT_EQ(json["by_strategy"]["full"]["strategy"], "full");
  EXPECT_EQ(json["by_strategy"]["full"]["kv_bytes_mean"], 800);
}

TEST(ReportJsonTest, SaysWhatTheEconomyDid) {
  LoadOptions options = Options();
  options.mix = *Mix::Parse("full>every=2,every=2");
  const auto json = nlohmann::json::parse(
      ReportJson(MakeReport(Records(), 2, {}, 4), options, {}));
  EXPECT_EQ(json["shared_prefix_tokens"], 6);
  EXPECT_EQ(json["bypass_prefix_cache"], true);
  EXPECT_EQ(json["cached_tokens"], 7);
  EXPECT_EQ(json["prefix_hit_rate"], 0.35);
  EXPECT_EQ(json["switches"], 3);
  EXPECT_EQ(json["switch_freed_bytes"], 3072);
  EXPECT_EQ(json["preemptions"], 7);
  EXPECT_EQ(json["ended_under"]["every=2"], 1);
  EXPECT_EQ(json["by_strategy"]["full>every=2"]["prefix_hit_rate"], 0.4);
  EXPECT_EQ(json["by_strategy"]["every=2"]["switches"], 2);
}

TEST(ReportTest, LimitsCountFromTheIntendedStart) {
  // Started half a second late, the first token half a second after that.
  const std::vector<CallRecord> late = {
      Completed(0, 0.5, 1.0, 3.0, {{1.5, 1}, {2.0, 1}})};
  EXPECT_EQ(MakeReport(late, 1, *Goodput::Parse("ttft:600"), 4).total.good, 0);
  EXPECT_EQ(MakeReport(late, 1, *Goodput::Parse("ttft:1001"), 4).total.good, 1);
  EXPECT_EQ(MakeReport(late, 1, *Goodput::Parse("e2el:2400"), 4).total.good, 0);
  EXPECT_EQ(MakeReport(late, 1, *Goodput::Parse("e2el:2501"), 4).total.good, 1);
}

TEST(ReportTest, ExpiredCallsAndLiveSwitchesAreCounted) {
  using LiveSwitch = CallRecord::LiveSwitch;
  std::vector<CallRecord> records(5);
  records[0].status = grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "");
  records[0].has_deadline = true;
  records[1].status = records[0].status;  // of --timeout: a failure
  records[1].live_switch = LiveSwitch::kDone;
  records[2].live_switch = LiveSwitch::kDone;
  records[3].live_switch = LiveSwitch::kLate;
  records[4].live_switch = LiveSwitch::kFailed;
  records[4].live_switch_status =
      grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no subset");
  const GroupReport total = MakeReport(records, 1, {}, 1).total;
  EXPECT_EQ(total.expired, 1);
  EXPECT_EQ(total.failed, 1);
  EXPECT_EQ(total.completed, 3);
  EXPECT_EQ(total.num_calls(), 5);
  EXPECT_EQ(total.live_switches, 2);
  EXPECT_EQ(total.live_switches_late, 1);
  EXPECT_THAT(total.live_switch_errors,
              ElementsAre(Pair("FAILED_PRECONDITION", 1)));
}

TEST(ReportJsonTest, DetailsHaveAnItemForEachCall) {
  const auto records = Records();
  const auto json = nlohmann::json::parse(
      ReportJson(MakeReport(records, 2, {}, 4), Options(), {}, &records));
  const auto& details = json["details"];
  for (const char* key :
       {"input_lens", "output_lens", "ttfts", "itls", "latencies",
        "start_times", "queue_times", "errors", "strategies", "outcomes"}) {
    EXPECT_EQ(details[key].size(), 5u) << key;
  }
  EXPECT_EQ(details["input_lens"][0], 10);
  EXPECT_EQ(details["output_lens"][0], 5);
  EXPECT_EQ(details["ttfts"][0], 0.5);
  EXPECT_EQ(details["itls"][0], (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(details["latencies"][0], 2);
  EXPECT_EQ(details["queue_times"][0], 0.5);
  EXPECT_EQ(details["strategies"][1], "every=2");
  EXPECT_EQ(details["outcomes"],
            (std::vector<std::string>{"completed", "completed", "cancelled",
                                      "failed", "failed"}));
  EXPECT_EQ(details["errors"][2], "why");
}

TEST(ReportJsonTest, GoodputOnlyWhereAsked) {
  LoadOptions options = Options();
  options.goodput = {};
  options.request_rate = 2.5;
  options.concurrency = 0;
  const auto json =
      nlohmann::json::parse(ReportJson(MakeReport({}, 2, {}, 0), options, {}));
  EXPECT_FALSE(json.contains("request_goodput"));
  EXPECT_EQ(json["request_rate"], 2.5);
  EXPECT_TRUE(json["max_concurrency"].is_null());
  EXPECT_EQ(json["output_throughput"], 0);
}

TEST(ReportTableTest, RowsForStrategiesAndTotal) {
  const std::string table =
      ReportTable(MakeReport(Records(), 2, {}, 4), {"full", "every=2"});
  EXPECT_THAT(table, HasSubstr("\nfull "));
  EXPECT_THAT(table, HasSubstr("\nevery=2 "));
  EXPECT_THAT(table, HasSubstr("\ntotal "));
  EXPECT_THAT(table, HasSubstr("500.0/500.0"));
  EXPECT_THAT(table, HasSubstr("50%"));
}

TEST(EconomyTableTest, RowsForStrategiesAndTotal) {
  std::vector<CallRecord> records = Records();
  records[0].canonical = "every=15";
  EXPECT_EQ(
      EconomyTable(MakeReport(records, 2, {}, 4), {"full>every=15", "every=2"}),
      "strategy       prompt tokens  cached  hit rate  switches     freed  "
      "preemptions  ended under\n"
      "-------------  -------------  ------  --------  --------  --------  "
      "-----------  -----------------------\n"
      "full>every=15             10       4     40.0%         1  1.00 KiB  "
      "          3  every=15: 1\n"
      "every=2                   10       3     30.0%         2  2.00 KiB  "
      "          4  every=2: 1\n"
      "total                     20       7     35.0%         3  3.00 KiB  "
      "          7  every=15: 1, every=2: 1\n");
}

TEST(ProgressLineTest, FitsItsWidth) {
  Progress progress = {.elapsed_s = 4,
                       .num_calls = 100,
                       .num_started = 37,
                       .num_done = 25,
                       .num_failed = 3,
                       .num_tokens = 200};
  EXPECT_EQ(ProgressLine(progress, 200),
            "[#####---------------]  25/100  3 failed  12 running  50.0 tok/s  "
            "4 s");
  EXPECT_EQ(ProgressLine(progress, 10), "[#####---…");
  progress.duration_s = 8;
  EXPECT_EQ(
      ProgressLine(progress, 200),
      "[##########----------]  25 calls  3 failed  12 running  50.0 tok/s "
      " 4 s");
}

}  // namespace
}  // namespace strata
