#include "tests/load/runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace strata {
namespace {

constexpr double kTickSeconds = 0.2;

v1::GenerateRequest MakeRequest(const LoadOptions& options,
                                const PlannedCall& plan, int index) {
  v1::GenerateRequest request;
  request.set_request_id(absl::StrCat(options.cache_salt, "-", index));
  if (plan.text.empty()) {
    request.mutable_tokens()->mutable_ids()->Assign(plan.tokens.begin(),
                                                    plan.tokens.end());
    request.set_tokens_only(true);
  } else {
    request.set_text(plan.text);
  }
  const Mix::Item& item = options.mix.items()[plan.strategy];
  request.mutable_strategy()->set_spec(item.spec);
  request.mutable_strategy()->set_floor(item.floor);
  request.set_cache_salt(options.cache_salt);
  request.set_bypass_prefix_cache(options.bypass_prefix_cache);
  request.mutable_sampling()->set_temperature(options.temperature);
  request.mutable_sampling()->set_seed(plan.seed);
  request.mutable_stopping()->set_max_tokens(plan.max_tokens);
  request.mutable_stopping()->set_ignore_eos(options.ignore_eos);
  return request;
}

}  // namespace

std::vector<CallRecord> Runner::Run(const ProgressSink& progress) {
  start_ = absl::Now();
  const int num_calls = static_cast<int>(plan_->calls.size());
  double next_tick = 0;
  bool stopping = false;
  while (!active_.empty() || (!stopping && HasMore())) {
    if (!stopping) StartDueCalls();
    CancelDueCalls();
    double wait_s = std::max(0.0, next_tick - Elapsed());
    if (!stopping) wait_s = UntilNextDue(wait_s);
    std::vector<int> ended;
    bool just_stopped = false;
    {
      absl::MutexLock lock(&mu_);
      const auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return !ended_.empty() || stopping_ != stopping;
      };
      mu_.AwaitWithTimeout(absl::Condition(&woken), absl::Seconds(wait_s));
      ended.swap(ended_);
      just_stopped = stopping_ && !stopping;
      stopping = stopping_;
    }
    if (just_stopped) {
      for (auto& [index, call] : active_) call->Cancel();
    }
    Collect(std::move(ended));
    if (Elapsed() >= next_tick) {
      next_tick = Elapsed() + kTickSeconds;
      progress({.elapsed_s = Elapsed(),
                .num_calls = num_calls,
                .duration_s = options_->duration_s,
                .num_started = next_,
                .num_done = static_cast<int>(records_.size()),
                .num_failed = num_failed_,
                .num_tokens = num_tokens_});
    }
  }
  std::vector<CallRecord> records;
  for (auto& [index, record] : records_) records.push_back(std::move(record));
  return records;
}

void Runner::Stop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

void Runner::OnCallDone(int index) {
  absl::MutexLock lock(&mu_);
  ended_.push_back(index);
}

double Runner::Elapsed() const {
  return absl::ToDoubleSeconds(absl::Now() - start_);
}

bool Runner::HasMore() const {
  return next_ < static_cast<int>(plan_->calls.size()) &&
         (options_->duration_s == 0 || Elapsed() < options_->duration_s);
}

bool Runner::HasPlace() const {
  return HasMore() &&
         (options_->concurrency == 0 ||
          static_cast<int>(active_.size()) < options_->concurrency);
}

void Runner::StartDueCalls() {
  while (HasPlace() && plan_->calls[next_].arrival_s <= Elapsed()) {
    StartCall(next_++);
  }
}

void Runner::StartCall(int index) {
  const PlannedCall& plan = plan_->calls[index];
  auto& call = active_[index];
  call.reset(new Call(index, connection_, &plan, this, start_));
  if (plan.cancel_after_s) {
    cancels_.push({Elapsed() + *plan.cancel_after_s, index});
  }
  call->Start(MakeRequest(*options_, plan, index), options_->timeout_s,
              options_->disturbances.switch_recompute);
  max_concurrent_ = std::max(max_concurrent_, static_cast<int>(active_.size()));
}

void Runner::CancelDueCalls() {
  while (!cancels_.empty() && cancels_.top().first <= Elapsed()) {
    const auto call = active_.find(cancels_.top().second);
    if (call != active_.end()) call->second->Cancel();
    cancels_.pop();
  }
}

void Runner::Collect(std::vector<int> ended) {
  for (int index : ended) {
    CallRecord record = active_[index]->record();
    active_.erase(index);
    // In a closed loop a call is meant to start when a place is free.
    if (options_->is_open_loop()) {
      record.intended_s = plan_->calls[index].arrival_s;
    }
    if (record.outcome() == CallRecord::Outcome::kFailed) ++num_failed_;
    records_[index] = std::move(record);
  }
}

double Runner::UntilNextDue(double longest) const {
  double due = Elapsed() + longest;
  if (HasPlace()) due = std::min(due, plan_->calls[next_].arrival_s);
  if (!cancels_.empty()) due = std::min(due, cancels_.top().first);
  return std::max(0.0, due - Elapsed());
}

}  // namespace strata
