#ifndef CORE_TEXT_CHAT_TEMPLATE_H_
#define CORE_TEXT_CHAT_TEMPLATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/text/tokenizer.h"

namespace strata {

struct ChatMessage {
  std::string role;
  std::string content;
};

// Turns a conversation into a prompt.  Known families are recognised from the
// template's text: a model's template is never executed.  What a family leaves
// open (default system prompt, spacing, dates) is taken from the text too.
//
// Immutable and thread-safe.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  // Recognises the family of a Jinja template.  `bos` and `eos` are the texts
  // of the tokens of these names, or "".  UNIMPLEMENTED for an unknown one: the
  // message lists the known families.
  static absl::StatusOr<std::unique_ptr<const ChatTemplate>> Recognize(
      std::string_view jinja, std::string_view bos, std::string_view eos);

  // A part of the rendered conversation.
  struct Piece {
    std::string text;
    bool is_content =
        false;  // a message's own words: never read for control tokens
  };
  // INVALID_ARGUMENT for roles or an order that the template refuses or leaves
  // out, or no messages.
  virtual absl::StatusOr<std::vector<Piece>> Render(
      const std::vector<ChatMessage>& messages,
      bool add_generation_prompt) const = 0;

  virtual std::string_view family() const = 0;
};

// The ids of the rendered conversation: those of the whole string, except that
// control tokens written in contents stay plain text (Chat in
// proto/strata.proto; semantics 18).
std::vector<int32_t> EncodePieces(
    const Tokenizer& tokenizer, const std::vector<ChatTemplate::Piece>& pieces);

}  // namespace strata

#endif  // CORE_TEXT_CHAT_TEMPLATE_H_
