#ifndef TESTS_SERVER_VLLM_MESSAGES_H_
#define TESTS_SERVER_VLLM_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/token_sink.h"
#include "server/vllm/proto/vllm_engine.pb.h"

namespace strata::vllm {

inline ::vllm::grpc::engine::GenerateRequest TokensMessage(
    const std::vector<int32_t>& ids) {
  ::vllm::grpc::engine::GenerateRequest message;
  message.mutable_tokenized()->mutable_input_ids()->Add(ids.begin(), ids.end());
  return message;
}

// One step of a sequence; with log-probabilities -token, and as many of the
// best, -1, -2, ... of tokens 101, 102, ...
inline SequenceDelta Delta(int index, const std::vector<int32_t>& tokens,
                           int num_top = -1) {
  SequenceDelta delta{.index = index,
                      .tokens = {tokens.begin(), tokens.end()}};
  if (num_top < 0) return delta;
  for (const int32_t token : tokens) {
    SampledToken sampled;
    sampled.token = token;
    sampled.logprob = -static_cast<float>(token);
    sampled.num_top = num_top;
    for (int i = 0; i < num_top; ++i) {
      sampled.top[i] = {101 + i, -1.0f - i};
    }
    delta.logprobs.push_back(sampled);
  }
  return delta;
}

inline SequenceDelta End(SequenceDelta delta, FinishReason reason,
                         const std::string& matched_stop = "") {
  delta.end = SequenceEnd{.reason = reason,
                          .matched_stop = matched_stop,
                          .usage = {.cached_tokens = 7}};
  return delta;
}

}  // namespace strata::vllm

#endif  // TESTS_SERVER_VLLM_MESSAGES_H_
