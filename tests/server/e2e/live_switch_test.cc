// Switches of requests that live, through Admin.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/server/e2e/client.h"
#include "tests/server/e2e/live_request_fixture.h"

namespace strata {
namespace {

using grpc::StatusCode;

class LiveSwitchTest : public LiveRequestTest {
 protected:
  LiveSwitchTest() : LiveRequestTest(/*max_sequences=*/1) {}

  grpc::Status Switch(const std::string& label, const std::string& spec,
                      bool recompute = false) {
    response_.Clear();
    return client_->Switch(label, spec, recompute, &response_);
  }
  StatusCode SwitchCode(const std::string& label, const std::string& spec) {
    return Switch(label, spec).error_code();
  }

  v1::SwitchStrategyResponse response_;
};

TEST_F(LiveSwitchTest, FreesTheDroppedLeadersAtOnce) {
  Generated got;
  std::thread stream = Start("mine", "full", "", kForever, &got);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  EXPECT_TRUE(WaitUntilHeld(Bytes(8)));
  const grpc::Status switched = Switch("mine", "keep=0.25");
  EXPECT_TRUE(switched.ok()) << switched.error_message();
  EXPECT_EQ(response_.canonical(), "every=4");
  EXPECT_EQ(response_.freed_bytes(), Bytes(6));
  EXPECT_TRUE(WaitUntilHeld(Bytes(2))) << Held();
  const ScrapedMetrics metrics = Scrape(server_);
  const std::vector<std::string> client = {"cause=\"client\""};
  EXPECT_EQ(metrics.Sum("strata_strategy_switches_total", client), 1);
  EXPECT_EQ(metrics.Sum("strata_strategy_switch_freed_bytes_total", client),
            static_cast<double>(Bytes(6)));

  // Each switch is recorded, but for one that changes nothing.
  EXPECT_TRUE(Switch("mine", "every=4").ok());
  EXPECT_EQ(response_.freed_bytes(), 0u);
  EXPECT_TRUE(Switch("mine", "leaders=0").ok());
  EXPECT_EQ(response_.freed_bytes(), Bytes(1));
  EXPECT_EQ(client_->Abort("mine"), 1u);
  stream.join();
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  const v1::Usage& usage = got.done.at(0).usage();
  EXPECT_EQ(usage.strategy(), "every=8");
  ASSERT_EQ(usage.switches_size(), 2);
  EXPECT_EQ(usage.switches(0).strategy(), "every=4");
  EXPECT_EQ(usage.switches(0).freed_bytes(), Bytes(6));
  EXPECT_EQ(usage.switches(1).strategy(), "every=8");
  EXPECT_EQ(usage.switches(1).freed_bytes(), Bytes(1));
  EXPECT_LE(usage.switches(0).after_generated(),
            usage.switches(1).after_generated());
  EXPECT_LE(usage.switches(1).after_generated(), usage.generated_tokens());
}

TEST_F(LiveSwitchTest, OtherLeadersNeedRecomputation) {
  Generated got;
  std::thread stream = Start("mine", "every=2", "", kForever, &got);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  EXPECT_TRUE(WaitUntilHeld(Bytes(4)));
  for (const char* spec : {"full", "leaders=0,1", "prefix=2"}) {
    EXPECT_EQ(SwitchCode("mine", spec), StatusCode::FAILED_PRECONDITION)
        << spec;
  }
  EXPECT_TRUE(WaitUntilHeld(Bytes(4))) << "nothing changed";
  const grpc::Status switched = Switch("mine", "prefix=6", /*recompute=*/true);
  EXPECT_TRUE(switched.ok()) << switched.error_message();
  EXPECT_EQ(response_.canonical(), "prefix=6");
  EXPECT_TRUE(WaitUntilHeld(Bytes(6))) << Held();
  EXPECT_EQ(client_->Abort("mine"), 1u);
  stream.join();
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  const v1::Usage& usage = got.done.at(0).usage();
  EXPECT_EQ(usage.generated_tokens(), got.tokens[0].size()) << "none twice";
  EXPECT_EQ(usage.strategy(), "prefix=6");
  ASSERT_EQ(usage.switches_size(), 1);
  EXPECT_EQ(usage.switches(0).strategy(), "prefix=6");
}

TEST_F(LiveSwitchTest, AQueuedRequestStartsUnderIt) {
  Generated first, second;
  std::thread running = Start("first", "full", "", kForever, &first);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  std::thread waiting = Start("second", "full", "", 40, &second);
  EXPECT_TRUE(client_->WaitForLoad(1, 1));
  EXPECT_TRUE(Switch("second", "every=4").ok());
  EXPECT_EQ(client_->Abort("first"), 1u);
  running.join();
  waiting.join();
  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  EXPECT_EQ(first.done.at(0).usage().strategy(), "full");
  EXPECT_EQ(first.done.at(0).usage().switches_size(), 0);
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  const v1::Usage& usage = second.done.at(0).usage();
  EXPECT_EQ(usage.strategy(), "every=4");
  EXPECT_EQ(usage.kv_bytes() * 4, usage.kv_bytes_full()) << "of 2 leaders of 8";
}

TEST_F(LiveSwitchTest, WhatIsNotThereIsNotSwitched) {
  EXPECT_EQ(SwitchCode("mine", "every=2"), StatusCode::NOT_FOUND);
  Generated got;
  Start("mine", "full", "", 4, &got).join();
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_TRUE(client_->WaitForLoad(0, 0));
  EXPECT_EQ(SwitchCode("mine", "every=2"), StatusCode::NOT_FOUND);
  EXPECT_EQ(SwitchCode("mine", "every=0"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode("mine", ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode(std::string(257, 'x'), "every=2"),
            StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace strata
