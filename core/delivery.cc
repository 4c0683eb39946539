#include "core/delivery.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace strata {
namespace {

Metrics::Finish ToFinish(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return Metrics::Finish::kStop;
    case FinishReason::kLength:
      return Metrics::Finish::kLength;
    case FinishReason::kAborted:
      return Metrics::Finish::kAbort;
  }
  return Metrics::Finish::kError;
}

Metrics::SwitchCause ToSwitchCause(SwitchCause cause) {
  switch (cause) {
    case SwitchCause::kClient:
      return Metrics::SwitchCause::kClient;
    case SwitchCause::kPlanned:
      return Metrics::SwitchCause::kPlanned;
    case SwitchCause::kPressure:
      return Metrics::SwitchCause::kPressure;
  }
  return Metrics::SwitchCause::kClient;
}

}  // namespace

Delivery::Delivery(Scheduler* scheduler, RequestTable* table, LoadMeter* meter,
                   Metrics* metrics, int64_t page_bytes)
    : scheduler_(scheduler),
      table_(table),
      meter_(meter),
      metrics_(metrics),
      page_bytes_(page_bytes) {}

void Delivery::Deliver(const BatchPlan& plan,
                       std::span<const SampledToken> sampled, absl::Time now) {
  size_t next = 0;
  for (const BatchPlan::Chunk& chunk : plan.chunks) {
    const auto rows = sampled.subspan(next, chunk.num_wanted);
    next += chunk.num_wanted;
    // It ended while the step was in flight, or another sample of its request
    // has failed: the rows are wasted.
    if (chunk.sequence->state == Sequence::State::kEnded || rows.empty()) {
      continue;
    }
    if (chunk.sequence->request.kind == Request::Kind::kScore) {
      DeliverScores(chunk.sequence, rows, now);
    } else {
      DeliverToken(chunk.sequence, rows[0], now);
    }
  }
}

void Delivery::DeliverToken(Sequence* sequence, const SampledToken& sampled,
                            absl::Time now) {
  LiveRequest* live = sequence->live;
  if (!sampled.finite) {
    Fail(live, absl::InternalError("the model gave logits that are not finite"),
         Metrics::Finish::kError, now);
    return;
  }
  CountPrompt(live);
  CountToken(sequence, now);
  sequence->Append(sampled.token);
  if (sequence->request.sampling.has_penalties()) {
    sequence->counts.AddGenerated(sampled.token);
  }
  SequenceOutput::Result result = sequence->output.Append(sampled.token);
  SequenceDelta delta{.index = sequence->index,
                      .text = std::move(result.text),
                      .tokens = {sampled.token}};
  if (sequence->request.num_top_logprobs.has_value()) {
    delta.logprobs.push_back(sampled);
  }
  if (sequence->index == 0 && sequence->num_generated() == 1) {
    ReleaseSamples(sequence);
  }
  if (result.finish.has_value()) {
    EndSequence(sequence, std::move(delta), *result.finish,
                std::move(result.matched_stop), now);
  } else {
    live->sink->OnDelta(std::move(delta));
  }
}

void Delivery::DeliverScores(Sequence* sequence,
                             std::span<const SampledToken> sampled,
                             absl::Time now) {
  LiveRequest* live = sequence->live;
  SequenceDelta delta{.index = sequence->index};
  for (const SampledToken& token : sampled) {
    if (!token.finite) {
      Fail(live,
           absl::InternalError("the model gave logits that are not finite"),
           Metrics::Finish::kError, now);
      return;
    }
    delta.tokens.push_back(token.token);
    delta.logprobs.push_back(token);
  }
  if (sequence->num_pending() > 0) {
    live->sink->OnDelta(std::move(delta));
    return;
  }
  CountPrompt(live);
  EndSequence(sequence, std::move(delta), FinishReason::kStop, "", now);
}

void Delivery::Record(std::span<const SchedulerEvent> events) {
  for (const SchedulerEvent& event : events) {
    switch (event.kind) {
      case SchedulerEvent::Kind::kAdmitted:
        RecordAdmission(event.sequence);
        break;
      case SchedulerEvent::Kind::kPreempted:
        metrics_->RecordPreemption();
        CountIfWaiting(event.sequence->live);
        break;
      case SchedulerEvent::Kind::kSwitched:
        RecordSwitch(event);
        break;
    }
  }
}

void Delivery::RecordAdmission(Sequence* sequence) {
  LiveRequest* const live = sequence->live;
  table_->SetRunning(live, true);
  table_->SetLabel(live, sequence->strategy_label);
  const Request& request = live->request;
  const bool is_first = sequence->num_preemptions == 0;
  if (is_first && sequence->switches.empty() && request.floor.has_value() &&
      sequence->path.first() == *request.floor &&
      !(request.strategy == *request.floor)) {
    metrics_->RecordFloorStart();
  }
  if (live->looked_up || request.bypass_prefix_cache ||
      request.kind == Request::Kind::kScore) {
    return;
  }
  live->looked_up = true;
  metrics_->RecordPrefixLookup(live->strategy_label,
                               static_cast<int64_t>(request.prompt.size()),
                               sequence->num_reused);
}

void Delivery::CountIfWaiting(LiveRequest* live) {
  for (const auto& sequence : live->sequences) {
    if (sequence->state == Sequence::State::kRunning) return;
  }
  table_->SetRunning(live, false);
}

void Delivery::RecordSwitch(const SchedulerEvent& event) {
  Sequence* const sequence = event.sequence;
  const int64_t freed_bytes = event.freed_pages * page_bytes_;
  const int64_t after =
      std::max<int64_t>(0, event.position - sequence->num_prompt());
  sequence->switches.push_back({.after_generated = static_cast<int>(after),
                                .strategy = event.strategy,
                                .freed_bytes = freed_bytes});
  metrics_->RecordSwitch(ToSwitchCause(event.cause), freed_bytes);
  table_->SetLabel(sequence->live, sequence->strategy_label);
  CountIfWaiting(sequence->live);  // it may have to run all again
}

void Delivery::EndEmpty(LiveRequest* live, absl::Time now) {
  CountPrompt(live);
  EndSequence(live->sequences[0].get(), {}, FinishReason::kStop, "", now);
}

void Delivery::CountPrompt(LiveRequest* live) {
  if (live->prompt_run) return;
  live->prompt_run = true;
  metrics_->AddPromptTokens(live->strategy_label,
                            static_cast<int64_t>(live->request.prompt.size()));
}

void Delivery::CountToken(Sequence* sequence, absl::Time now) {
  LiveRequest* live = sequence->live;
  const int label = sequence->strategy_label;
  meter_->AddGenerated(1, now);
  metrics_->AddGeneratedTokens(label, 1);
  if (live->num_generated++ == 0) {
    metrics_->RecordQueueTime(label, sequence->first_scheduled - live->arrival);
    metrics_->RecordFirstToken(label, now - live->arrival,
                               now - sequence->first_scheduled);
  }
  if (sequence->num_generated() == 0) {
    sequence->first_token = now;
  } else {
    metrics_->RecordInterToken(label, now - sequence->last_token);
  }
  sequence->last_token = now;
}

void Delivery::ReleaseSamples(Sequence* first) {
  for (const auto& sample : first->live->sequences) {
    if (sample->state == Sequence::State::kHeld) {
      scheduler_->Release(sample.get());
    }
  }
}

void Delivery::EndSequence(Sequence* sequence, SequenceDelta delta,
                           FinishReason reason, std::string matched_stop,
                           absl::Time now) {
  LiveRequest* live = sequence->live;
  delta.index = sequence->index;
  delta.end = SequenceEnd{.reason = reason,
                          .matched_stop = std::move(matched_stop),
                          .usage = UsageOf(*sequence)};
  scheduler_->Remove(sequence);
  live->sink->OnDelta(std::move(delta));
  if (--live->num_live == 0) {
    EndRequest(live, absl::OkStatus(), ToFinish(reason), now);
  }
}

void Delivery::Abort(LiveRequest* live, absl::Time now) {
  for (const auto& sequence : live->sequences) {
    if (sequence->state == Sequence::State::kEnded) continue;
    SequenceDelta delta;
    delta.text = sequence->output.Flush();
    EndSequence(sequence.get(), std::move(delta), FinishReason::kAborted, "",
                now);
  }
}

void Delivery::Fail(LiveRequest* live, const absl::Status& status,
                    Metrics::Finish finish, absl::Time now) {
  for (const auto& sequence : live->sequences) {
    if (sequence->state != Sequence::State::kEnded) {
      scheduler_->Remove(sequence.get());
    }
  }
  EndRequest(live, status, finish, now);
}

void Delivery::EndRequest(LiveRequest* live, const absl::Status& status,
                          Metrics::Finish finish, absl::Time now) {
  const Request& request = live->request;
  const Sequence& first = *live->sequences[0];
  metrics_->RecordRequest(
      live->strategy_label,
      {.finish = finish,
       .end_to_end = now - live->arrival,
       .decode = live->num_generated > 0 ? first.last_token - first.first_token
                                         : absl::ZeroDuration(),
       .prompt_tokens = static_cast<int>(request.prompt.size()),
       .generated_tokens = live->num_generated,
       .max_tokens = request.stopping.max_tokens,
       .num_sequences = request.num_sequences});
  ended_.push_back(table_->Remove(live));
  live->sink->OnEnd(status);
}

Usage Delivery::UsageOf(const Sequence& sequence) const {
  const auto seconds = [](absl::Time from, absl::Time to) {
    return from == absl::InfinitePast() || to == absl::InfinitePast()
               ? 0.0
               : absl::ToDoubleSeconds(to - from);
  };
  return {.prompt_tokens = sequence.num_prompt(),
          .cached_tokens = sequence.num_reused,
          .generated_tokens = sequence.num_generated(),
          .kv_bytes = sequence.max_held * page_bytes_,
          .kv_bytes_full = sequence.max_held_full * page_bytes_,
          .strategy = sequence.path.latest().canonical(),
          .switches = sequence.switches,
          .preemptions = sequence.num_preemptions,
          .queue_seconds =
              seconds(sequence.live->arrival, sequence.first_scheduled),
          .prefill_seconds =
              seconds(sequence.first_scheduled, sequence.first_token),
          .decode_seconds = seconds(sequence.first_token, sequence.last_token)};
}

}  // namespace strata
