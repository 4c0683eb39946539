#include "core/text/chat_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/text/chat_families.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

bool IsPythonSpace(char32_t c) {
  return IsWhiteSpace(c) || (c >= 0x1C && c <= 0x1F);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const ChatTemplate>> ChatTemplate::Recognize(
    std::string_view jinja, std::string_view bos, std::string_view eos) {
  const JinjaText text = ReadJinja(jinja);
  if (text.data.empty()) {
    if (auto family = RecognizeQwen3(text)) return family;
    if (auto family = RecognizeChatMl(text, bos)) return family;
    if (auto family = RecognizeLlama3(text, bos)) return family;
    if (auto family = RecognizeMistral(text, bos, eos)) return family;
  }
  return absl::UnimplementedError(
      "the model's chat template is not one of the known families: chatml "
      "(SmolLM2, Qwen2, "
      "Qwen2.5 and plain), qwen3, llama3 (3.0 to 3.3), mistral (v1, v3 and "
      "v3-tekken)");
}

std::vector<int32_t> EncodePieces(
    const Tokenizer& tokenizer,
    const std::vector<ChatTemplate::Piece>& pieces) {
  std::string text;
  std::vector<TextRange> plain;
  for (const ChatTemplate::Piece& piece : pieces) {
    const TextRange range{text.size(), text.size() + piece.text.size()};
    if (piece.is_content && !piece.text.empty()) plain.push_back(range);
    text.append(piece.text);
  }
  return tokenizer.Encode(MarkedText{text, std::move(plain)});
}

std::string_view StripAsPython(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = ReadUtf8(text);
    if (c.kind != Utf8Char::kValid || !IsPythonSpace(c.code_point)) break;
    text.remove_prefix(c.num_bytes);
  }
  while (!text.empty()) {
    const Utf8Char c = LastUtf8(text);
    if (c.kind != Utf8Char::kValid || !IsPythonSpace(c.code_point)) break;
    text.remove_suffix(c.num_bytes);
  }
  return text;
}

absl::Status CheckRoles(const std::vector<ChatMessage>& messages,
                        const std::vector<std::string_view>& allowed) {
  if (messages.empty())
    return absl::InvalidArgumentError("chat without messages");
  for (size_t i = 0; i < messages.size(); ++i) {
    if (std::find(allowed.begin(), allowed.end(), messages[i].role) !=
        allowed.end())
      continue;
    std::string names;
    for (const std::string_view name : allowed) {
      names.append(names.empty() ? "" : ", ").append(name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("message ", i, ": role \"",
                     absl::Utf8SafeCEscape(messages[i].role.substr(0, 40)),
                     "\" is not one of the chat template: ", names));
  }
  return absl::OkStatus();
}

bool HasOnlyLiterals(const JinjaText& jinja,
                     const std::vector<std::string_view>& known,
                     const std::vector<std::string_view>& parts) {
  return std::all_of(
      jinja.literals.begin(), jinja.literals.end(),
      [&](const std::string& literal) {
        return std::find(known.begin(), known.end(), literal) != known.end() ||
               std::any_of(parts.begin(), parts.end(),
                           [&](std::string_view part) {
                             return literal.find(part) != std::string::npos;
                           });
      });
}

}  // namespace strata
