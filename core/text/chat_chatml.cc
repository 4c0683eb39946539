#include <optional>
#include <string>

#include "base/check.h"
#include "core/text/chat_families.h"

// ChatML: <|im_start|>ROLE\nCONTENT<|im_end|>\n.

namespace strata {
namespace {

class ChatMl final : public ChatTemplate {
 public:
  struct Options {
    std::string bos;
    std::string default_system;  // with its markers; put in front unless the
                                 // first is system
    bool trim = false;           // contents
    bool has_tool_role =
        false;  // "tool" is a tool's response, not a role like others
  };

  explicit ChatMl(Options options) : options_(std::move(options)) {}

  std::string_view family() const override { return "chatml"; }

  absl::StatusOr<std::vector<Piece>> Render(
      const std::vector<ChatMessage>& messages,
      bool add_generation_prompt) const override {
    STRATA_RETURN_IF_ERROR(
        CheckRoles(messages, {"system", "user", "assistant", "tool"}));
    PieceWriter out;
    out.Text(options_.bos);
    if (messages[0].role != "system") out.Text(options_.default_system);
    for (size_t i = 0; i < messages.size(); ++i) {
      if (options_.has_tool_role && messages[i].role == "tool") {
        WriteToolResponse(messages, i, &out);
        continue;
      }
      out.Text("<|im_start|>");
      out.Text(messages[i].role);
      out.Text("\n");
      out.Content(options_.trim ? StripAsPython(messages[i].content)
                                : messages[i].content);
      out.Text("<|im_end|>\n");
    }
    if (add_generation_prompt) out.Text("<|im_start|>assistant\n");
    return out.Take();
  }

  // Responses in a row share one message of the user.
  static void WriteToolResponse(const std::vector<ChatMessage>& messages,
                                size_t i, PieceWriter* out) {
    if (i == 0 || messages[i - 1].role != "tool") out->Text("<|im_start|>user");
    out->Text("\n<tool_response>\n");
    out->Content(messages[i].content);
    out->Text("\n</tool_response>");
    if (i + 1 == messages.size() || messages[i + 1].role != "tool")
      out->Text("<|im_end|>\n");
  }

 private:
  const Options options_;
};

// Qwen3 drops the reasoning of turns before the last question.
class Qwen3 final : public ChatTemplate {
 public:
  explicit Qwen3(std::string generation_prompt)
      : generation_prompt_(std::move(generation_prompt)) {}

  std::string_view family() const override { return "qwen3"; }

  absl::StatusOr<std::vector<Piece>> Render(
      const std::vector<ChatMessage>& messages,
      bool add_generation_prompt) const override {
    STRATA_RETURN_IF_ERROR(
        CheckRoles(messages, {"system", "user", "assistant", "tool"}));
    const size_t last_question = LastQuestion(messages);
    PieceWriter out;
    for (size_t i = 0; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (message.role == "tool") {
        ChatMl::WriteToolResponse(messages, i, &out);
        continue;
      }
      out.Text("<|im_start|>");
      out.Text(message.role);
      out.Text("\n");
      if (message.role == "assistant") {
        WriteAnswer(message.content, i > last_question,
                    i + 1 == messages.size(), &out);
      } else {
        out.Content(message.content);
      }
      out.Text("<|im_end|>\n");
    }
    if (add_generation_prompt) out.Text(generation_prompt_);
    return out.Take();
  }

 private:
  static size_t LastQuestion(const std::vector<ChatMessage>& messages) {
    for (size_t i = messages.size(); i-- > 0;) {
      const std::string& content = messages[i].content;
      const bool is_tool_response = content.starts_with("<tool_response>") &&
                                    content.ends_with("</tool_response>");
      if (messages[i].role == "user" && !is_tool_response) return i;
    }
    return messages.size() - 1;
  }

  static std::string_view TrimLeft(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
  }
  static std::string_view TrimRight(std::string_view text) {
    return text.substr(0, text.find_last_not_of('\n') + 1);
  }

  static void WriteAnswer(std::string_view content, bool keep_reasoning,
                          bool is_last, PieceWriter* out) {
    constexpr std::string_view kBegin = "<think>";
    constexpr std::string_view kEnd = "</think>";
    std::string_view reasoning;
    if (const size_t end = content.find(kEnd); end != std::string_view::npos) {
      reasoning = TrimRight(content.substr(0, end));
      const size_t begin = reasoning.rfind(kBegin);
      if (begin != std::string_view::npos)
        reasoning.remove_prefix(begin + kBegin.size());
      reasoning = TrimLeft(reasoning);
      content = TrimLeft(content.substr(content.rfind(kEnd) + kEnd.size()));
    }
    if (keep_reasoning && (is_last || !reasoning.empty())) {
      out->Text("<think>\n");
      out->Content(TrimRight(TrimLeft(reasoning)));
      out->Text("\n</think>\n\n");
      content = TrimLeft(content);
    }
    out->Content(content);
  }

  const std::string generation_prompt_;
};

constexpr std::string_view kSystemBegin = "<|im_start|>system\n";
constexpr std::string_view kEnd = "<|im_end|>";

// The literal of a whole system message; "" for none; nothing for several
// different ones.
std::optional<std::string> DefaultSystem(const JinjaText& jinja) {
  std::string found;
  for (const std::string& literal : jinja.literals) {
    if (!literal.starts_with(kSystemBegin) ||
        literal.find(kEnd) == std::string::npos)
      continue;
    if (!found.empty() && found != literal) return std::nullopt;
    found = literal;
  }
  const bool is_whole = found.empty() || found.find(kEnd) + kEnd.size() + 1 ==
                                             found.size();  // then "\n"
  if (!is_whole || (!found.empty() && !found.ends_with('\n')))
    return std::nullopt;
  return found;
}

bool HasTurns(const JinjaText& jinja) {
  for (const char* content :
       {"message['content']", "message['content']|trim", "content"}) {
    for (const char* end : {"'<|im_end|>'+'\n'", "'<|im_end|>\n'"}) {
      if (jinja.Has(std::string("'<|im_start|>'+message['role']+'\n'+") +
                    content + "+" + end)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::unique_ptr<const ChatTemplate> RecognizeChatMl(const JinjaText& jinja,
                                                    std::string_view bos) {
  if (!HasTurns(jinja) ||
      !jinja.Has("ifadd_generation_prompt;'<|im_start|>assistant\n';")) {
    return nullptr;
  }
  const std::optional<std::string> system = DefaultSystem(jinja);
  if (!system || jinja.Has("raise_exception") || jinja.Has("eos_token") ||
      jinja.Has("strip(") || jinja.Has("think")) {
    return nullptr;
  }
  ChatMl::Options options;
  options.default_system = *system;
  options.trim = jinja.Has("message['content']|trim");
  if (jinja.Has("bos_token")) options.bos = bos;
  options.has_tool_role = jinja.Has("'\n<tool_response>\n'");
  const std::string_view default_text =
      system->empty()
          ? ""
          : std::string_view(*system).substr(
                kSystemBegin.size(), system->find(kEnd) - kSystemBegin.size());
  std::vector<std::string_view> parts;
  if (options.has_tool_role) parts = {"tool", "arguments"};
  if (!HasOnlyLiterals(
          jinja,
          {"role", "content", "system", "user", "assistant", "<|im_start|>",
           "\n", "<|im_end|>", "<|im_end|>\n", "<|im_start|>assistant\n",
           "<|im_start|>user", kSystemBegin, "", *system, default_text},
          parts)) {
    return nullptr;
  }
  return std::make_unique<ChatMl>(std::move(options));
}

std::unique_ptr<const ChatTemplate> RecognizeQwen3(const JinjaText& jinja) {
  const bool keeps_reasoning = jinja.Has(
      "'<|im_start|>'+message['role']+'\n<think>\n'+reasoning_content.strip('"
      "\n')+"
      "'\n</think>\n\n'+content.lstrip('\n')");
  if (!keeps_reasoning || !jinja.Has("last_query_index") ||
      jinja.Has("raise_exception") || jinja.Has("bos_token") ||
      jinja.Has("eos_token") ||
      !HasOnlyLiterals(
          jinja,
          {"role", "content", "system", "user", "assistant", "<|im_start|>",
           "\n", "\n\n", "<|im_end|>", "<|im_end|>\n",
           "<|im_start|>assistant\n", "<|im_start|>user", kSystemBegin, ""},
          {"tool", "arguments", "think>"})) {
    return nullptr;
  }
  for (const char* prompt :
       {"<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n"}) {
    if (jinja.Has(std::string("ifadd_generation_prompt;'") + prompt + "';")) {
      return std::make_unique<Qwen3>(prompt);
    }
  }
  return nullptr;
}

}  // namespace strata
