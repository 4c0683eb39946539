#include "tests/load/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/client/fake_inference.h"
#include "tests/load/invariants.h"
#include "tests/load/load_watch.h"
#include "tests/load/plan.h"
#include "tests/load/test_options.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

// One run against a server in this process.
struct Rig {
  explicit Rig(LoadOptions load) : options(std::move(load)) {
    plan = MakePlan(options, Model());
    connection = *Connection::Open(server.Options());
    runner = std::make_unique<Runner>(&options, &plan, connection.get());
  }
  std::vector<CallRecord> Run() {
    return runner->Run([](const Progress&) {});
  }

  FakeInference server;
  LoadOptions options;
  Plan plan;
  std::unique_ptr<Connection> connection;
  std::unique_ptr<Runner> runner;
};

int Count(const std::vector<CallRecord>& records, CallRecord::Outcome outcome) {
  return static_cast<int>(
      std::count_if(records.begin(), records.end(),
                    [&](const auto& r) { return r.outcome() == outcome; }));
}

TEST(RunnerTest, ClosedLoopNeverPassesItsConcurrency) {
  Rig rig(Options(60, 7));
  rig.server.pause_ms = 1;
  const auto records = rig.Run();
  ASSERT_EQ(records.size(), 60u);
  EXPECT_EQ(rig.server.max_running(), 7);
  EXPECT_EQ(rig.runner->max_concurrent(), 7);
  EXPECT_EQ(Count(records, CallRecord::Outcome::kCompleted), 60);
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(records[i].num_received, rig.plan.calls[i].max_tokens);
    EXPECT_EQ(records[i].generated_tokens, rig.plan.calls[i].max_tokens);
    EXPECT_EQ(records[i].prompt_tokens,
              static_cast<int>(rig.plan.calls[i].tokens.size()));
    EXPECT_EQ(records[i].canonical,
              rig.options.mix.items()[rig.plan.calls[i].strategy].spec);
    EXPECT_EQ(records[i].intended_s, records[i].start_s);
    EXPECT_LE(records[i].start_s, records[i].chunks.front().at_s);
    EXPECT_LE(records[i].chunks.back().at_s, records[i].end_s);
  }
  EXPECT_TRUE(CheckTokens(records).empty());
  EXPECT_TRUE(CheckIdle(*rig.connection, absl::Seconds(5)).empty());
}

TEST(RunnerTest, RequestsSayWhatThePlanSays) {
  Rig rig(Options(1, 1));
  rig.Run();
  const v1::GenerateRequest request = rig.server.requests().at(0);
  EXPECT_EQ(request.stopping().max_tokens(),
            static_cast<uint32_t>(rig.plan.calls[0].max_tokens));
  EXPECT_TRUE(request.stopping().ignore_eos());
  EXPECT_TRUE(request.tokens_only());
  EXPECT_EQ(request.sampling().seed(), rig.plan.calls[0].seed);
  EXPECT_EQ(request.sampling().temperature(), 0.5f);
  EXPECT_EQ(std::vector<uint32_t>(request.tokens().ids().begin(),
                                  request.tokens().ids().end()),
            rig.plan.calls[0].tokens);
}

TEST(RunnerTest, RequestsNameFloorsAndTheCache) {
  LoadOptions options = Options(1, 1);
  options.mix = *Mix::Parse("every=2>every=4");
  options.bypass_prefix_cache = true;
  Rig rig(options);
  rig.Run();
  EXPECT_EQ(rig.server.requests().at(0).strategy().spec(), "every=2");
  EXPECT_EQ(rig.server.requests().at(0).strategy().floor(), "every=4");
  EXPECT_TRUE(rig.server.requests().at(0).bypass_prefix_cache());

  options.mix = *Mix::Parse("");
  options.bypass_prefix_cache = false;
  Rig plain(options);
  plain.Run();
  EXPECT_EQ(plain.server.requests().at(0).strategy().spec(), "");
  EXPECT_EQ(plain.server.requests().at(0).strategy().floor(), "");
  EXPECT_FALSE(plain.server.requests().at(0).bypass_prefix_cache());
}

// Ends every call at once, with a usage of everything.
class EconomyInference : public FakeInference {
  grpc::Status Generate(
      grpc::ServerContext*, const v1::GenerateRequest*,
      grpc::ServerWriter<v1::GenerateResponse>* writer) override {
    v1::GenerateResponse response;
    v1::Usage* usage = response.mutable_done()->mutable_usage();
    usage->set_prompt_tokens(33);
    usage->set_cached_tokens(31);
    usage->set_preemptions(2);
    usage->add_switches()->set_freed_bytes(uint64_t{5} << 32);
    usage->add_switches()->set_freed_bytes(257);
    writer->Write(response);
    return grpc::Status::OK;
  }
};

TEST(RunnerTest, RecordsKeepWhatTheUsageSays) {
  const LoadOptions options = Options(1, 1);
  const Plan plan = MakePlan(options, Model());
  EconomyInference server;
  const auto connection = *Connection::Open(server.Options());
  Runner runner(&options, &plan, connection.get());
  const auto records = runner.Run([](const Progress&) {});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].prompt_tokens, 33);
  EXPECT_EQ(records[0].cached_tokens, 31);
  EXPECT_EQ(records[0].num_preemptions, 2);
  EXPECT_EQ(records[0].num_switches, 2);
  EXPECT_EQ(records[0].freed_bytes, (uint64_t{5} << 32) + 257);
}

TEST(RunnerTest, OpenLoopStartsCallsWhateverIsRunning) {
  LoadOptions options = Options(20, 0);
  options.request_rate = 400;
  Rig rig(std::move(options));
  rig.server.pause_ms = 20;
  const auto records = rig.Run();
  ASSERT_EQ(records.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(records[i].intended_s, rig.plan.calls[i].arrival_s);
    EXPECT_GE(records[i].start_s, records[i].intended_s);
  }
  EXPECT_GT(rig.runner->max_concurrent(), 1);
}

TEST(RunnerTest, CancelledCallsAreNoFailures) {
  LoadOptions options = Options(60, 10);
  options.disturbances.cancel_rate = 0.5;
  options.output_lengths = *Lengths::Parse("20");
  Rig rig(std::move(options));
  rig.server.pause_ms = 2;
  const auto records = rig.Run();
  ASSERT_EQ(records.size(), 60u);
  EXPECT_EQ(Count(records, CallRecord::Outcome::kFailed), 0);
  EXPECT_GT(Count(records, CallRecord::Outcome::kCancelled), 10);
  EXPECT_GT(Count(records, CallRecord::Outcome::kCompleted), 10);
  EXPECT_TRUE(CheckTokens(records).empty());
  EXPECT_TRUE(CheckIdle(*rig.connection, absl::Seconds(5)).empty());
}

TEST(RunnerTest, PlannedDeadlinesExpireAndAreNoFailures) {
  LoadOptions options = Options(8, 8);
  options.output_lengths = *Lengths::Parse("50");
  options.disturbances = {.deadline_rate = 1, .deadline_within_s = 0.1};
  Rig rig(std::move(options));
  rig.server.pause_ms = 20;
  const auto records = rig.Run();
  EXPECT_EQ(Count(records, CallRecord::Outcome::kExpired), 8);
  EXPECT_TRUE(CheckIdle(*rig.connection, absl::Seconds(5)).empty());
}

TEST(RunnerTest, SlowReadersLoseNothing) {
  LoadOptions options = Options(6, 6);
  options.output_lengths = *Lengths::Parse("7");
  options.disturbances = {.slow_reader_rate = 1, .slow_reader_delay_s = 0.02};
  Rig rig(std::move(options));
  const auto records = rig.Run();
  ASSERT_EQ(Count(records, CallRecord::Outcome::kCompleted), 6);
  for (const CallRecord& record : records) {
    EXPECT_EQ(record.num_received, 7);
    // Six responses after the first, each at least 20 ms after the one before.
    EXPECT_GE(record.chunks.back().at_s - record.chunks.front().at_s, 0.1);
  }
}

TEST(RunnerTest, CancelledSlowReadersEnd) {
  LoadOptions options = Options(20, 10);
  options.output_lengths = *Lengths::Parse("40");
  options.disturbances = {.cancel_rate = 1,
                          .cancel_within_s = 0.05,
                          .slow_reader_rate = 1,
                          .slow_reader_delay_s = 0.03,
                          .deadline_rate = 0.5,
                          .deadline_within_s = 0.1};
  Rig rig(std::move(options));
  rig.server.pause_ms = 3;
  const auto records = rig.Run();
  EXPECT_EQ(records.size(), 20u);
  EXPECT_EQ(Count(records, CallRecord::Outcome::kFailed), 0);
}

TEST(RunnerTest, ARefusedSwitchIsToldAndOneAfterTheEndIsLate) {
  LoadOptions options = Options(4, 4);
  options.output_lengths = *Lengths::Parse("5");
  options.disturbances = {.switch_rate = 1, .switch_to = {"every=4"}};
  Rig rig(options);  // this server has no Admin
  const auto records = rig.Run();
  ASSERT_EQ(Count(records, CallRecord::Outcome::kCompleted), 4);
  for (const CallRecord& record : records) {
    EXPECT_EQ(record.live_switch, CallRecord::LiveSwitch::kFailed);
    EXPECT_EQ(record.live_switch_status.error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  Rig refused(options);
  refused.server.refuse_every = 1;
  for (const CallRecord& record : refused.Run()) {
    EXPECT_EQ(record.live_switch, CallRecord::LiveSwitch::kLate);
  }
}

TEST(RunnerTest, NoCallStartsAfterTheDuration) {
  LoadOptions options = Options(100000, 2);
  options.output_lengths = *Lengths::Parse("1");
  options.duration_s = 0.2;
  Rig rig(std::move(options));
  rig.server.pause_ms = 10;
  const auto records = rig.Run();
  EXPECT_GT(records.size(), 0u);
  EXPECT_LT(records.size(), 100000u);
  EXPECT_EQ(Count(records, CallRecord::Outcome::kCompleted),
            static_cast<int>(records.size()));
}

TEST(RunnerTest, RefusalsAndDeadlinesAreFailures) {
  LoadOptions options = Options(12, 3);
  options.output_lengths = *Lengths::Parse("3");
  Rig rig(std::move(options));
  rig.server.refuse_every = 4;
  EXPECT_EQ(Count(rig.Run(), CallRecord::Outcome::kFailed), 3);

  options = Options(1, 1);
  options.output_lengths = *Lengths::Parse("50");
  options.timeout_s = 0.05;
  Rig slow(std::move(options));
  slow.server.pause_ms = 10;
  EXPECT_EQ(slow.Run()[0].status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(RunnerTest, StopEndsTheRunEarly) {
  LoadOptions options = Options(1000, 4);
  options.output_lengths = *Lengths::Parse("50");
  Rig rig(std::move(options));
  rig.server.pause_ms = 10;
  std::jthread stopper([&] {
    absl::SleepFor(absl::Milliseconds(100));
    rig.runner->Stop();
  });
  const auto records = rig.Run();
  EXPECT_LT(records.size(), 1000u);
  EXPECT_EQ(Count(records, CallRecord::Outcome::kFailed), 0);
}

TEST(InvariantsTest, SayWhatIsWrong) {
  LoadOptions options = Options(5, 2);
  Rig rig(std::move(options));
  rig.server.extra_counted_tokens = 1;
  rig.server.leaked_bytes = 4096;
  const auto wrong = CheckTokens(rig.Run());
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_THAT(wrong[0], HasSubstr("5 calls received other tokens"));
  const auto left = CheckIdle(*rig.connection, absl::Milliseconds(100));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_THAT(left[0], HasSubstr("4096 KV bytes used"));
}

TEST(LoadWatchTest, KeepsPeaksAndTheMean) {
  LoadOptions options = Options(6, 3);
  options.output_lengths = *Lengths::Parse("40");
  Rig rig(std::move(options));
  rig.server.pause_ms = 10;
  LoadWatch watch(rig.connection.get(), "");
  rig.Run();
  const LoadWatch::Seen seen = watch.Stop();
  EXPECT_EQ(seen.kv_bytes_peak, 3 * FakeInference::kBytesPerToken);
  EXPECT_EQ(seen.running_peak, 3);
  EXPECT_GT(seen.running_mean, 0);
  EXPECT_LE(seen.running_mean, 3);
}

}  // namespace
}  // namespace strata
