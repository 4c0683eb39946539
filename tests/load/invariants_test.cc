#include "tests/load/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/load/load_watch.h"
#include "tests/load/server_page.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPage[] =
    "# TYPE strata_request_finished_total counter\n"
    "strata_request_finished_total{finished_reason=\"stop\",model_name=\"a "
    "b\"} "
    "2\n"
    "strata_request_finished_total{finished_reason=\"length\",kv_strategy="
    "\"x\"} "
    "3\n"
    "strata_request_finished_total{finished_reason=\"error\"} 4\n"
    "strata_request_finished_total{finished_reason=\"cancelled\"} 5\n"
    "strata_request_rejected_total{reason=\"queue_full\"} 6\n"
    "strata_request_rejected_total{reason=\"invalid\"} 7\n"
    "strata_prompt_tokens_total{kv_strategy=\"full\"} 31\n"
    "strata_prompt_tokens_total{kv_strategy=\"other\"} 2\n"
    "strata_prompt_tokens_total_and_more{kv_strategy=\"other\"} 1000\n"
    "strata_generation_tokens_total{kv_strategy=\"full\"} 257\n"
    "strata_kv_pool_bytes{model_name=\"m\"} 4096\n"
    "strata_kv_cache_bytes{state=\"used\",kv_strategy=\"full\"} 256\n"
    "strata_kv_cache_bytes{state=\"reserved\"} 512\n"
    "strata_kv_cache_bytes{state=\"cached\"} 1024\n"
    "strata_kv_cache_bytes{state=\"free\"} 2304\n"
    "process_resident_memory_bytes 1e+06\n";

TEST(ServerPageTest, SumsSeries) {
  const auto page = ServerPage::Parse(kPage);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->finished, 14);
  EXPECT_EQ(page->finished_whole, 5);
  EXPECT_EQ(page->finished_errors, 4);
  EXPECT_EQ(page->rejected, 13);
  EXPECT_EQ(page->rejected_queue_full, 6);
  EXPECT_EQ(page->prompt_tokens, 33);
  EXPECT_EQ(page->generation_tokens, 257);
  EXPECT_EQ(page->kv_pool_bytes, 4096);
  EXPECT_EQ(page->kv_bytes, 4096);
  EXPECT_EQ(page->kv_held_bytes, 768);
  EXPECT_EQ(page->resident_bytes, 1e6);
  EXPECT_FALSE(ServerPage::Parse("").ok());
  EXPECT_FALSE(ServerPage::Parse("\n# x\nup 1\nstrata_kv_pool_bytes x").ok());
}

TEST(ServerPageTest, SaysWhatIsWrongWithAnAddress) {
  for (const char* address : {"", "host", ":1", "host:"}) {
    EXPECT_THAT(std::string(ScrapeServerPage(address).status().message()),
                HasSubstr("must be HOST:PORT"));
  }
  EXPECT_THAT(std::string(ScrapeServerPage("127.0.0.1:1").status().message()),
              HasSubstr("does not answer"));
}

CallRecord Whole() {
  return {.num_received = 9,
          .max_tokens = 9,
          .planned_prompt_tokens = 31,
          .has_usage = true,
          .prompt_tokens = 31,
          .generated_tokens = 9};
}

CallRecord Cancelled(int received) {
  return {.status = grpc::Status(grpc::StatusCode::CANCELLED, ""),
          .cancel_requested = true,
          .num_received = received,
          .max_tokens = 20,
          .planned_prompt_tokens = 33};
}

CallRecord Refused() {
  return {.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, ""),
          .max_tokens = 7,
          .planned_prompt_tokens = 5};
}

ServerPage Pool() { return {.kv_pool_bytes = 4096, .kv_bytes = 4096}; }

TEST(CheckCountersTest, WholeAnswersAreCountedExactly) {
  const ServerPage before = {.finished = 100,
                             .finished_whole = 50,
                             .prompt_tokens = 1000,
                             .generation_tokens = 500};
  ServerPage after = Pool();
  after.finished = 102;
  after.finished_whole = 52;
  after.prompt_tokens = 1062;
  after.generation_tokens = 518;
  after.rejected = after.rejected_queue_full = 1;
  const std::vector<CallRecord> records = {Whole(), Whole(), Refused()};
  EXPECT_THAT(CheckCounters(before, after, records), IsEmpty());
  // One token, prompt token, call or page more or less is found.
  for (double ServerPage::*field :
       {&ServerPage::generation_tokens, &ServerPage::prompt_tokens,
        &ServerPage::finished, &ServerPage::finished_whole,
        &ServerPage::rejected, &ServerPage::rejected_queue_full,
        &ServerPage::kv_bytes}) {
    for (const double change : {-1.0, 1.0}) {
      ServerPage wrong = after;
      wrong.*field += change;
      EXPECT_FALSE(CheckCounters(before, wrong, records).empty());
    }
  }
  for (double ServerPage::*field :
       {&ServerPage::kv_held_bytes, &ServerPage::finished_errors}) {
    ServerPage wrong = after;
    wrong.*field += 1;
    EXPECT_FALSE(CheckCounters(before, wrong, records).empty());
  }
  after.kv_held_bytes = 64;
  EXPECT_THAT(CheckCounters(before, after, records),
              ElementsAre(HasSubstr("counted 64 bytes of orphan KV pages")));
}

TEST(CheckCountersTest, CancelledCallsMayHaveGoneFurther) {
  const std::vector<CallRecord> records = {Cancelled(3), Cancelled(0)};
  const auto is_right = [&](double finished, double generated, double prompts) {
    ServerPage after = Pool();
    after.finished = finished;
    after.generation_tokens = generated;
    after.prompt_tokens = prompts;
    return CheckCounters({}, after, records).empty();
  };
  // The second may never have reached the server; the first did.
  EXPECT_TRUE(is_right(1, 3, 33));
  EXPECT_TRUE(is_right(2, 40, 66));
  EXPECT_FALSE(is_right(0, 3, 33));
  EXPECT_FALSE(is_right(3, 3, 33));
  EXPECT_FALSE(is_right(1, 2, 33));
  EXPECT_FALSE(is_right(1, 41, 33));
  EXPECT_FALSE(is_right(1, 3, 32));
  EXPECT_FALSE(is_right(1, 3, 67));
}

TEST(MemoryGrowthTest, IsTheSlopeOfTheSecondHalf) {
  std::vector<LoadWatch::Sample> samples;
  for (int i = 0; i < 20; ++i) {
    // Grows by 1000 a second at first, then by 10.
    const double bytes = i < 10 ? 1e6 + 1000 * i : 2e6 + 10 * i;
    samples.push_back(
        {.at_s = static_cast<double>(i), .resident_bytes = bytes});
    samples.push_back({.at_s = i + 0.5, .resident_bytes = 0});  // not known
  }
  EXPECT_NEAR(MemoryGrowth(samples), 90, 1e-6);
  EXPECT_EQ(MemoryGrowth({}), 0);
  EXPECT_EQ(MemoryGrowth({{.at_s = 1, .resident_bytes = 5}}), 0);
}

}  // namespace
}  // namespace strata
