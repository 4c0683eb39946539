#include "client/summary.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

GenerationResult FiveTokens() {
  GenerationResult result;
  result.num_tokens = 5;
  result.first_token_s = 0.25;
  result.last_token_s = 2.25;
  v1::Usage* usage = result.done.mutable_usage();
  usage->set_prompt_tokens(29);
  usage->set_generated_tokens(5);
  usage->set_kv_bytes(1024);
  usage->set_kv_bytes_full(4096);
  usage->set_strategy("every=4");
  return result;
}

TEST(SummaryTest, SaysWhatACallCameTo) {
  EXPECT_EQ(Summary(FiveTokens()),
            "5 tokens (29 prompt)  2.0 tok/s  TTFT 250 ms  KV held 1.00 KiB, "
            "saved 3.00 KiB  strategy every=4");
}

TEST(SummaryTest, ShowsReuseSwitchesAndPreemptionsWhereThereAreAny) {
  GenerationResult result = FiveTokens();
  v1::Usage* usage = result.done.mutable_usage();
  usage->set_cached_tokens(16);
  usage->set_preemptions(2);
  v1::SwitchRecord* first = usage->add_switches();
  first->set_after_generated(0);
  first->set_strategy("every=2");
  first->set_freed_bytes(512);
  v1::SwitchRecord* second = usage->add_switches();
  second->set_after_generated(3);
  second->set_strategy("every=4");
  second->set_freed_bytes(1536);
  EXPECT_EQ(Summary(result),
            "5 tokens (29 prompt, 16 of them cached)  2.0 tok/s  TTFT 250 ms  "
            "KV held 1.00 KiB, saved 3.00 KiB  strategy every=4  after 0 "
            "tokens: every=2 (freed 512 B)  after 3 tokens: every=4 (freed "
            "1.50 KiB)  pre-empted 2x");
}

}  // namespace
}  // namespace strata
