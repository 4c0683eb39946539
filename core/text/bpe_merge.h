#ifndef CORE_TEXT_BPE_MERGE_H_
#define CORE_TEXT_BPE_MERGE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace strata {

// The merges of byte-pair encoding over token ids.
//
// Filled once, then thread-safe.
class BpeMerge {
 public:
  // `left` and `right` side by side become `merged`; a lower rank goes first.
  // A pair given again takes the later rank and result.
  void Add(int32_t left, int32_t right, int32_t rank, int32_t merged);

  // Merges until no pair is left: always the pair of lowest rank, of equal ones
  // the leftmost.  O(n log n) for n ids.
  void Merge(std::vector<int32_t>* ids) const;

 private:
  struct Result {
    int32_t rank;
    int32_t merged;
  };

  const Result* Find(int32_t left, int32_t right) const;
  void MergeShort(std::vector<int32_t>* ids) const;
  void MergeLong(std::vector<int32_t>* ids) const;

  absl::flat_hash_map<uint64_t, Result> results_;  // by left << 32 | right
};

}  // namespace strata

#endif  // CORE_TEXT_BPE_MERGE_H_
