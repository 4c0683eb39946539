#include "tests/load/call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace strata {

Call::Call(int index, const Connection* connection, const PlannedCall* plan,
           Observer* observer, absl::Time run_start)
    : index_(index),
      connection_(connection),
      plan_(plan),
      observer_(observer),
      run_start_(run_start) {}

void Call::Start(v1::GenerateRequest request, double timeout_s,
                 bool switch_recompute) {
  request_ = std::move(request);
  switch_request_.set_request_id(request_.request_id());
  switch_request_.set_spec(plan_->switch_to);
  switch_request_.set_recompute(switch_recompute);
  record_.strategy = plan_->strategy;
  record_.is_slow = plan_->read_delay_s > 0;
  record_.max_tokens = plan_->max_tokens;
  record_.planned_prompt_tokens = static_cast<int64_t>(plan_->tokens.size());
  connection_->Authorize(&context_);
  SetDeadline(timeout_s);
  record_.start_s = Elapsed();
  record_.intended_s = record_.start_s;
  connection_->stub()->async()->Generate(&context_, &request_, this);
  // What goes on outside of reactions: see OnLastRead.
  if (record_.is_slow) AddHold();
  if (!plan_->switch_to.empty()) AddHold();
  StartRead(&response_);
  StartCall();
}

void Call::SetDeadline(double timeout_s) {
  record_.has_deadline = plan_->deadline_s.has_value();
  if (plan_->deadline_s) {
    timeout_s = timeout_s > 0 ? std::min(timeout_s, *plan_->deadline_s)
                              : *plan_->deadline_s;
  }
  if (timeout_s > 0) {
    context_.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(timeout_s)));
  }
}

void Call::Cancel() {
  cancel_requested_ = true;
  context_.TryCancel();
}

void Call::OnReadDone(bool ok) {
  if (!ok) {
    OnLastRead();
    return;
  }
  if (const int num_tokens = response_.token_ids_size(); num_tokens > 0) {
    record_.chunks.push_back({.at_s = Elapsed(), .num_tokens = num_tokens});
    record_.num_received += num_tokens;
    observer_->OnTokens(num_tokens);
  }
  if (response_.has_done()) Take(response_.done());
  ++num_responses_;
  if (num_responses_ == plan_->cancel_after_responses) Cancel();
  if (!plan_->switch_to.empty() &&
      num_responses_ == plan_->switch_after_responses) {
    SendSwitch();
  }
  ReadNext();
}

void Call::ReadNext() {
  if (!record_.is_slow) {
    StartRead(&response_);
    return;
  }
  alarms_.emplace_back().Set(
      absl::ToChronoTime(absl::Now() + absl::Seconds(plan_->read_delay_s)),
      [this](bool) { StartRead(&response_); });
}

// Neither a read nor a switch starts from here on.
void Call::OnLastRead() {
  record_.end_s = Elapsed();
  if (!plan_->switch_to.empty() && !switch_sent_) {
    record_.live_switch = CallRecord::LiveSwitch::kLate;
    RemoveHold();
  }
  if (record_.is_slow) RemoveHold();
}

void Call::SendSwitch() {
  switch_sent_ = true;
  connection_->Authorize(&switch_context_);
  switch_context_.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  connection_->admin()->async()->SwitchStrategy(
      &switch_context_, &switch_request_, &switch_response_,
      [this](grpc::Status status) { OnSwitched(std::move(status)); });
}

void Call::OnSwitched(grpc::Status status) {
  using LiveSwitch = CallRecord::LiveSwitch;
  const bool late = status.error_code() == grpc::StatusCode::NOT_FOUND;
  record_.live_switch = status.ok() ? LiveSwitch::kDone
                        : late      ? LiveSwitch::kLate
                                    : LiveSwitch::kFailed;
  record_.live_switch_status = std::move(status);
  RemoveHold();
}

void Call::OnDone(const grpc::Status& status) {
  record_.status = status;
  record_.cancel_requested = cancel_requested_;
  // The observer may destroy this at once, so nothing of it is used after.
  observer_->OnCallDone(index_);
}

double Call::Elapsed() const {
  return absl::ToDoubleSeconds(absl::Now() - run_start_);
}

void Call::Take(const v1::Done& done) {
  const v1::Usage& usage = done.usage();
  record_.has_usage = true;
  record_.canonical = usage.strategy();
  record_.prompt_tokens = usage.prompt_tokens();
  record_.cached_tokens = usage.cached_tokens();
  record_.generated_tokens = usage.generated_tokens();
  record_.kv_bytes = usage.kv_bytes();
  record_.kv_bytes_full = usage.kv_bytes_full();
  record_.num_switches = usage.switches_size();
  for (const v1::SwitchRecord& change : usage.switches()) {
    record_.freed_bytes += change.freed_bytes();
  }
  record_.num_preemptions = static_cast<int>(usage.preemptions());
}

}  // namespace strata
