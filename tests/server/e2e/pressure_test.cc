// Requests with a floor, when memory runs out.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/e2e/client.h"
#include "tests/server/e2e/live_request_fixture.h"

namespace strata {
namespace {

class PressureTest : public LiveRequestTest {
 protected:
  PressureTest() : LiveRequestTest(/*max_sequences=*/2) {}

  void SetPolicy(std::optional<bool> demote, std::optional<double> threshold) {
    grpc::ClientContext context;
    v1::SetPolicyRequest request;
    if (demote) request.set_demote_under_pressure(*demote);
    if (threshold) request.set_pressure_threshold(*threshold);
    v1::SetPolicyResponse response;
    const grpc::Status status =
        client_->admin().SetPolicy(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  void ExpectOneDemotion(const Generated& got) {
    ASSERT_TRUE(got.status.ok()) << got.status.error_message();
    const v1::Usage& usage = got.done.at(0).usage();
    EXPECT_EQ(usage.strategy(), "every=4");
    ASSERT_EQ(usage.switches_size(), 1);
    EXPECT_EQ(usage.switches(0).strategy(), "every=4");
    EXPECT_EQ(usage.switches(0).freed_bytes(), Bytes(6));
    const ScrapedMetrics metrics = Scrape(server_);
    const std::vector<std::string> pressure = {"cause=\"pressure\""};
    EXPECT_EQ(metrics.Sum("strata_strategy_switches_total", pressure), 1);
    EXPECT_EQ(metrics.Sum("strata_strategy_switch_freed_bytes_total", pressure),
              static_cast<double>(Bytes(6)));
  }
};

TEST_F(PressureTest, WhatDoesNotFitDemotesWhatMayBe) {
  SetPolicy(false, std::nullopt);
  Generated floored, other;
  std::thread first = Start("floored", "full", "every=4", kForever, &floored);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  std::thread second = Start("other", "full", "", kForever, &other);
  EXPECT_TRUE(client_->WaitForLoad(1, 1)) << "it waits while none is demoted";
  EXPECT_TRUE(WaitUntilHeld(Bytes(8)));
  SetPolicy(true, std::nullopt);
  EXPECT_TRUE(client_->WaitForLoad(2, 0));
  EXPECT_TRUE(WaitUntilHeld(Bytes(2) + Bytes(8))) << Held();
  EXPECT_EQ(client_->Abort("floored"), 1u);
  EXPECT_EQ(client_->Abort("other"), 1u);
  first.join();
  second.join();
  ExpectOneDemotion(floored);
  ASSERT_TRUE(other.status.ok()) << other.status.error_message();
  EXPECT_EQ(other.done.at(0).usage().strategy(), "full");
}

TEST_F(PressureTest, TheThresholdIsAPartOfThePool) {
  Generated got;
  std::thread stream = Start("floored", "full", "every=4", kForever, &got);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  EXPECT_TRUE(WaitUntilHeld(Bytes(8))) << "61% of the pool, of 90 allowed";
  SetPolicy(std::nullopt, 0.61);  // 61.08% are held
  EXPECT_TRUE(WaitUntilHeld(Bytes(2))) << Held();
  EXPECT_EQ(client_->Abort("floored"), 1u);
  stream.join();
  ExpectOneDemotion(got);
}

}  // namespace
}  // namespace strata
