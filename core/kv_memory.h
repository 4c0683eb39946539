#ifndef CORE_KV_MEMORY_H_
#define CORE_KV_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/kv_pool.h"
#include "core/live_strategies.h"
#include "core/sequence.h"
#include "core/sharing_strategy.h"

namespace strata {

// The pages of sequences: promises, allocates, shares and gives them back, and
// enters what was written in the prefix index.  Decides nothing.
//
// A sequence is promised every page that it will allocate up to some position,
// so that it never waits for memory before that.
//
// Owns no sequence and not the pool.  Not thread-safe: the engine thread's.
class KvMemory {
 public:
  // `pool` outlives this.  REQUIRES: page_tokens > 0.
  KvMemory(KvPool* pool, int page_tokens);

  // Between Enter and Leave a sequence may be given pages.
  void Enter(Sequence* sequence);
  void Leave(Sequence* sequence);  // REQUIRES: it has none

  // Finds the longest prefix of the sequence whose pages are all in the index,
  // gives it these and promises it the others that it allocates before position
  // `end`.  Changes nothing and returns false if then fewer than `num_spare`
  // pages were available; *num_needed is what it would have taken.
  // REQUIRES: the sequence has neither pages nor promises.
  bool Admit(Sequence* sequence, int64_t end, int64_t num_spare,
             int64_t* num_needed);
  // What Admit takes at least, however much is found in the index.
  int64_t LeastNeeded(const Sequence& sequence, int64_t end) const;

  // Promises it what it allocates before `end` too, or changes nothing and
  // returns false.
  bool Extend(Sequence* sequence, int64_t end);
  // Turns promises into pages, for positions before `end`.
  // REQUIRES: end <= promised_end, and `end` is not beyond the next switch.
  void Allocate(Sequence* sequence, int64_t end);
  // Positions of the sequence were added to those that are cached: what it
  // holds for them counts, and blocks that have become whole are entered in the
  // index. Where that has the same already, the sequence reads that page from
  // now on and gives its own back.  REQUIRES: the tokens of these positions are
  // known.
  void Commit(Sequence* sequence);
  // The sequence runs under path.strategy() from now on: pages of leaders that
  // it drops go back, and promises that it needs no more.  Returns the pages
  // that have become available.
  int64_t FollowPath(Sequence* sequence);
  // Gives back all pages and promises; nothing is cached then.
  void Release(Sequence* sequence);

  int page_tokens() const { return page_tokens_; }
  const KvPool& pool() const { return *pool_; }

 private:
  // Positions that may be found in the index: at least one token is always run,
  // Score runs all, and no block may reach beyond a switch.
  int NumMatchableBlocks(const Sequence& sequence) const;
  // Fills matched_ and returns the number of blocks; *last is the node of the
  // last one.
  int FindPrefix(const Sequence& sequence, PrefixIndex::NodeId* last);
  void EnterPrefix(Sequence* sequence);
  void EnterBlock(Sequence* sequence, int block);
  // `before` is what the pages were of.
  void DropLeaders(const SharingStrategy& before, Sequence* sequence);
  void SetStrategy(Sequence* sequence);
  void UpdateHeld(Sequence* sequence) const;
  bool UsesIndex(const Sequence& sequence) const;
  std::string SpaceOf(const Sequence& sequence) const;

  KvPool* const pool_;
  PrefixIndex& index_;
  const int page_tokens_;
  LiveStrategies strategies_;

  // Kept between calls for their memory.
  std::vector<KvPool::PageId> matched_;  // [block][slot]
  std::vector<KvPool::PageId> block_;    // [slot]
};

}  // namespace strata

#endif  // CORE_KV_MEMORY_H_
