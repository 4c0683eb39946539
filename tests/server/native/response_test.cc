#include "server/native/response.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(ResponseTest, EveryFieldOfUsageArrives) {
  const Usage usage = {
      .prompt_tokens = 1,
      .cached_tokens = 2,
      .generated_tokens = 3,
      .kv_bytes = int64_t{5} << 32,
      .kv_bytes_full = int64_t{7} << 32,
      .strategy = "every=4",
      .switches = {{.after_generated = 0,
                    .strategy = "every=2",
                    .freed_bytes = int64_t{9} << 32},
                   {.after_generated = 8, .strategy = "every=4"}},
      .preemptions = 11,
      .queue_seconds = 0.5,
      .prefill_seconds = 0.25,
      .decode_seconds = 0.125};
  v1::Usage message;
  ToUsage(usage, &message);
  EXPECT_EQ(message.prompt_tokens(), 1u);
  EXPECT_EQ(message.cached_tokens(), 2u);
  EXPECT_EQ(message.generated_tokens(), 3u);
  EXPECT_EQ(message.kv_bytes(), uint64_t{5} << 32);
  EXPECT_EQ(message.kv_bytes_full(), uint64_t{7} << 32);
  EXPECT_EQ(message.strategy(), "every=4");
  ASSERT_EQ(message.switches_size(), 2);
  EXPECT_EQ(message.switches(0).after_generated(), 0u);
  EXPECT_EQ(message.switches(0).strategy(), "every=2");
  EXPECT_EQ(message.switches(0).freed_bytes(), uint64_t{9} << 32);
  EXPECT_EQ(message.switches(1).after_generated(), 8u);
  EXPECT_EQ(message.switches(1).strategy(), "every=4");
  EXPECT_EQ(message.switches(1).freed_bytes(), 0u);
  EXPECT_EQ(message.preemptions(), 11u);
  EXPECT_EQ(message.queue_seconds(), 0.5);
  EXPECT_EQ(message.prefill_seconds(), 0.25);
  EXPECT_EQ(message.decode_seconds(), 0.125);
}

}  // namespace
}  // namespace strata
