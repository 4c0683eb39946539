#include "core/kv_pool.h"

#include <limits>

#include "base/check.h"

namespace strata {

KvPool::KvPool(int64_t num_pages, int page_tokens)
    : prefixes_(page_tokens, num_pages) {
  STRATA_CHECK(num_pages < std::numeric_limits<PageId>::max());
  references_.resize(num_pages);
  label_of_.resize(num_pages);
  next_.resize(num_pages + 1);
  previous_.resize(num_pages + 1);
  next_[ends()] = previous_[ends()] = ends();
  empty_.reserve(num_pages);
  for (int64_t page = num_pages; page-- > 0;) {
    empty_.push_back(static_cast<PageId>(page));
  }
}

bool KvPool::Reserve(int64_t count) {
  STRATA_CHECK(count >= 0);
  if (count > num_available()) return false;
  num_reserved_ += count;
  return true;
}

void KvPool::Unreserve(int64_t count) {
  STRATA_CHECK(count >= 0 && count <= num_reserved_);
  num_reserved_ -= count;
}

KvPool::PageId KvPool::Allocate(int label) {
  STRATA_CHECK(num_reserved_ > 0);
  if (empty_.empty()) {
    const PageId oldest = next_[ends()];
    Unkeep(oldest);
    prefixes_.Erase(oldest);
    empty_.push_back(oldest);
  }
  const PageId page = empty_.back();
  empty_.pop_back();
  --num_reserved_;
  MakeUsed(page, label);
  return page;
}

void KvPool::AddReference(PageId page, int label) {
  STRATA_CHECK(page >= 0 && page < num_pages());
  if (is_used(page)) {
    ++references_[page];
    return;
  }
  STRATA_CHECK(prefixes_.Contains(page) && num_available() > 0);
  Unkeep(page);
  MakeUsed(page, label);
}

void KvPool::Release(PageId page) {
  STRATA_CHECK(page >= 0 && page < num_pages() && is_used(page));
  if (--references_[page] > 0) return;
  --used_by_label_[label_of_[page]];
  if (!prefixes_.Contains(page)) {
    empty_.push_back(page);
  } else if (prefixes_.IsPrivate(page)) {
    prefixes_.Erase(page);
    empty_.push_back(page);
  } else {
    Keep(page);
  }
}

void KvPool::SetLabel(PageId page, int label) {
  STRATA_CHECK(page >= 0 && page < num_pages() && is_used(page));
  --used_by_label_[label_of_[page]];
  const int32_t references = references_[page];
  MakeUsed(page, label);
  references_[page] = references;
}

int64_t KvPool::num_used(int label) const {
  STRATA_CHECK(label >= 0);
  const size_t index = static_cast<size_t>(label);
  return index < used_by_label_.size() ? used_by_label_[index] : 0;
}

void KvPool::MakeUsed(PageId page, int label) {
  STRATA_CHECK(label >= 0);
  references_[page] = 1;
  label_of_[page] = label;
  const size_t index = static_cast<size_t>(label);
  if (index >= used_by_label_.size()) used_by_label_.resize(index + 1);
  ++used_by_label_[index];
}

void KvPool::Keep(PageId page) {
  const PageId last = previous_[ends()];
  next_[last] = page;
  previous_[page] = last;
  next_[page] = ends();
  previous_[ends()] = page;
  ++num_kept_;
}

void KvPool::Unkeep(PageId page) {
  next_[previous_[page]] = next_[page];
  previous_[next_[page]] = previous_[page];
  --num_kept_;
}

}  // namespace strata
