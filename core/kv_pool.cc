#include "core/kv_pool.h"

#include <limits>

#include "base/check.h"

namespace strata {

KvPool::KvPool(int64_t num_pages) {
  STRATA_CHECK(num_pages > 0);
  STRATA_CHECK(num_pages <= std::numeric_limits<PageId>::max());
  references_.resize(num_pages);
  label_of_.resize(num_pages);
  unused_.reserve(num_pages);
  for (int64_t page = num_pages; page-- > 0;) {
    unused_.push_back(static_cast<PageId>(page));
  }
}

bool KvPool::Reserve(int64_t count) {
  STRATA_CHECK(count >= 0);
  if (count > num_free()) return false;
  num_reserved_ += count;
  return true;
}

void KvPool::Unreserve(int64_t count) {
  STRATA_CHECK(count >= 0 && count <= num_reserved_);
  num_reserved_ -= count;
}

KvPool::PageId KvPool::Allocate(int label) {
  STRATA_CHECK(num_reserved_ > 0);
  STRATA_CHECK(label >= 0);
  const PageId page = unused_.back();
  unused_.pop_back();
  --num_reserved_;
  references_[page] = 1;
  label_of_[page] = label;
  const size_t index = static_cast<size_t>(label);
  if (index >= used_by_label_.size()) used_by_label_.resize(index + 1);
  ++used_by_label_[index];
  return page;
}

void KvPool::AddReference(PageId page) {
  STRATA_CHECK(page >= 0 && page < num_pages() && references_[page] > 0);
  ++references_[page];
}

bool KvPool::Release(PageId page) {
  STRATA_CHECK(page >= 0 && page < num_pages() && references_[page] > 0);
  if (--references_[page] > 0) return false;
  --used_by_label_[label_of_[page]];
  unused_.push_back(page);
  return true;
}

int64_t KvPool::num_used(int label) const {
  STRATA_CHECK(label >= 0);
  const size_t index = static_cast<size_t>(label);
  return index < used_by_label_.size() ? used_by_label_[index] : 0;
}

}  // namespace strata
