#ifndef CORE_STRATEGY_REGISTRY_H_
#define CORE_STRATEGY_REGISTRY_H_

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sharing_strategy.h"

namespace strata {

// The names under which strategies are known, the default for requests that name none, and the bounded set of labels
// that metrics count strategies under.
//
// Thread-safe.
class StrategyRegistry {
 public:
  struct Named {
    std::string name;
    SharingStrategy strategy;
  };

  static constexpr int kMaxLabels = 80;  // bounds the series of a metric, however often a name changes its meaning

  // REQUIRES: default_strategy has num_layers layers.
  StrategyRegistry(int num_layers, SharingStrategy default_strategy);

  // A registered name, a spec, or "" for the default.  INVALID_ARGUMENT for anything else.
  absl::StatusOr<SharingStrategy> Resolve(std::string_view spec) const;

  // Names are [a-z][a-z0-9_-]{0,31}, not "full"; a known name is given its new meaning.  `spec` may be a name known so
  // far.  INVALID_ARGUMENT for what is not allowed, FAILED_PRECONDITION beyond 64 names.
  absl::Status Register(std::string_view name, std::string_view spec);
  void SetDefault(SharingStrategy strategy);  // REQUIRES: of num_layers() layers

  SharingStrategy default_strategy() const;
  std::vector<Named> registered() const;  // in order of registration
  int num_layers() const { return num_layers_; }

  // Index of the metric label that `strategy` is counted under: its canonical form if it is, or was, the default or
  // registered, else 0, "other".  Labels are never taken back, so indices stay; once there are kMaxLabels, further
  // strategies are counted under "other".
  int LabelOf(const SharingStrategy& strategy) const;
  std::vector<std::string> labels() const;  // [0] == "other"

 private:
  void AddLabel(const SharingStrategy& strategy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int num_layers_;
  // Not absl::Mutex: ThreadSanitizer cannot see into Debian's, which is not instrumented.
  mutable std::mutex mu_;
  SharingStrategy default_ ABSL_GUARDED_BY(mu_);
  std::vector<Named> registered_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> labels_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // CORE_STRATEGY_REGISTRY_H_
