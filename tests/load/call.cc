#include "tests/load/call.h"

#include <utility>

#include "absl/time/clock.h"

namespace strata {

Call::Call(int index, const Connection* connection, Observer* observer,
           absl::Time run_start)
    : index_(index),
      connection_(connection),
      observer_(observer),
      run_start_(run_start) {}

void Call::Start(const PlannedCall& plan, v1::GenerateRequest request,
                 double timeout_s) {
  request_ = std::move(request);
  cancel_after_responses_ = plan.cancel_after_responses;
  record_.strategy = plan.strategy;
  connection_->Authorize(&context_);
  if (timeout_s > 0) {
    context_.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(timeout_s)));
  }
  record_.start_s = Elapsed();
  record_.intended_s = record_.start_s;
  connection_->stub()->async()->Generate(&context_, &request_, this);
  StartRead(&response_);
  StartCall();
}

void Call::Cancel() {
  cancel_requested_ = true;
  context_.TryCancel();
}

void Call::OnReadDone(bool ok) {
  if (!ok) return;
  if (const int num_tokens = response_.token_ids_size(); num_tokens > 0) {
    record_.chunks.push_back({.at_s = Elapsed(), .num_tokens = num_tokens});
    record_.num_received += num_tokens;
    observer_->OnTokens(num_tokens);
  }
  if (response_.has_done()) Take(response_.done());
  if (++num_responses_ == cancel_after_responses_) Cancel();
  StartRead(&response_);
}

void Call::OnDone(const grpc::Status& status) {
  record_.status = status;
  record_.end_s = Elapsed();
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
