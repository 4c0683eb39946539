#ifndef SERVER_VLLM_GENERATE_ANSWER_H_
#define SERVER_VLLM_GENERATE_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/request.h"
#include "core/token_sink.h"
#include "server/vllm/proto/vllm_engine.pb.h"

namespace strata::vllm {

// What the engine gave to a request, and the responses that tell its client:
// for each index chunks, where they are asked for, then one `complete`.  Chunks
// wait in no queue: what comes while none can be written is in the next one.
//
// Not thread-safe.
class GenerateAnswer {
 public:
  struct Options {
    bool is_streamed = false;
    bool has_prompt_logprobs = false;
  };
  GenerateAnswer() = default;
  explicit GenerateAnswer(const Options& options)
      : options_(options), is_waiting_(options.has_prompt_logprobs) {}

  // The request as it was admitted; `eos_ids`: those of the model.
  void Admit(const Request& request, const std::vector<int32_t>& eos_ids);
  // REQUIRES: Admit.
  void Add(SequenceDelta delta);
  // There is no news until then, where they are asked for: one for each token
  // of the prompt but the first; or absent, as they will not come.
  void SetPromptLogprobs(std::optional<std::vector<SampledToken>> logprobs);

  bool HasNews() const { return !is_waiting_ && !ready_.empty(); }
  // REQUIRES: HasNews().
  void Take(::vllm::grpc::engine::GenerateResponse* response);

  // Its client aborted it.
  bool is_aborted() const { return is_aborted_; }
  // Kept where its log-probabilities are asked for.
  const std::vector<int32_t>& prompt() const { return prompt_; }

 private:
  struct Sequence {
    std::vector<int32_t> tokens;         // all
    size_t num_told = 0;                 // of them, in chunks
    std::vector<SampledToken> logprobs;  // of those that were not told
    std::optional<SequenceEnd> end;
    bool is_ready = false;
    bool has_begun = false;  // a response was given
  };

  // Puts it among the ready ones if it has news.
  void Update(int index);
  bool HasChunk(const Sequence& sequence) const {
    return options_.is_streamed && sequence.num_told < sequence.tokens.size();
  }
  template <typename Message>
  void Begin(int index, Message* message);
  void TakeChunk(int index, ::vllm::grpc::engine::GenerateStreamChunk* chunk);
  void TakeComplete(int index, ::vllm::grpc::engine::GenerateComplete* message);
  void AddOutputLogprobs(size_t count, Sequence* sequence,
                         ::vllm::grpc::engine::OutputLogProbs* message) const;
  void AddInputLogprobs(::vllm::grpc::engine::InputLogProbs* message) const;

  Options options_;
  uint32_t num_prompt_tokens_ = 0;
  std::vector<int32_t> prompt_;
  std::vector<int32_t> stop_tokens_;  // sorted: ends that are no end of text
  std::optional<int> num_top_logprobs_;
  bool is_waiting_ = false;  // for the log-probabilities of the prompt
  std::optional<std::vector<SampledToken>> prompt_logprobs_;
  bool is_aborted_ = false;
  std::vector<Sequence> sequences_;
  std::deque<int> ready_;  // indices with news
};

}  // namespace strata::vllm

#endif  // SERVER_VLLM_GENERATE_ANSWER_H_
