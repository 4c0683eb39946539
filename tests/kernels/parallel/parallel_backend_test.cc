// What of ParallelBackend is not the forward pass: that is in tests/core, where
// its results are those of one device.
#include "kernels/parallel/parallel_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_ranks.h"
#include "tests/kernels/cpu/weights.h"

namespace strata {
namespace {

using testing::HasSubstr;

TEST(RankThreadsTest, EachRankHasAThreadOfItsOwn) {
  constexpr int kRanks = 3;
  std::vector<std::thread::id> ids(kRanks);
  RankThreads threads(kRanks);
  threads.Run([&](int rank) { ids[rank] = std::this_thread::get_id(); });
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
  EXPECT_NE(ids[1], ids[2]);
  for (int run = 0; run < 100; ++run) {
    std::atomic<int> num_calls = 0;
    threads.Run([&](int rank) {
      ++num_calls;
      EXPECT_EQ(std::this_thread::get_id(), ids[rank]);
    });
    EXPECT_EQ(num_calls, kRanks);
  }
}

TEST(ParallelBackendTest, ARankThatCannotBeMadeIsTheError) {
  const auto backend = ParallelBackend::Create(
      3, ParallelBackend::Memory::kOfEach,
      [](int rank) -> absl::StatusOr<std::unique_ptr<Backend>> {
        if (rank == 0) {
          return std::make_unique<cpu::CpuBackend>(cpu::CpuOptions{});
        }
        return absl::UnavailableError(absl::StrCat("no device ", rank));
      });
  EXPECT_EQ(backend.status(), absl::UnavailableError("no device 1"));
}

TEST(ParallelBackendTest, IsNamedByItsRanks) {
  const auto one = cpu::MakeCpuRanks({.num_threads = 4}, 1);
  const auto two = cpu::MakeCpuRanks({.num_threads = 4}, 2);
  EXPECT_EQ(two->name(), "cpu");
  EXPECT_EQ(two->kv_format(), one->kv_format());
  EXPECT_THAT(two->device(), HasSubstr("2 ranks; "));
  EXPECT_THAT(two->device(), HasSubstr(", 2 threads"));
  const KvLayout layout = {
      .num_pages = 3, .page_tokens = 8, .kv_heads = 4, .head_dim = 16};
  EXPECT_EQ(two->PageBytes(layout), one->PageBytes(layout));
}

TEST(ParallelBackendTest, AMatrixIsAsLargeAsItsParts) {
  std::mt19937_64 random(1);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    TestWeights weights(type, 96, 64, random);
    weights.view.split_unit = 32;
    for (const Split split : {Split::kWhole, Split::kOutputs, Split::kInputs}) {
      weights.view.split = split;
      const auto one = cpu::MakeCpuRanks({}, 1)->Pack(weights.view);
      const auto backend = cpu::MakeCpuRanks({}, 2);
      const auto two = backend->Pack(weights.view);
      EXPECT_EQ(two->num_bytes(), *backend->PackedBytes(weights.view));
      EXPECT_EQ(two->rows(), 96);
      EXPECT_EQ(two->cols(), 64);
      if (type == DType::kBF16) continue;  // each part's tiles have a table
      EXPECT_EQ(two->num_bytes(),
                one->num_bytes() * (split == Split::kWhole ? 2 : 1));
    }
  }
}

TEST(ParallelBackendTest, RanksOfOneMachineShareItsMemory) {
  const auto one = cpu::MakeCpuRanks({}, 1), four = cpu::MakeCpuRanks({}, 4);
  const auto of_one = one->FreeBytes(), of_four = four->FreeBytes();
  ASSERT_TRUE(of_one.ok() && of_four.ok());
  EXPECT_LT(*of_four, 2 * *of_one);
  EXPECT_GT(*of_four, *of_one / 2);
}

TEST(ParallelBackendTest, NothingQueuedIsOk) {
  EXPECT_TRUE(cpu::MakeCpuRanks({}, 2)->Wait().ok());
}

}  // namespace
}  // namespace strata
