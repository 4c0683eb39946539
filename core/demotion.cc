#include "core/demotion.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace strata {
namespace {

bool CanDemote(const Sequence& sequence) {
  const auto& floor = sequence.request.floor;
  return floor.has_value() && !sequence.is_replaying() &&
         !sequence.is_at_end() &&
         !(*floor == sequence.strategy) &&
         floor->LeadersSubsetOf(sequence.strategy);
}

// Pages that `path` allocates less before position `end` than the sequence's
// own.
int64_t SavedAhead(const Sequence& sequence, const StrategyPath& path,
                   int64_t end, int page_tokens) {
  const int64_t num_blocks = sequence.pages.num_blocks();
  return sequence.path.PagesAhead(num_blocks, end, page_tokens) -
         path.PagesAhead(num_blocks, end, page_tokens);
}

int64_t SavingOf(const Sequence& sequence, int page_tokens) {
  const Request& request = sequence.request;
  StrategyPath path = sequence.path;
  path.Insert(sequence.num_cached, *request.floor, request.floor_label,
              SwitchCause::kPressure);
  while (path.next_position() <= sequence.num_cached) path.Advance();
  // A planned switch that falls away may have saved more.
  if (SavedAhead(sequence, path, request.MaxPositions(), page_tokens) < 0) {
    return 0;
  }
  const int64_t dropped =
      sequence.strategy.num_leaders() - request.floor->num_leaders();
  return dropped * sequence.pages.num_blocks() +
         SavedAhead(sequence, path, sequence.promised_end, page_tokens);
}

}  // namespace

std::vector<Demotion> FindDemotions(const std::vector<Sequence*>& running,
                                    int page_tokens) {
  std::vector<Demotion> demotions;
  absl::flat_hash_map<const Request*, size_t> index_of;
  for (size_t i = running.size(); i-- > 0;) {
    Sequence* const sequence = running[i];
    if (!CanDemote(*sequence)) continue;
    const int64_t saving = SavingOf(*sequence, page_tokens);
    if (saving == 0) continue;
    const Request* const request = &sequence->request;
    const auto [it, is_new] = index_of.emplace(request, demotions.size());
    if (is_new) demotions.push_back({request, {}, 0});
    Demotion& demotion = demotions[it->second];
    demotion.sequences.push_back(sequence);
    demotion.saving += saving;
  }
  std::stable_sort(
      demotions.begin(), demotions.end(),
      [](const Demotion& a, const Demotion& b) { return a.saving > b.saving; });
  return demotions;
}

int64_t SavingAtFloor(const Sequence& sequence, int64_t end, int page_tokens) {
  const Request& request = sequence.request;
  if (!request.floor.has_value() || sequence.max_cached > 0) return 0;
  if (*request.floor == sequence.strategy) return 0;
  if (!request.floor->LeadersSubsetOf(sequence.strategy)) return 0;
  const StrategyPath at_floor(request, /*at_floor=*/true);
  if (SavedAhead(sequence, at_floor, request.MaxPositions(), page_tokens) < 0) {
    return 0;
  }
  return SavedAhead(sequence, at_floor, end, page_tokens);
}

}  // namespace strata
