#ifndef KERNELS_CPU_STEALING_SHARES_H_
#define KERNELS_CPU_STEALING_SHARES_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/cpu/worker.h"

namespace strata::cpu {

// Divides the items of an operation among the workers of a team: each does its
// own share, piece by piece, then pieces of the shares of those that are
// slower, as one whose core also runs something else is.
//
// Tokens per second, as ratios to fixed shares (2 threads of 2 cores, Zen 3,
// Q4_0): a server with 16 streams 1.05; beside a program that takes one core,
// one stream 1.15 and 16 streams 1.06; one stream on a quiet machine 1.00.
class StealingShares {
 public:
  explicit StealingShares(int num_workers) : shares_(num_workers) {}

  // Called by all workers, with the same `num_items`: calls run(Share) until
  // all items are taken, each by one worker.  Another ForEach may begin only
  // after a Sync.
  template <class Run>
  void ForEach(int64_t num_items, const Worker& worker, const Run& run) {
    const int round = shares_[worker.id].round;
    // Nobody looks at the next round's before the Sync.
    shares_[worker.id].round = 1 - round;
    shares_[worker.id].taken[1 - round].store(0, std::memory_order_relaxed);
    for (int i = 0; i < worker.count; ++i) {
      const Worker owner = {.id = (worker.id + i) % worker.count,
                            .count = worker.count};
      const Share share = owner.ShareOf(num_items);
      const int64_t piece = (share.end - share.begin) / kPieces + 1;
      std::atomic<int64_t>& taken = shares_[owner.id].taken[round];
      while (share.begin + taken.load(std::memory_order_relaxed) < share.end) {
        const int64_t begin =
            share.begin + taken.fetch_add(piece, std::memory_order_relaxed);
        if (begin >= share.end) break;
        run(Share{begin, std::min(begin + piece, share.end)});
      }
    }
  }

 private:
  // Of a share: one of them is what workers wait for each other at most.
  static constexpr int64_t kPieces = 8;

  struct alignas(64) OfWorker {
    std::atomic<int64_t> taken[2] = {};  // items of its share, by round
    int round = 0;                       // its own: which is in use
  };
  std::vector<OfWorker> shares_;
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_STEALING_SHARES_H_
