// Prefixes that are reused, and those that must not be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

class PrefixCacheTest : public testing::Test {
 protected:
  PrefixCacheTest()
      : golden_("llama-tied"),
        server_({"--model=" + golden_.directory(), "--precision=f32",
                 "--page_tokens=4", "--kv_memory=4MiB"}) {}
  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilListening()) << server_.Log();
    client_ = std::make_unique<Client>(server_.grpc_address());
  }
  void TearDown() override {
    if (client_ == nullptr) return;  // it did not start
    EXPECT_TRUE(client_->WaitForLoad(0, 0));
    const v1::GetLoadResponse load = client_->GetLoad();
    EXPECT_EQ(load.kv_used_bytes(), 0u);
    EXPECT_EQ(load.kv_reserved_bytes(), 0u);
    EXPECT_EQ(load.kv_cached_bytes() + load.kv_free_bytes(),
              load.kv_pool_bytes());
  }

  v1::GenerateRequest Request(const std::string& strategy) const {
    return GreedyRequest(golden_.prompt(), strategy, 12);
  }
  // Runs it; every answer is right whatever was reused.
  v1::Usage Run(const v1::GenerateRequest& request) {
    const Generated got = client_->Generate(request);
    EXPECT_TRUE(got.status.ok()) << got.status.error_message();
    if (!got.status.ok()) return {};
    EXPECT_EQ(got.tokens.at(0),
              golden_.plans().at(request.strategy().spec()).greedy);
    EXPECT_TRUE(client_->WaitForLoad(0, 0)) << "what is reported is up to date";
    return got.done.at(0).usage();
  }
  uint32_t CachedTokens(const v1::GenerateRequest& request) {
    return Run(request).cached_tokens();
  }

  Golden golden_;
  ServerProcess server_;
  std::unique_ptr<Client> client_;
};

TEST_F(PrefixCacheTest, TheSamePromptIsRunOnce) {
  const v1::Usage first = Run(Request("full"));
  EXPECT_EQ(first.cached_tokens(), 0u);
  EXPECT_GT(client_->GetLoad().kv_cached_bytes(), 0u);
  const v1::Usage second = Run(Request("full"));
  EXPECT_EQ(second.cached_tokens(), 28u) << "of 29, in whole pages";
  EXPECT_EQ(second.kv_bytes(), first.kv_bytes()) << "they count in full";
  const ScrapedMetrics metrics = Scrape(server_);
  for (const char* face : {"strata_", "vllm:"}) {
    EXPECT_EQ(metrics.Sum(std::string(face) + "prefix_cache_hits_total"), 28);
    EXPECT_EQ(metrics.Sum(std::string(face) + "prefix_cache_queries_total"),
              2 * 29);
  }
  EXPECT_EQ(
      metrics.Sum("strata_prefix_cache_hits_total", {"kv_strategy=\"full\""}),
      28);
}

TEST_F(PrefixCacheTest, AnAnswerIsAPrefixToo) {
  EXPECT_EQ(CachedTokens(Request("full")), 0u);
  std::vector<int> longer = golden_.prompt();
  const std::vector<int> answer = golden_.plans().at("full").greedy;
  longer.insert(longer.end(), answer.begin(), answer.end());
  const Generated got = client_->Generate(GreedyRequest(longer, "full", 3));
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  // 29 + 12 - 1 positions were run.
  EXPECT_EQ(got.done.at(0).usage().cached_tokens(), 40u);
}

TEST_F(PrefixCacheTest, OneTokenIsAlwaysRun) {
  const std::vector<int> whole_pages(golden_.prompt().begin(),
                                     golden_.prompt().begin() + 28);
  const v1::GenerateRequest request = GreedyRequest(whole_pages, "full", 3);
  const Generated first = client_->Generate(request);
  const Generated second = client_->Generate(request);
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_EQ(second.done.at(0).usage().cached_tokens(), 24u);
  EXPECT_EQ(second.tokens, first.tokens);
}

TEST_F(PrefixCacheTest, StrategiesThatAgreeBelowALayerShare) {
  EXPECT_EQ(CachedTokens(Request("full")), 0u);
  EXPECT_EQ(CachedTokens(Request("leaders=0,1,2,3,4")), 28u)
      << "prefix=5 has the pages of full";
  EXPECT_EQ(CachedTokens(Request("leaders=0")), 28u) << "prefix=1, too";
  EXPECT_EQ(CachedTokens(Request("every=4")), 0u) << "layer 4 reads another";
  EXPECT_EQ(CachedTokens(Request("every=4")), 28u);
}

TEST_F(PrefixCacheTest, SaltsShareNothing) {
  EXPECT_EQ(CachedTokens(Request("full")), 0u);
  v1::GenerateRequest salted = Request("full");
  salted.set_cache_salt("a");
  EXPECT_EQ(CachedTokens(salted), 0u);
  EXPECT_EQ(CachedTokens(salted), 28u);
  salted.set_cache_salt("b");
  EXPECT_EQ(CachedTokens(salted), 0u);
  salted.set_cache_salt(std::string("a\0", 2));
  EXPECT_EQ(CachedTokens(salted), 0u);
  EXPECT_EQ(CachedTokens(Request("full")), 28u);
}

TEST_F(PrefixCacheTest, ABypassNeitherWritesNorReads) {
  v1::GenerateRequest bypassing = Request("full");
  bypassing.set_bypass_prefix_cache(true);
  EXPECT_EQ(CachedTokens(bypassing), 0u);
  EXPECT_EQ(client_->GetLoad().kv_cached_bytes(), 0u);
  EXPECT_EQ(CachedTokens(Request("full")), 0u);
  EXPECT_EQ(CachedTokens(bypassing), 0u);
  EXPECT_EQ(CachedTokens(Request("full")), 28u);
}

// Keys say what wrote a page, not what the request ended with.
TEST_F(PrefixCacheTest, ASwitchLeavesNoWrongPages) {
  v1::GenerateRequest switching = Request("full");
  switching.mutable_strategy()->add_switches()->set_spec("every=4");
  const Generated switched = client_->Generate(switching);
  ASSERT_TRUE(switched.status.ok()) << switched.status.error_message();
  EXPECT_EQ(CachedTokens(Request("every=4")), 0u);
  Run(Request("full"));
  // The prompt's pages are those of full, the answer's are not.
  std::vector<int> longer = golden_.prompt();
  const std::vector<int>& answer = switched.tokens.at(0);
  longer.insert(longer.end(), answer.begin(), answer.end());
  v1::GenerateRequest request = GreedyRequest(longer, "every=4", 5);
  const Generated cached = client_->Generate(request);
  request.set_bypass_prefix_cache(true);
  const Generated alone = client_->Generate(request);
  ASSERT_TRUE(alone.status.ok()) << alone.status.error_message();
  EXPECT_EQ(cached.tokens, alone.tokens);
  EXPECT_EQ(alone.done.at(0).usage().cached_tokens(), 0u);
}

}  // namespace
}  // namespace strata
