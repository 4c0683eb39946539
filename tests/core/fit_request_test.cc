#include "core/fit_request.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/match.h"

namespace strata {
namespace {

constexpr EngineLimits kLimits = {.vocab_size = 100,
                                  .max_model_len = 4096,
                                  .num_pages = 1000,
                                  .page_tokens = 16};

// Of a model of 4 layers.
Request NewRequest(const std::string& spec, int64_t num_prompt) {
  Request request(*SharingStrategy::Parse(spec, 4));
  request.prompt.resize(num_prompt);
  return request;
}

struct Case {
  const char* what;
  const char* spec;
  int64_t num_prompt;
  std::optional<uint32_t> max_tokens;
  int32_t want;      // max_tokens; 0: refused
  const char* says;  // part of the refusal
  EngineLimits limits = kLimits;
};

class FitRequestTest : public ::testing::TestWithParam<Case> {};

TEST_P(FitRequestTest, ResolvesMaxTokens) {
  const Case& test = GetParam();
  Request request = NewRequest(test.spec, test.num_prompt);
  const absl::Status status =
      FitRequest(test.limits, test.max_tokens, &request);
  if (test.want > 0) {
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(request.stopping.max_tokens, test.want);
    EXPECT_LE(PagesNeeded(request, test.limits.page_tokens),
              test.limits.num_pages);
    return;
  }
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), test.says)) << status;
  EXPECT_LE(status.message().size(), 512u);
}

constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();

// A pool of `num_pages` pages of 16 positions, 4 under `full`, and a long
// context.
EngineLimits Pool(int64_t num_pages, int max_model_len = 1 << 20) {
  return {.vocab_size = 100,
          .max_model_len = max_model_len,
          .num_pages = num_pages,
          .page_tokens = 16};
}

INSTANTIATE_TEST_SUITE_P(
    Set, FitRequestTest,
    ::testing::Values(
        Case{"as asked", "full", 10, 50, 50, ""},
        Case{"one", "full", 1, 1, 1, ""},
        Case{"none", "full", 10, 0, 0, "at least 1"},
        Case{"cut to the context", "every=4", 4000, kMost, 96, ""},
        Case{"the last position", "every=4", 4095, kMost, 1, ""},
        Case{"no context left", "every=4", 4096, 1, 0, "--max_model_len"},
        Case{"prompt over the context", "every=4", 5000, 1, 0, "4096"},
        // 250 blocks of 16 under `full`: 4,000 positions, so 4,001 tokens.
        Case{"fills the pool", "full", 1, 4000, 4000, ""},
        Case{"a page too many", "full", 1, 4001, 0, "1004 pages"},
        Case{"names the pool", "full", 1, 4001, 0, "the pool has 1000"},
        Case{"names the flag", "full", 1, 4001, 0, "--kv_memory"},
        Case{"fits with fewer leaders", "every=2", 1, 4001, 4001, "",
             Pool(1000)},
        Case{"2^32 tokens", "full", 1, kMost, 0, "2147483646 positions",
             Pool(1000, std::numeric_limits<int>::max())}));

INSTANTIATE_TEST_SUITE_P(
    Unset, FitRequestTest,
    ::testing::Values(
        // A quarter of 1,000 pages: 62 blocks under `full`, 992 positions; the
        // prompt and 1,024 tokens are more.
        Case{"1,024 tokens", "full", 10, std::nullopt, 1024, ""},
        // A quarter under one leader: 250 blocks, 4,000 positions.
        Case{"a quarter", "every=4", 10, std::nullopt, 3991, ""},
        Case{"the context", "every=4", 3500, std::nullopt, 596, ""},
        Case{"what the pool leaves", "full", 3900, std::nullopt, 101, ""},
        Case{"the last position", "full", 4000, std::nullopt, 1, "",
             Pool(1000)},
        Case{"prompt over the pool", "full", 4001, std::nullopt, 0,
             "4001 positions need 1004 pages", Pool(1000)},
        Case{"no block at all", "full", 1, std::nullopt, 0, "the pool has 3",
             Pool(3)},
        Case{"prompt over the context", "full", 4096, std::nullopt, 0, "4096"},
        Case{"a huge pool", "full", 1, std::nullopt,
             std::numeric_limits<int32_t>::max() - 1, "",
             Pool(int64_t{1} << 60, std::numeric_limits<int32_t>::max())}));

TEST(FitRequestTest, MinTokensAboveMaxTokens) {
  Request request = NewRequest("full", 10);
  request.stopping.min_tokens = 20;
  EXPECT_TRUE(FitRequest(kLimits, 20, &request).ok());
  const absl::Status status = FitRequest(kLimits, 19, &request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "20")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "19")) << status;
}

TEST(FitRequestTest, ScoreNeedsItsTokensToFit) {
  const auto fits = [](int64_t num_tokens, const EngineLimits& limits) {
    Request request = NewRequest("full", num_tokens);
    request.kind = Request::Kind::kScore;
    const absl::Status status = FitRequest(limits, std::nullopt, &request);
    EXPECT_TRUE(status.ok() ||
                status.code() == absl::StatusCode::kInvalidArgument);
    return status.ok();
  };
  EXPECT_TRUE(fits(1, kLimits));
  EXPECT_TRUE(fits(64, Pool(1000, 64)));
  EXPECT_FALSE(fits(65, Pool(1000, 64)));
  EXPECT_TRUE(fits(4001, Pool(1000)));  // the last one is not run
  EXPECT_FALSE(fits(4002, Pool(1000)));
  EXPECT_TRUE(fits(1, Pool(1)));  // nothing to run
  EXPECT_FALSE(fits(2, Pool(1)));
}

TEST(FitRequestTest, PagesOfOneSequence) {
  Request request = NewRequest("every=2", 16);
  request.num_sequences = 5;
  request.stopping.max_tokens = 1;
  EXPECT_EQ(PagesNeeded(request, 16), 2);
  request.stopping.max_tokens = 2;
  EXPECT_EQ(PagesNeeded(request, 16), 4);
  request.stopping.max_tokens = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(PagesNeeded(request, 1), 2 * (int64_t{1} << 31) + 28);
}

}  // namespace
}  // namespace strata
