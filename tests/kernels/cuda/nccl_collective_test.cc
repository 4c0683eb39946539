#include "kernels/cuda/nccl_collective.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/parallel/meeting.h"
#include "kernels/parallel/rank_threads.h"

// On GPUs only: the library has no part in tests on the CPU.
namespace strata::cuda {
namespace {

constexpr int kCount = 10'000;

#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess)

// Ranks have 1, 2, ... in every place: what their sum is.
float SumOf(int num_ranks) { return num_ranks * (num_ranks + 1) / 2.0f; }

// One rank, on its thread: sums at once, then by a graph of two sums.
void RunRank(Collective* collective, int rank, int num_ranks) {
  ASSERT_CUDA(cudaSetDevice(rank));
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, kCount * sizeof(float)));
  float* const x = static_cast<float*>(memory);
  const std::vector<float> mine(kCount, static_cast<float>(rank + 1));
  const auto fill = [&] {
    return cudaMemcpy(x, mine.data(), kCount * sizeof(float),
                      cudaMemcpyHostToDevice);
  };
  const auto expect = [&](float want) {
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    std::vector<float> got(kCount);
    ASSERT_CUDA(cudaMemcpy(got.data(), x, kCount * sizeof(float),
                           cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<float>(kCount, want));
  };
  ASSERT_CUDA(fill());
  ASSERT_TRUE(collective->AllReduce(x, kCount, stream).ok());
  expect(SumOf(num_ranks));

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_TRUE(collective->AllReduce(x, kCount, stream).ok());
  EXPECT_TRUE(collective->AllReduce(x, kCount, stream).ok());
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) {
    ASSERT_CUDA(fill());
    EXPECT_EQ(collective->Meet(1u << rank), (1u << num_ranks) - 1);
    ASSERT_CUDA(cudaGraphLaunch(executable, stream));
    // The second sum is over ranks that have the same.
    expect(SumOf(num_ranks) * static_cast<float>(num_ranks));
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaFree(x);
  cudaStreamDestroy(stream);
}

TEST(NcclCollectiveTest, SumsAtOnceAndFromAGraph) {
  int num_devices = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&num_devices));
  for (int num_ranks = 1; num_ranks <= num_devices; ++num_ranks) {
    SCOPED_TRACE(num_ranks);
    auto collectives = OpenNccl(num_ranks);
    if (absl::IsFailedPrecondition(collectives.status())) {
      GTEST_SKIP() << collectives.status().message();
    }
    ASSERT_TRUE(collectives.ok()) << collectives.status();
    RankThreads threads(num_ranks);
    threads.Run([&](int rank) {
      RunRank((*collectives)[rank].get(), rank, num_ranks);
      (*collectives)[rank].reset();
    });
  }
  EXPECT_EQ(OpenNccl(num_devices + 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(NcclCollectiveTest, AfterAbortNobodyWaits) {
  auto collectives = OpenNccl(1);
  if (!collectives.ok()) GTEST_SKIP() << collectives.status().message();
  Collective& collective = *(*collectives)[0];
  collective.Abort();
  EXPECT_EQ(collective.Meet(0), Meeting::kEnded);
  EXPECT_FALSE(collective.AllReduce(nullptr, 0, nullptr).ok());
}

}  // namespace
}  // namespace strata::cuda
