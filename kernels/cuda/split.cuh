#ifndef KERNELS_CUDA_SPLIT_CUH_
#define KERNELS_CUDA_SPLIT_CUH_

#include <cuda_runtime.h>

#include <cmath>

namespace strata::cuda {

// One block's part of a row's tokens, [begin, end).  The splits of a row take
// whole rounds, the same number each but the last.  They depend on its length
// and max_splits alone, so that its result does not depend on other rows.
struct Split {
  static constexpr int kRoundTokens = 64;
  static constexpr int kMaxSplits = 128;

  int index;
  int count;  // that the row is divided into; past it there is nothing to do
  int begin, end;

  // More splits read at once, but each adds to the merge.  2 sqrt(rounds) cost
  // least where a partial result costs a quarter of a round, as measured of
  // XQA on GH200; where rows abound, max_splits is less.
  // REQUIRES: num_tokens and max_splits are positive.
  __host__ __device__ Split(int index, int num_tokens, int max_splits)
      : index(index) {
    const int rounds = DivideUp(num_tokens, kRoundTokens);
    const int best = static_cast<int>(ceilf(2.0f * sqrtf(rounds)));
    const int most = max_splits < kMaxSplits ? max_splits : kMaxSplits;
    const int each = DivideUp(rounds, best < most ? best : most);
    count = DivideUp(rounds, each);
    begin = index * each * kRoundTokens;
    const int after = begin + each * kRoundTokens;
    end = after < num_tokens ? after : num_tokens;
  }

 private:
  __host__ __device__ static int DivideUp(int a, int b) {
    return (a + b - 1) / b;
  }
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_SPLIT_CUH_
