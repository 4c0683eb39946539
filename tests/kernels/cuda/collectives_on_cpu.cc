#include <utility>

#include "kernels/parallel/host_collective.h"
#include "tests/kernels/cuda/collectives.h"
#include "tests/testing/cuda_on_cpu/graph.h"

namespace strata::cuda {
namespace {

class CollectiveOnCpu final : public Collective {
 public:
  CollectiveOnCpu(std::shared_ptr<HostCollective> all, int rank)
      : all_(std::move(all)), rank_(rank) {}

  absl::Status AllReduce(float* x, int64_t count, cudaStream_t) override {
    const auto launch = [all = all_, rank = rank_, x, count] {
      return all->AllReduce(rank, x, count) ? cudaSuccess
                                            : cudaErrorLaunchFailure;
    };
    if (cuda_on_cpu::IsCapturing()) {
      cuda_on_cpu::KeepLaunch(launch);
      return absl::OkStatus();
    }
    return launch() == cudaSuccess ? absl::OkStatus()
                                   : absl::InternalError("the meeting ended");
  }
  uint32_t Meet(uint32_t flags) override { return all_->meeting().Meet(flags); }
  void Abort() override { all_->meeting().End(); }

 private:
  const std::shared_ptr<HostCollective> all_;
  const int rank_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Collective>>> MakeCollectives(
    int num_ranks) {
  const auto all = std::make_shared<HostCollective>(num_ranks);
  std::vector<std::unique_ptr<Collective>> collectives;
  for (int rank = 0; rank < num_ranks; ++rank) {
    collectives.push_back(std::make_unique<CollectiveOnCpu>(all, rank));
  }
  return collectives;
}

}  // namespace strata::cuda
