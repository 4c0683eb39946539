#include "core/request_table.h"

#include <utility>

#include "base/check.h"

namespace strata {

LiveRequest* RequestTable::Add(std::unique_ptr<LiveRequest> live) {
  LiveRequest* added = live.get();
  if (!added->request.label.empty()) {
    by_label_[added->request.label].insert(added->id);
  }
  if (added->request.deadline != absl::InfiniteFuture()) {
    by_deadline_.insert({added->request.deadline, added->id});
  }
  by_id_[added->id] = std::move(live);
  return added;
}

std::unique_ptr<LiveRequest> RequestTable::Remove(LiveRequest* live) {
  const auto found = by_id_.find(live->id);
  STRATA_CHECK(found != by_id_.end());
  if (const auto label = by_label_.find(live->request.label);
      label != by_label_.end()) {
    label->second.erase(live->id);
    if (label->second.empty()) by_label_.erase(label);
  }
  by_deadline_.erase({live->request.deadline, live->id});
  SetRunning(live, false);
  std::unique_ptr<LiveRequest> removed = std::move(found->second);
  by_id_.erase(found);
  return removed;
}

LiveRequest* RequestTable::Find(RequestId id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() ? found->second.get() : nullptr;
}

std::vector<LiveRequest*> RequestTable::FindLabel(
    const std::string& label) const {
  std::vector<LiveRequest*> found;
  if (const auto ids = by_label_.find(label); ids != by_label_.end()) {
    for (RequestId id : ids->second) found.push_back(Find(id));
  }
  return found;
}

std::vector<LiveRequest*> RequestTable::All() const {
  std::vector<LiveRequest*> all;
  for (const auto& [id, live] : by_id_) all.push_back(live.get());
  return all;
}

LiveRequest* RequestTable::FirstExpired(absl::Time now) const {
  return FirstDeadline() <= now ? Find(by_deadline_.begin()->second) : nullptr;
}

absl::Time RequestTable::FirstDeadline() const {
  return by_deadline_.empty() ? absl::InfiniteFuture()
                              : by_deadline_.begin()->first;
}

void RequestTable::SetRunning(LiveRequest* live, bool is_running) {
  if (live->is_running == is_running) return;
  live->is_running = is_running;
  const size_t label = live->strategy_label;
  if (label >= running_by_label_.size()) running_by_label_.resize(label + 1);
  const int change = is_running ? 1 : -1;
  num_running_ += change;
  running_by_label_[label] += change;
}

void RequestTable::SetLabel(LiveRequest* live, int strategy_label) {
  if (live->strategy_label == strategy_label) return;
  const bool is_running = live->is_running;
  SetRunning(live, false);
  live->strategy_label = strategy_label;
  SetRunning(live, is_running);
}

int RequestTable::num_running(int strategy_label) const {
  const size_t label = strategy_label;
  return label < running_by_label_.size() ? running_by_label_[label] : 0;
}

}  // namespace strata
