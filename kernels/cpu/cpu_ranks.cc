#include "kernels/cpu/cpu_ranks.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/parallel/parallel_backend.h"

namespace strata::cpu {

std::unique_ptr<Backend> MakeCpuRanks(const CpuOptions& options,
                                      int num_ranks) {
  if (num_ranks == 1) return std::make_unique<CpuBackend>(options);
  CpuOptions of_all = options;
  of_all.num_threads = std::max(1, options.num_threads / num_ranks);
  of_all.collective = std::make_shared<HostCollective>(num_ranks);
  auto ranks = ParallelBackend::Create(
      num_ranks, ParallelBackend::Memory::kShared, [&](int rank) {
        CpuOptions of_rank = of_all;
        of_rank.rank = rank;
        return std::make_unique<CpuBackend>(of_rank);
      });
  STRATA_CHECK(ranks.ok());
  return *std::move(ranks);
}

}  // namespace strata::cpu
