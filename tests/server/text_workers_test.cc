#include "server/text_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/cancel_relay.h"

namespace strata {
namespace {

TEST(TextWorkersTest, RunsWhatWaitsInOrderAndRefusesWhatIsTooMuch) {
  absl::Notification started, go_on;
  std::vector<int> done;  // the one worker's
  auto workers = std::make_unique<TextWorkers>(1, 3);
  EXPECT_TRUE(workers->Post([&] {
    started.Notify();
    go_on.WaitForNotification();
  }));
  started.WaitForNotification();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(workers->Post([&done, i] { done.push_back(i); }));
  }
  EXPECT_FALSE(workers->Post([] { FAIL(); }));
  go_on.Notify();
  workers.reset();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

TEST(TextWorkersTest, ThreadsRunAtTheSameTime) {
  TextWorkers workers(2, 2);
  absl::Notification first, second;
  EXPECT_TRUE(workers.Post([&] {
    first.Notify();
    second.WaitForNotification();
  }));
  EXPECT_TRUE(workers.Post([&] {
    first.WaitForNotification();
    second.Notify();
  }));
  second.WaitForNotification();
}

TEST(CancelRelayTest, ACancelArrivesBeforeAndAfterTheConnection) {
  int num_asked = 0;
  CancelRelay late, early;
  late.Connect([&] { ++num_asked; });
  EXPECT_EQ(num_asked, 0);
  late.Cancel();
  EXPECT_EQ(num_asked, 1);
  early.Cancel();
  EXPECT_EQ(num_asked, 1);
  early.Connect([&] { ++num_asked; });
  EXPECT_EQ(num_asked, 2);
}

}  // namespace
}  // namespace strata
