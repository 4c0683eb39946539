// Switches that the client plans, through the whole of the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/sharing_strategy.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

using grpc::StatusCode;

constexpr uint64_t kPageTokens = 8;

class PlannedSwitchTest : public testing::TestWithParam<const char*> {
 protected:
  PlannedSwitchTest()
      : golden_(GetParam()),
        server_({"--model=" + golden_.directory(), "--precision=f32",
                 "--page_tokens=8", "--kv_memory=4MiB"}) {}
  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilListening()) << server_.Log();
    client_ = std::make_unique<Client>(server_.grpc_address());
    model_ = client_->GetModel();
  }

  SharingStrategy Strategy(const std::string& spec) const {
    return *SharingStrategy::Parse(spec, static_cast<int>(model_.num_layers()));
  }
  v1::GenerateRequest Request(
      const std::string& from,
      const std::vector<std::pair<uint32_t, std::string>>& switches) const {
    v1::GenerateRequest request = GreedyRequest(golden_.prompt(), from, 12);
    for (const auto& [after_generated, spec] : switches) {
      v1::PlannedSwitch* planned = request.mutable_strategy()->add_switches();
      planned->set_after_generated(after_generated);
      planned->set_spec(spec);
    }
    return request;
  }
  // What leaving `dropped` leaders gives back after `generated` tokens: as the
  // switch is planned, no pages were promised to them for what comes later.
  uint64_t FreedBytes(int dropped, uint64_t generated) const {
    const uint64_t positions = golden_.prompt().size() + generated;
    return dropped * ((positions + kPageTokens - 1) / kPageTokens) *
           model_.page_bytes();
  }

  Golden golden_;
  ServerProcess server_;
  std::unique_ptr<Client> client_;
  v1::GetModelResponse model_;
};

TEST_P(PlannedSwitchTest, FollowsTheGoldenTrajectories) {
  double num_switches = 0, freed_bytes = 0;
  for (const Golden::Demotion& demotion : golden_.demotions()) {
    const auto& [from, to, first, want] = demotion;
    const uint32_t position = first;
    ASSERT_EQ(want.size(), 12u);
    const Generated got = client_->Generate(Request(from, {{position, to}}));
    ASSERT_TRUE(got.status.ok()) << to << got.status.error_message();
    EXPECT_EQ(got.tokens.at(0), want) << from << " to " << to;
    const v1::Usage& usage = got.done.at(0).usage();
    EXPECT_EQ(usage.strategy(), Strategy(to).canonical());
    ASSERT_EQ(usage.switches_size(), 1);
    const v1::SwitchRecord& record = usage.switches(0);
    EXPECT_EQ(record.after_generated(), position);
    EXPECT_EQ(record.strategy(), Strategy(to).canonical());
    EXPECT_EQ(record.freed_bytes(), FreedBytes(Strategy(from).num_leaders() -
                                                   Strategy(to).num_leaders(),
                                               position));
    ++num_switches;
    freed_bytes += static_cast<double>(record.freed_bytes());
  }
  EXPECT_TRUE(client_->WaitForLoad(0, 0));
  const ScrapedMetrics metrics = Scrape(server_);
  const std::vector<std::string> planned = {"cause=\"planned\""};
  EXPECT_EQ(metrics.Sum("strata_strategy_switches_total", planned),
            num_switches);
  EXPECT_EQ(metrics.Sum("strata_strategy_switches_total"), num_switches);
  EXPECT_EQ(metrics.Sum("strata_strategy_switch_freed_bytes_total", planned),
            freed_bytes);
}

TEST_P(PlannedSwitchTest, RecordsEachOfSeveral) {
  const Generated got = client_->Generate(
      Request("full", {{0, "every=2"}, {4, "every=2"}, {7, "leaders=0"}}));
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  const v1::Usage& usage = got.done.at(0).usage();
  EXPECT_EQ(usage.strategy(), Strategy("leaders=0").canonical());
  ASSERT_EQ(usage.switches_size(), 2) << "the second changes nothing";
  const int layers = static_cast<int>(model_.num_layers());
  const int half = Strategy("every=2").num_leaders();
  EXPECT_EQ(usage.switches(0).after_generated(), 0u);
  EXPECT_EQ(usage.switches(0).strategy(), Strategy("every=2").canonical());
  EXPECT_EQ(usage.switches(0).freed_bytes(), FreedBytes(layers - half, 0));
  EXPECT_EQ(usage.switches(1).after_generated(), 7u);
  EXPECT_EQ(usage.switches(1).freed_bytes(), FreedBytes(half - 1, 7));
}

TEST_P(PlannedSwitchTest, OneThatIsNeverReachedIsNoSwitch) {
  const Generated got = client_->Generate(Request("full", {{12, "every=2"}}));
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.done.at(0).usage().strategy(), "full");
  EXPECT_EQ(got.done.at(0).usage().switches_size(), 0);
  if (golden_.plans().at("full").IsClear()) {
    EXPECT_EQ(got.tokens.at(0), golden_.plans().at("full").greedy);
  }
}

TEST_P(PlannedSwitchTest, OthersAreRefusedByField) {
  const Generated rising =
      client_->Generate(Request("full", {{5, "every=2"}, {5, "leaders=0"}}));
  EXPECT_EQ(rising.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(rising.status.error_message(),
              testing::HasSubstr("strategy.switches[1].after_generated: 5"));
  const Generated leaders =
      client_->Generate(Request("every=2", {{5, "leaders=0,1"}}));
  EXPECT_EQ(leaders.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(leaders.status.error_message(),
              testing::HasSubstr("strategy.switches[0].spec: "));
  v1::GenerateRequest floored = Request("every=2", {});
  floored.mutable_strategy()->set_floor("leaders=0,1");
  const Generated floor = client_->Generate(floored);
  EXPECT_EQ(floor.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(floor.status.error_message(),
              testing::HasSubstr("strategy.floor: "));
}

INSTANTIATE_TEST_SUITE_P(Golden, PlannedSwitchTest,
                         testing::Values("llama-tied", "llama3-ropescaled",
                                         "mistral", "qwen2-bias",
                                         "qwen3-qknorm"),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

}  // namespace
}  // namespace strata
