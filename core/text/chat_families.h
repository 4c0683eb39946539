#ifndef CORE_TEXT_CHAT_FAMILIES_H_
#define CORE_TEXT_CHAT_FAMILIES_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/text/chat_template.h"
#include "core/text/jinja_text.h"

namespace strata {

// The families of chat templates.  Each returns null for a template that is not
// its own.
std::unique_ptr<const ChatTemplate> RecognizeChatMl(const JinjaText& jinja,
                                                    std::string_view bos);
std::unique_ptr<const ChatTemplate> RecognizeQwen3(const JinjaText& jinja);
std::unique_ptr<const ChatTemplate> RecognizeLlama3(const JinjaText& jinja,
                                                    std::string_view bos);
std::unique_ptr<const ChatTemplate> RecognizeMistral(const JinjaText& jinja,
                                                     std::string_view bos,
                                                     std::string_view eos);

// Collects the pieces of a rendering.
class PieceWriter {
 public:
  void Text(std::string_view text) { Append(text, false); }
  void Content(std::string_view text) { Append(text, true); }
  std::vector<ChatTemplate::Piece> Take() { return std::move(pieces_); }

 private:
  void Append(std::string_view text, bool is_content) {
    if (text.empty()) return;
    if (pieces_.empty() || pieces_.back().is_content != is_content) {
      pieces_.push_back({"", is_content});
    }
    pieces_.back().text.append(text);
  }

  std::vector<ChatTemplate::Piece> pieces_;
};

// Python's str.strip(), which is Jinja's `trim`.
std::string_view StripAsPython(std::string_view text);

// INVALID_ARGUMENT for no messages, or a role that is not among `allowed`.
absl::Status CheckRoles(const std::vector<ChatMessage>& messages,
                        const std::vector<std::string_view>& allowed);

// Whether each literal of `jinja` is one of `known` or contains one of `parts`:
// a template that says more than a family does is not of that family.
bool HasOnlyLiterals(const JinjaText& jinja,
                     const std::vector<std::string_view>& known,
                     const std::vector<std::string_view>& parts);

}  // namespace strata

#endif  // CORE_TEXT_CHAT_FAMILIES_H_
