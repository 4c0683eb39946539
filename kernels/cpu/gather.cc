#include "kernels/cpu/gather.h"

#include <cstring>

namespace strata::cpu {

void Gather(const GatherArgs& args, const Worker& worker) {
  const Share share = worker.ShareOf(args.row_ids.size());
  for (int64_t i = share.begin; i < share.end; ++i) {
    std::memcpy(args.y + i * args.dim,
                args.x + int64_t{args.row_ids[i]} * args.dim,
                args.dim * sizeof(float));
  }
}

}  // namespace strata::cpu
