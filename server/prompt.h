#ifndef SERVER_PROMPT_H_
#define SERVER_PROMPT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/text/chat_template.h"
#include "server/serving_state.h"

namespace strata {

// From what clients of any face send to the ids that the model runs.
// FAILED_PRECONDITION where the model lacks a tokenizer or a known chat
// template; INVALID_ARGUMENT for what a client may not send.

// BOS is added where the model's tokenizer says so.
absl::StatusOr<std::vector<int32_t>> EncodeText(const ServedModel& model,
                                                std::string_view text,
                                                bool parse_special);

// Refuses a conversation without messages.
absl::StatusOr<std::vector<int32_t>> EncodeChat(
    const ServedModel& model, const std::vector<ChatMessage>& messages,
    bool add_generation_prompt);

// Refuses text that no tokens could make short enough for the context, before
// the time is spent to encode it.  No effect on a model without tokenizer.
absl::Status CheckTextFits(const ServedModel& model, size_t num_bytes);

// A prompt is not empty, and its ids are within the vocabulary.
absl::Status CheckPrompt(const std::vector<int32_t>& ids, int vocab_size);

// `field`: its name in messages.  Ids that were above 2^31 are negative here,
// and refused.
absl::Status CheckTokenIds(const std::string& field,
                           const std::vector<int32_t>& ids, int vocab_size);

}  // namespace strata

#endif  // SERVER_PROMPT_H_
