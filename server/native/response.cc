#include "server/native/response.h"

#include <utility>

#include "base/check.h"

namespace strata {
namespace {

v1::FinishReason ToReason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::STOP;
    case FinishReason::kLength:
      return v1::LENGTH;
    case FinishReason::kAborted:
      return v1::ABORTED;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

}  // namespace

v1::GenerateResponse ToResponse(const SequenceDelta& delta) {
  v1::GenerateResponse response;
  response.set_index(delta.index);
  response.set_text(delta.text);
  response.mutable_token_ids()->Add(delta.tokens.begin(), delta.tokens.end());
  for (const SampledToken& token : delta.logprobs) {
    ToLogprobs(token, response.add_logprobs());
  }
  if (delta.end.has_value()) {
    v1::Done* done = response.mutable_done();
    done->set_reason(ToReason(delta.end->reason));
    done->set_matched_stop(delta.end->matched_stop);
    ToUsage(delta.end->usage, done->mutable_usage());
  }
  return response;
}

void ToLogprobs(const SampledToken& token, v1::Logprobs* message) {
  message->mutable_chosen()->set_token_id(token.token);
  message->mutable_chosen()->set_logprob(token.logprob);
  for (int i = 0; i < token.num_top; ++i) {
    v1::TokenLogprob* top = message->add_top();
    top->set_token_id(token.top[i].token);
    top->set_logprob(token.top[i].logprob);
  }
}

void ToUsage(const Usage& usage, v1::Usage* message) {
  message->set_prompt_tokens(usage.prompt_tokens);
  message->set_cached_tokens(usage.cached_tokens);
  message->set_generated_tokens(usage.generated_tokens);
  message->set_kv_bytes(usage.kv_bytes);
  message->set_kv_bytes_full(usage.kv_bytes_full);
  message->set_strategy(usage.strategy);
  for (const SwitchRecord& record : usage.switches) {
    v1::SwitchRecord* switched = message->add_switches();
    switched->set_after_generated(record.after_generated);
    switched->set_strategy(record.strategy);
    switched->set_freed_bytes(record.freed_bytes);
  }
  message->set_preemptions(usage.preemptions);
  message->set_queue_seconds(usage.queue_seconds);
  message->set_prefill_seconds(usage.prefill_seconds);
  message->set_decode_seconds(usage.decode_seconds);
}

void Append(SequenceDelta delta, SequenceDelta* into) {
  STRATA_CHECK(delta.index == into->index && !into->end.has_value());
  into->text += delta.text;
  into->tokens.insert(into->tokens.end(), delta.tokens.begin(),
                      delta.tokens.end());
  into->logprobs.insert(into->logprobs.end(), delta.logprobs.begin(),
                        delta.logprobs.end());
  into->end = std::move(delta.end);
}

}  // namespace strata
