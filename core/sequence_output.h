#ifndef CORE_SEQUENCE_OUTPUT_H_
#define CORE_SEQUENCE_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "core/text/stop_matcher.h"
#include "core/text/tokenizer.h"
#include "core/text/utf8_stream.h"
#include "core/token_sink.h"

namespace strata {

// Turns the tokens of one sequence into text, and says when it ends: end tokens, stop tokens, stop strings, max_tokens.
// Text is held back while it could be the beginning of a stop string or of a character.
//
// Precedence within one token: an end or stop token, then a stop string, then max_tokens.  A stop string that is
// completed by one of the first min_tokens tokens does not end the text, which goes on (as in vLLM).
class SequenceOutput {
 public:
  // `tokenizer` may be null (a model that serves tokens only): no text and no stop strings then.
  // `tokenizer`, `request` and `eos_ids` outlive this.
  SequenceOutput(const Tokenizer* tokenizer, const Request& request,
                 const std::vector<int32_t>& eos_ids);

  struct Result {
    std::string text;  // what became certain with this token
    std::optional<FinishReason> finish;
    std::string matched_stop;
  };
  // REQUIRES: no earlier result had `finish`.
  Result Append(int32_t token);

  // The end without a token (aborted): what was held back.
  std::string Flush();

  // Tokens that may not be sampled after `num_generated` others: those that would end the text before min_tokens.
  std::span<const int32_t> BannedAfter(int num_generated) const;

 private:
  std::string_view Bytes(int32_t token) const;
  // Appends to *text what became certain with the token, and returns the stop string that it completed, if any.
  std::optional<std::string> AppendText(int32_t token, std::string* text);
  // Ends the text after `last_bytes`.
  void FlushInto(std::string_view last_bytes, std::string* text);

  const Tokenizer* tokenizer_;  // null where nobody needs text
  const Request* request_;
  std::vector<int32_t> end_tokens_;  // sorted: eos (unless ignored) and stop tokens
  int num_generated_ = 0;
  Utf8Stream utf8_;
  StopMatcher stop_;
};

}  // namespace strata

#endif  // CORE_SEQUENCE_OUTPUT_H_
