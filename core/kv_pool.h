#ifndef CORE_KV_POOL_H_
#define CORE_KV_POOL_H_

#include <cstdint>
#include <vector>

namespace strata {

// The pages of the KV cache by number: lent, shared, promised.  A page holds K and V of one leader layer for
// page_tokens consecutive positions of one sequence; all strategies draw from one pool.
//
// Every page is in one state: used (some sequence refers to it), or not used; of those not used, some are reserved
// (promised to a sequence, but no particular page) and the rest is free:  used + reserved + free == pages.
//
// Owns numbers, not memory.  Not thread-safe: the engine thread's.  All operations O(1).
class KvPool {
 public:
  using PageId = int32_t;  // in [0, num_pages)

  // REQUIRES: num_pages > 0.
  explicit KvPool(int64_t num_pages);

  // Promises `count` pages, or changes nothing and returns false.
  [[nodiscard]] bool Reserve(int64_t count);
  // Gives promises back.  REQUIRES: count <= num_reserved().
  void Unreserve(int64_t count);

  // Turns one promise into a page with one reference, counted as used under metric label `label`.
  // REQUIRES: num_reserved() > 0; label >= 0.
  PageId Allocate(int label);
  // One more reference.  REQUIRES: the page is used.
  void AddReference(PageId page);
  // One reference less; without any the page is free.  REQUIRES: the page is used.  Returns whether it became free.
  bool Release(PageId page);

  int64_t num_pages() const { return static_cast<int64_t>(references_.size()); }
  int64_t num_used() const { return num_pages() - static_cast<int64_t>(unused_.size()); }
  int64_t num_reserved() const { return num_reserved_; }
  int64_t num_free() const { return static_cast<int64_t>(unused_.size()) - num_reserved_; }
  // Used pages that were allocated under `label`; sums to num_used() over the labels.
  int64_t num_used(int label) const;

 private:
  std::vector<PageId> unused_;        // a stack: the last one freed is warm
  std::vector<int32_t> references_;   // by page; 0 = unused
  std::vector<int32_t> label_of_;     // by page, while used
  std::vector<int64_t> used_by_label_;
  int64_t num_reserved_ = 0;
};

}  // namespace strata

#endif  // CORE_KV_POOL_H_
