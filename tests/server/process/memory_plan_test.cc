#include "server/process/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace strata {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(MemoryPlanTest, WhatFitsFits) {
  EXPECT_TRUE(CheckFits("x", 0, 0, "y").ok());
  EXPECT_TRUE(CheckFits("x", 5, 5, "y").ok());
}

TEST(MemoryPlanTest, WhatDoesNotFitIsNamedWithItsSizes) {
  const absl::Status status =
      CheckFits("the weights", 16 * kGiB + kGiB / 2, kGiB / 1024 * 3 / 2, "do");
  EXPECT_EQ(status, absl::ResourceExhaustedError(
                        "out of memory for the weights: 16.5 GiB wanted, 1.5 "
                        "MiB free (do)"));
  EXPECT_EQ(CheckFits("x", 2048, 1023, "do").message(),
            "out of memory for x: 2.0 KiB wanted, 1023 bytes free (do)");
}

TEST(MemoryPlanTest, BytesBecomeWholePages) {
  EXPECT_EQ(*NumKvPages({.bytes = 4096}, kGiB, 4096), 1);
  EXPECT_EQ(*NumKvPages({.bytes = 8191}, kGiB, 4096), 1);
  EXPECT_EQ(*NumKvPages({.bytes = kGiB}, kGiB, 4096), kGiB / 4096);
}

TEST(MemoryPlanTest, APercentageIsOfWhatIsFree) {
  EXPECT_EQ(*NumKvPages({.percent = 50}, 100 * 4096, 4096), 50);
  EXPECT_EQ(*NumKvPages({.percent = 99}, 100 * 4096 + 4095, 4096), 99);
  // Bytes do not count then.
  EXPECT_EQ(*NumKvPages({.bytes = 1, .percent = 1}, 100 * 4096, 4096), 1);
}

TEST(MemoryPlanTest, PagesAreNoMoreThanCanBeNumbered) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  constexpr int64_t kFree = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_EQ(*NumKvPages({.percent = 90}, kFree, 2048), kMost);
  EXPECT_EQ(*NumKvPages({.bytes = kMost * 2048}, kFree, 2048), kMost);
  const auto more = NumKvPages({.bytes = (kMost + 1) * 2048}, kFree, 2048);
  EXPECT_EQ(more.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(more.status().message()),
      testing::StartsWith("--kv_memory=4096GiB: at most 2147483647 pages"));
}

TEST(MemoryPlanTest, OnePageIsTheLeast) {
  const auto none = NumKvPages({.bytes = 4095}, kGiB, 4096);
  EXPECT_EQ(none.status(),
            absl::InvalidArgumentError("--kv_memory=4095 bytes: one page of "
                                       "this model needs 4KiB"));
  EXPECT_EQ(NumKvPages({.percent = 50}, 4096, 4096).status(),
            absl::InvalidArgumentError("--kv_memory=50%, 2.0 KiB: one page of "
                                       "this model needs 4KiB"));
}

TEST(MemoryPlanTest, APoolThatDoesNotFitSaysWhichFlagToLower) {
  EXPECT_EQ(NumKvPages({.bytes = 2 * kGiB}, kGiB, 4096).status(),
            absl::ResourceExhaustedError(
                "out of memory for the KV cache: 2.0 GiB wanted, 1.0 GiB free "
                "(lower --kv_memory=2GiB)"));
}

}  // namespace
}  // namespace strata
