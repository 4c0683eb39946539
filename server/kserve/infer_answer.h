#ifndef SERVER_KSERVE_INFER_ANSWER_H_
#define SERVER_KSERVE_INFER_ANSWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/request.h"
#include "core/text/tokenizer.h"
#include "core/token_sink.h"
#include "server/kserve/infer_request.h"
#include "server/kserve/proto/grpc_service.pb.h"

namespace strata::kserve {

// What the engine gave to a request and its client was not told yet, and the
// responses that tell it.  Not thread-safe.
class InferAnswer {
 public:
  // What one sequence has of it.
  struct Part {
    std::string text;
    uint32_t num_tokens = 0;
    std::vector<SampledToken> logprobs;
    // Of all tokens so far, told or not.
    double cumulative_logprob = 0;
    std::string finish_reason = "None";  // vLLM's word for none yet
  };

  InferAnswer() = default;
  // Of a request that was admitted.
  explicit InferAnswer(const Request& request)
      : num_input_tokens_(request.prompt.size()),
        parts_(request.num_sequences) {}

  void Add(SequenceDelta delta);
  bool has_news() const { return has_news_; }
  // All sequences have ended.
  bool is_whole() const {
    return !parts_.empty() && num_ended_ == parts_.size();
  }
  uint32_t num_input_tokens() const { return num_input_tokens_; }

  // The news, one part for each sequence; there are none then.
  std::vector<Part> Take();

 private:
  uint32_t num_input_tokens_ = 0;
  std::vector<Part> parts_;
  size_t num_ended_ = 0;
  bool has_news_ = false;
};

// Says whose response it is.
void NameResponse(const std::string& model, const std::string& request_id,
                  inference::ModelInferResponse* response);

// Adds the outputs that the request asks for, with raw contents.  `echo` comes
// before each text.  `tokenizer` may be null.
void AddOutputs(const InferRequest& request,
                const std::vector<InferAnswer::Part>& parts,
                uint32_t num_input_tokens, const std::string& echo,
                const Tokenizer* tokenizer,
                inference::ModelInferResponse* response);

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_INFER_ANSWER_H_
