#ifndef CORE_KV_POOL_H_
#define CORE_KV_POOL_H_

#include <cstdint>
#include <vector>

#include "core/prefix_index.h"

namespace strata {

// The pages of the KV cache by number: lent, shared, promised, kept for their
// prefix.  A page holds K and V of one leader layer for page_tokens consecutive
// positions; all strategies draw from one pool.
//
// A page is used while some sequence refers to it.  Of those not used, the ones
// in the prefix index are kept, for whoever has the same prefix, until a page
// is needed and no other is left: then the one not used for longest goes.
// Promises are made out of all that are not used, but are no particular pages.
// So
//   used + reserved + cached + free == pages,
// where cached are the kept pages that no promise needs.
//
// Owns numbers, not memory, and the prefix index.  Not thread-safe: the engine
// thread's.  All operations O(1), but for the index's share.
class KvPool {
 public:
  using PageId = PrefixIndex::PageId;  // in [0, num_pages)

  // REQUIRES: num_pages > 0; page_tokens > 0.
  KvPool(int64_t num_pages, int page_tokens);

  // Promises `count` pages, or changes nothing and returns false.
  [[nodiscard]] bool Reserve(int64_t count);
  // Gives promises back.  REQUIRES: count <= num_reserved().
  void Unreserve(int64_t count);

  // Turns one promise into a page with one reference, counted as used under
  // metric label `label`.  REQUIRES: num_reserved() > 0; label >= 0.
  PageId Allocate(int label);
  // One more reference.  A kept page becomes used, under `label`.
  // REQUIRES: the page is used, or it is kept and num_available() > 0.
  void AddReference(PageId page, int label);
  // One reference less; without any the page is kept if the index contains it,
  // and not as private, else free.  REQUIRES: the page is used.
  void Release(PageId page);
  // Counts the page under another label.  REQUIRES: it is used.
  void SetLabel(PageId page, int label);

  bool is_used(PageId page) const { return references_[page] > 0; }

  int64_t num_pages() const { return static_cast<int64_t>(references_.size()); }
  int64_t num_used() const { return num_pages() - num_unused(); }
  int64_t num_reserved() const { return num_reserved_; }
  int64_t num_cached() const {
    return num_available() < num_kept_ ? num_available() : num_kept_;
  }
  int64_t num_free() const { return num_available() - num_cached(); }
  // What Reserve can promise: cached + free.
  int64_t num_available() const { return num_unused() - num_reserved_; }
  // Used pages under `label`; sums to num_used() over the labels.
  int64_t num_used(int label) const;

  PrefixIndex& prefixes() { return prefixes_; }
  const PrefixIndex& prefixes() const { return prefixes_; }

 private:
  int64_t num_unused() const {
    return static_cast<int64_t>(empty_.size()) + num_kept_;
  }
  void MakeUsed(PageId page, int label);
  // The kept pages, from the one not used for longest: a ring through `ends_`.
  void Keep(PageId page);
  void Unkeep(PageId page);
  PageId ends() const { return static_cast<PageId>(num_pages()); }

  PrefixIndex prefixes_;
  std::vector<PageId> empty_;        // a stack: the last one freed is warm
  std::vector<int32_t> references_;  // by page
  std::vector<int32_t> label_of_;    // by page, while used
  std::vector<PageId> next_;         // by page, while kept; and of ends()
  std::vector<PageId> previous_;
  std::vector<int64_t> used_by_label_;
  int64_t num_kept_ = 0;
  int64_t num_reserved_ = 0;
};

}  // namespace strata

#endif  // CORE_KV_POOL_H_
