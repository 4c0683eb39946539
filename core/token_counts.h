#ifndef CORE_TOKEN_COUNTS_H_
#define CORE_TOKEN_COUNTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/sampling.h"

namespace strata {

// The distinct tokens of a sequence and how often each was generated: what penalties are computed from.
class TokenCounts {
 public:
  void AddPrompt(std::span<const int32_t> tokens);
  void AddGenerated(int32_t token);

  std::span<const TokenCount> counts() const { return counts_; }  // in order of first appearance

 private:
  TokenCount& Find(int32_t token);

  std::vector<TokenCount> counts_;
  absl::flat_hash_map<int32_t, size_t> index_;  // of a token in counts_
};

}  // namespace strata

#endif  // CORE_TOKEN_COUNTS_H_
