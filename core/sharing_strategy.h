#ifndef CORE_SHARING_STRATEGY_H_
#define CORE_SHARING_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// Which layers keep a KV cache, and which cache each layer reads: a map source[l] <= l with
// source[source[l]] == source[l].  Leaders are the fixed points; layer 0 is one.  (Equation 3.2 of
// "Stochastic KV Routing", arXiv 2604.22782, counted from 0 and generalised to any earlier leader.)
//
// An immutable value, cheap to copy; thread-safe.  Equal maps compare equal and have equal canonical text, however they
// were written.
class SharingStrategy {
 public:
  // Every layer its own.  REQUIRES: num_layers > 0.
  static SharingStrategy Full(int num_layers);

  // Parses the forms of message Strategy in proto/strata.proto, names excepted: full, every=N, keep=R, prefix=K,
  // leaders=..., sources=....  INVALID_ARGUMENT says what is wrong, naming the layer where there is one, and what is
  // allowed.
  static absl::StatusOr<SharingStrategy> Parse(std::string_view spec, int num_layers);

  int num_layers() const { return static_cast<int>(rep_->source.size()); }
  int source(int layer) const { return rep_->source[layer]; }
  bool is_leader(int layer) const { return rep_->source[layer] == layer; }
  int num_leaders() const { return rep_->num_leaders; }
  int last_leader() const { return rep_->last_leader; }
  // The rank, among the leaders, of the one that `layer` reads: its row in a PageTable.
  int slot(int layer) const { return rep_->slot[layer]; }
  std::span<const int32_t> sources() const { return rep_->source; }
  std::span<const int32_t> slots() const { return rep_->slot; }

  // The shortest text that gives this map: full, every=N, prefix=K, leaders=..., sources=... in this order of
  // preference.
  const std::string& canonical() const { return rep_->canonical; }

  // Whether every leader of this one leads in `other` too.
  bool LeadersSubsetOf(const SharingStrategy& other) const;

  // Bytes that one position of one sequence holds.  `leader_bytes`: K and V of one layer.
  int64_t KvBytesPerToken(int64_t leader_bytes) const { return num_leaders() * leader_bytes; }

  friend bool operator==(const SharingStrategy& a, const SharingStrategy& b) {
    return a.rep_ == b.rep_ || a.rep_->source == b.rep_->source;
  }

 private:
  struct Rep {
    std::vector<int32_t> source;  // [num_layers]
    std::vector<int32_t> slot;    // [num_layers]
    int num_leaders = 0;
    int last_leader = 0;
    std::string canonical;
  };
  // REQUIRES: `source` is a valid map.
  explicit SharingStrategy(std::vector<int32_t> source);
  std::shared_ptr<const Rep> rep_;
};

}  // namespace strata

#endif  // CORE_SHARING_STRATEGY_H_
