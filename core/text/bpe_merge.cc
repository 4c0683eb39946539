#include "core/text/bpe_merge.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace strata {
namespace {

// Up to here looking through all pairs for the next merge is faster than a
// queue.
constexpr size_t kShortWord = 32;
constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();

uint64_t Key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

}  // namespace

void BpeMerge::Add(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  results_[Key(left, right)] = {rank, merged};
}

const BpeMerge::Result* BpeMerge::Find(int32_t left, int32_t right) const {
  const auto found = results_.find(Key(left, right));
  return found == results_.end() ? nullptr : &found->second;
}

void BpeMerge::Merge(std::vector<int32_t>* ids) const {
  if (ids->size() < 2) return;
  if (ids->size() <= kShortWord) {
    MergeShort(ids);
  } else {
    MergeLong(ids);
  }
}

void BpeMerge::MergeShort(std::vector<int32_t>* ids) const {
  int32_t* id = ids->data();
  size_t n = ids->size();
  Result pairs[kShortWord];  // [i]: of ids i and i + 1
  const auto look_up = [&](size_t i) {
    const Result* result = Find(id[i], id[i + 1]);
    pairs[i] = result == nullptr ? Result{kNoRank, 0} : *result;
  };
  for (size_t i = 0; i + 1 < n; ++i) look_up(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    id[best] = pairs[best].merged;
    std::copy(id + best + 2, id + n, id + best + 1);
    std::copy(pairs + best + 1, pairs + n - 1, pairs + best);
    --n;
    if (best > 0) look_up(best - 1);
    if (best + 1 < n) look_up(best);
  }
  ids->resize(n);
}

void BpeMerge::MergeLong(std::vector<int32_t>* ids) const {
  struct Symbol {
    int32_t id;
    int64_t previous;  // index of the neighbour; outside of the word: -1 or n
    int64_t next;
    bool alive;
  };
  struct Candidate {
    int32_t rank;
    int64_t at;
    int32_t merged;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  const int64_t n = static_cast<int64_t>(ids->size());
  std::vector<Symbol> symbols(n);
  for (int64_t i = 0; i < n; ++i) symbols[i] = {(*ids)[i], i - 1, i + 1, true};

  std::vector<Candidate> candidates;
  const auto candidate = [&](int64_t left, int64_t right) {
    if (left < 0 || right >= n) return false;
    const Result* result = Find(symbols[left].id, symbols[right].id);
    if (result != nullptr)
      candidates.push_back({result->rank, left, result->merged});
    return result != nullptr;
  };
  for (int64_t i = 0; i + 1 < n; ++i) candidate(i, i + 1);
  std::make_heap(candidates.begin(), candidates.end(), std::greater<>());
  const auto push = [&](int64_t left, int64_t right) {
    if (candidate(left, right)) {
      std::push_heap(candidates.begin(), candidates.end(), std::greater<>());
    }
  };

  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(), std::greater<>());
    const Candidate best = candidates.back();
    candidates.pop_back();
    Symbol& left = symbols[best.at];
    if (!left.alive || left.next >= n) continue;
    Symbol& right = symbols[left.next];
    // Either symbol may have been merged with another one since.
    const Result* result = Find(left.id, right.id);
    if (result == nullptr || result->merged != best.merged) continue;
    left.id = best.merged;
    right.alive = false;
    left.next = right.next;
    if (left.next < n) symbols[left.next].previous = best.at;
    push(left.previous, best.at);
    push(best.at, left.next);
  }
  ids->clear();
  for (int64_t i = 0; i < n; i = symbols[i].next) ids->push_back(symbols[i].id);
}

}  // namespace strata
