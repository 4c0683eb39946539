#include "tests/core/trajectory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strata {

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 29)) * 0x94d049bb133111eb;
  return x ^ (x >> 32);
}

Trajectory::Trajectory(const Request& request, uint64_t space)
    : request_(&request),
      space_(space),
      num_layers_(request.strategy.num_layers()),
      now_(request.strategy) {
  PlanSwitches();
}

void Trajectory::PlanSwitches() {
  planned_.clear();
  for (const PlannedSwitch& planned : request_->switches) {
    const int64_t position =
        static_cast<int64_t>(request_->prompt.size()) + planned.after_generated;
    if (position <= length() && length() > 0) continue;
    planned_.push_back({position, planned.strategy});
  }
  DropGrowing();
}

void Trajectory::Extend(const std::vector<int32_t>& tokens, int length) {
  while (this->length() < length) {
    const int position = this->length();
    if (!planned_.empty()) {
      ASSERT_GT(planned_[0].first, position) << "a planned switch was missed";
    }
    int agreeing = position == 0 ? num_layers_ : agreeing_.back();
    uint64_t below = 1;
    for (int layer = 0; layer <= num_layers_; ++layer) {
      const uint64_t before =
          position == 0 ? Mix(space_, layer) : ContentAt(position - 1, layer);
      contents_.push_back(Mix(Mix(before, tokens[position]), below));
      if (layer == num_layers_) break;
      const int source = now_.source(layer);
      below = Mix(below, source);
      if (position > 0 && source != strategies_[0].source(layer)) {
        agreeing = std::min(agreeing, layer);
      }
    }
    agreeing_.push_back(agreeing);
    strategies_.push_back(now_);
  }
}

const SharingStrategy& Trajectory::StrategyAt(int64_t position) const {
  if (position < length()) return strategies_[position];
  const SharingStrategy* strategy = &now_;
  for (const auto& [begin, planned] : planned_) {
    if (begin <= position) strategy = &planned;
  }
  return *strategy;
}

int64_t Trajectory::EndOfStrategy(int64_t begin, int64_t end) const {
  int64_t position = begin;
  while (position < end && StrategyAt(position) == StrategyAt(begin)) {
    ++position;
  }
  return position;
}

void Trajectory::Switch(const SharingStrategy& strategy) {
  std::erase_if(planned_, [&](const auto& p) { return p.first <= length(); });
  SetNow(strategy);
  DropGrowing();
}

void Trajectory::SetNow(const SharingStrategy& strategy) {
  has_detour_ |= length() > 0 && switched_at_ == length();
  switched_at_ = length();
  now_ = strategy;
}

void Trajectory::Restart(const std::vector<int32_t>& tokens,
                         const SharingStrategy& strategy) {
  const int rerun = length();
  now_ = strategy;
  PlanSwitches();
  strategies_.clear();
  contents_.clear();
  agreeing_.clear();
  has_detour_ = false;
  switched_at_ = 0;
  Extend(tokens, rerun);
}

void Trajectory::StartAtFloor() {
  ASSERT_EQ(length(), 0);
  now_ = *request_->floor;
  PlanSwitches();
}

bool Trajectory::TakePlanned(int64_t position, const std::string& canonical) {
  if (planned_.empty()) return false;
  if (planned_[0].first != position || position > length()) return false;
  if (planned_[0].second.canonical() != canonical) return false;
  SetNow(planned_[0].second);
  planned_.erase(planned_.begin());
  return true;
}

int64_t Trajectory::PagesAhead(int64_t num_blocks, int64_t end,
                               int page_tokens) const {
  int64_t num_pages = 0;
  for (int64_t p = num_blocks * page_tokens; p < end; p += page_tokens) {
    num_pages += StrategyAt(p).num_leaders();
  }
  return num_pages;
}

void Trajectory::DropGrowing() {
  std::vector<std::pair<int64_t, SharingStrategy>> kept;
  for (const auto& step : planned_) {
    const SharingStrategy& before = kept.empty() ? now_ : kept.back().second;
    if (step.second == before || !step.second.LeadersSubsetOf(before)) continue;
    kept.push_back(step);
  }
  planned_ = std::move(kept);
}

}  // namespace strata
