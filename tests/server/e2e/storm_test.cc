// Hundreds of calls of mixed strategies on a small pool, a third of them
// cancelled at random, leave nothing behind, and all accounts agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

constexpr int kCalls = 300;
constexpr int kThreads = 16;
constexpr uint64_t kSeed = 20261129;
// Those whose golden tokens are clear, and their labels.
struct Mix {
  const char* spec;
  const char* label;
};
constexpr Mix kMix[] = {{"full", "full"},
                        {"every=3", "other"},
                        {"quarter", "every=4"},
                        {"leaders=0,2,5", "other"},
                        {"leaders=0", "other"}};

struct Totals {
  std::atomic<int> finished = 0;
  std::atomic<int> cancelled = 0;
  std::atomic<int64_t> finished_tokens = 0;
};

// One call: right tokens as far as they go, and a usage that agrees.
void Call(Client* client, const Golden& golden, uint64_t seed, Totals* totals) {
  std::mt19937_64 random(seed);
  const std::string spec = kMix[random() % std::size(kMix)].spec;
  const std::vector<int> want =
      golden.plans().at(spec == "quarter" ? "every=4" : spec).greedy;
  const int max_tokens = 1 + static_cast<int>(random() % 40);
  const bool cancels = random() % 3 == 0;
  const int cancel_after =
      cancels ? 1 + static_cast<int>(random() % max_tokens) : 0;
  const Generated got = client->Generate(
      GreedyRequest(golden.prompt(), spec, max_tokens), cancel_after);
  const std::vector<int> tokens =
      got.tokens.empty() ? std::vector<int>() : got.tokens.begin()->second;
  const size_t num_known = std::min(tokens.size(), want.size());
  EXPECT_TRUE(
      std::equal(want.begin(), want.begin() + num_known, tokens.begin()))
      << spec << " seed " << seed;
  if (got.status.ok()) {
    ++totals->finished;
    totals->finished_tokens += max_tokens;
    EXPECT_EQ(tokens.size(), static_cast<size_t>(max_tokens)) << seed;
    ASSERT_EQ(got.done.count(0), 1u) << seed;
    EXPECT_EQ(got.done.at(0).usage().generated_tokens(), tokens.size()) << seed;
  } else {
    ++totals->cancelled;
    EXPECT_TRUE(cancels) << seed;
    EXPECT_EQ(got.status.error_code(), grpc::StatusCode::CANCELLED)
        << got.status.error_message();
  }
}

TEST(StormTest, LeavesNothingBehind) {
  const Golden golden("llama-tied");
  // 120 pages: three requests under `full`, so that most have to wait.
  ServerProcess server({"--model=" + golden.directory(), "--precision=f32",
                        "--strategies=quarter=every=4", "--kv_memory=480KiB",
                        "--max_sequences=8", "--max_batched_tokens=24"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Totals totals;
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Client client(server.grpc_address());
      for (int call = next++; call < kCalls; call = next++) {
        Call(&client, golden, kSeed + call, &totals);
        const v1::GetLoadResponse load = client.GetLoad();
        EXPECT_EQ(load.kv_used_bytes() + load.kv_reserved_bytes() +
                      load.kv_cached_bytes() + load.kv_free_bytes(),
                  load.kv_pool_bytes());
        const ScrapedMetrics metrics = Scrape(server);
        EXPECT_EQ(metrics.Sum("strata_kv_cache_bytes"),
                  metrics.Sum("strata_kv_pool_bytes"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(totals.finished + totals.cancelled, kCalls);
  EXPECT_GT(totals.cancelled, kCalls / 10) << "the storm cancelled too few";

  Client client(server.grpc_address());
  ASSERT_TRUE(client.WaitForLoad(0, 0));
  const v1::GetLoadResponse load = client.GetLoad();
  EXPECT_EQ(load.kv_used_bytes(), 0u);
  EXPECT_EQ(load.kv_reserved_bytes(), 0u);
  EXPECT_EQ(load.kv_cached_bytes() + load.kv_free_bytes(),
            load.kv_pool_bytes());
  EXPECT_EQ(load.kv_pool_bytes(), 480u << 10);

  const ScrapedMetrics metrics = Scrape(server);
  EXPECT_TRUE(metrics.unparsed().empty());
  EXPECT_EQ(metrics.Sum("strata_kv_cache_bytes", {"state=\"used\""}), 0);
  EXPECT_EQ(metrics.Sum("strata_kv_cache_bytes", {"state=\"reserved\""}), 0);
  EXPECT_EQ(metrics.Sum("strata_kv_cache_bytes", {"state=\"cached\""}) +
                metrics.Sum("strata_kv_cache_bytes", {"state=\"free\""}),
            480 << 10);
  EXPECT_EQ(metrics.Sum("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(metrics.Sum("vllm:num_requests_running"), 0);
  EXPECT_EQ(metrics.Sum("vllm:num_requests_waiting"), 0);
  EXPECT_EQ(metrics.Sum("strata_requests_running_by_strategy"), 0);
  EXPECT_EQ(metrics.Sum("strata_kv_saved_bytes"), 0);
  EXPECT_EQ(metrics.Sum("strata_request_rejected_total"), 0);
  // Every call is counted once, under one reason and one strategy.
  EXPECT_EQ(metrics.Sum("strata_request_finished_total"), kCalls);
  EXPECT_EQ(metrics.Sum("vllm:request_success_total"), kCalls);
  EXPECT_EQ(metrics.Sum("strata_e2e_request_latency_seconds_count"), kCalls);
  // A cancel may come too late for the server, never too early.
  EXPECT_GE(metrics.Sum("strata_request_finished_total",
                        {"finished_reason=\"length\""}),
            totals.finished);
  for (const char* name :
       {"prompt_tokens_total", "generation_tokens_total",
        "time_to_first_token_seconds_count",
        "inter_token_latency_seconds_count", "request_queue_time_seconds_count",
        "request_prompt_tokens_sum", "request_generation_tokens_sum"}) {
    EXPECT_EQ(metrics.Sum(std::string("strata_") + name),
              metrics.Sum(std::string("vllm:") + name))
        << name;
  }
  EXPECT_EQ(metrics.Sum("strata_generation_tokens_total"),
            metrics.Sum("strata_request_generation_tokens_sum"));
  EXPECT_GE(metrics.Sum("strata_generation_tokens_total"),
            totals.finished_tokens);
  for (const Mix& mix : kMix) {
    EXPECT_GT(metrics.Sum("strata_generation_tokens_total",
                          {std::string("kv_strategy=\"") + mix.label + "\""}),
              0)
        << mix.spec;
  }
}

}  // namespace
}  // namespace strata
