#include "core/token_counts.h"

namespace strata {

void TokenCounts::AddPrompt(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) Find(token);
}

void TokenCounts::AddGenerated(int32_t token) { ++Find(token).generated; }

TokenCount& TokenCounts::Find(int32_t token) {
  const auto [it, is_new] = index_.try_emplace(token, counts_.size());
  if (is_new) counts_.push_back({.token = token, .generated = 0});
  return counts_[it->second];
}

}  // namespace strata
