#ifndef CORE_REQUEST_TABLE_H_
#define CORE_REQUEST_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/live_request.h"

namespace strata {

// The live requests: by id, by the client's label, by deadline.  Owns them. The
// engine thread's; no operation is linear in their number.
class RequestTable {
 public:
  LiveRequest* Add(std::unique_ptr<LiveRequest> live);
  // Takes it out; the caller lets it go.
  std::unique_ptr<LiveRequest> Remove(LiveRequest* live);

  // null: not live.
  LiveRequest* Find(RequestId id) const;
  std::vector<LiveRequest*> FindLabel(const std::string& label) const;
  std::vector<LiveRequest*> All() const;

  // The one whose deadline has passed longest ago, or null.
  LiveRequest* FirstExpired(absl::Time now) const;
  absl::Time FirstDeadline() const;  // InfiniteFuture where none

  // Whether the request is counted as running, and under which label.
  void SetRunning(LiveRequest* live, bool is_running);
  void SetLabel(LiveRequest* live, int strategy_label);

  int num_live() const { return static_cast<int>(by_id_.size()); }
  int num_running() const { return num_running_; }
  int num_running(int strategy_label) const;
  int num_waiting() const { return num_live() - num_running_; }

 private:
  absl::flat_hash_map<RequestId, std::unique_ptr<LiveRequest>> by_id_;
  absl::flat_hash_map<std::string, absl::btree_set<RequestId>> by_label_;
  absl::btree_set<std::pair<absl::Time, RequestId>>
      by_deadline_;                    // those with one
  std::vector<int> running_by_label_;  // by strategy label
  int num_running_ = 0;
};

}  // namespace strata

#endif  // CORE_REQUEST_TABLE_H_
