#include <algorithm>
#include <string>

#include "base/check.h"
#include "core/text/chat_families.h"

// Llama 3: <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>,
// contents trimmed.  From 3.1 on a system message always stands first and tells
// dates.

namespace strata {
namespace {

constexpr std::string_view kHeaderBegin = "<|start_header_id|>";
constexpr std::string_view kHeaderEnd = "<|end_header_id|>\n\n";
constexpr std::string_view kTurnEnd = "<|eot_id|>";

class Llama3 final : public ChatTemplate {
 public:
  struct Options {
    std::string bos;
    std::string dates;            // "" for 3.0
    bool always_prompts = false;  // the generation prompt is not optional
  };

  explicit Llama3(Options options) : options_(std::move(options)) {}

  std::string_view family() const override { return "llama3"; }

  absl::StatusOr<std::vector<Piece>> Render(
      const std::vector<ChatMessage>& messages,
      bool add_generation_prompt) const override {
    STRATA_RETURN_IF_ERROR(
        CheckRoles(messages, {"system", "user", "assistant"}));
    PieceWriter out;
    out.Text(options_.bos);
    size_t i = 0;
    if (!options_.dates.empty()) {
      WriteHeader("system", &out);
      out.Text(options_.dates);
      if (messages[0].role == "system")
        out.Content(StripAsPython(messages[i++].content));
      out.Text(kTurnEnd);
    }
    for (; i < messages.size(); ++i) {
      WriteHeader(messages[i].role, &out);
      out.Content(StripAsPython(messages[i].content));
      out.Text(kTurnEnd);
    }
    if (add_generation_prompt || options_.always_prompts)
      WriteHeader("assistant", &out);
    return out.Take();
  }

 private:
  static void WriteHeader(std::string_view role, PieceWriter* out) {
    out->Text(kHeaderBegin);
    out->Text(role);
    out->Text(kHeaderEnd);
  }

  const Options options_;
};

// Like "26 Jul 2024".
bool IsDate(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 11 && is_digit(text[0]) && is_digit(text[1]) &&
         text[2] == ' ' && text[6] == ' ' &&
         std::all_of(text.begin() + 7, text.end(), is_digit);
}

// The dates that the template tells; "" if it does not do so in the known way.
// The day is the template's own default: a prompt does not depend on a clock.
std::string Dates(const JinjaText& jinja) {
  constexpr std::string_view kCutoff = "Cutting Knowledge Date: ";
  std::string cutoff;
  std::string today;
  for (const std::string& literal : jinja.literals) {
    if (literal.starts_with(kCutoff)) cutoff = literal;
    if (IsDate(literal)) today = literal;
  }
  if (cutoff.empty() || today.empty()) return "";
  if (!jinja.Has(";'" + cutoff + "';'Today Date: '+date_string+'\n\n';") ||
      !jinja.Has("setsystem_message=messages[0]['content']|trim;") ||
      !jinja.Has("setsystem_message='';") ||
      !jinja.Has(";system_message;'<|eot_id|>';")) {
    return "";
  }
  return cutoff + "Today Date: " + today + "\n\n";
}

}  // namespace

std::unique_ptr<const ChatTemplate> RecognizeLlama3(const JinjaText& jinja,
                                                    std::string_view bos) {
  constexpr char kTurn[] =
      "'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['"
      "content']|trim+"
      "'<|eot_id|>'";
  constexpr char kPrompt[] =
      "'<|start_header_id|>assistant<|end_header_id|>\n\n';";
  if (!jinja.Has(kTurn) || !jinja.Has(kPrompt) || !jinja.Has("bos_token"))
    return nullptr;
  Llama3::Options options;
  options.bos = bos;
  options.always_prompts = !jinja.Has("add_generation_prompt");
  options.dates = Dates(jinja);
  if (options.dates.empty() &&
      !HasOnlyLiterals(jinja,
                       {"role", "content", "system", "user", "assistant",
                        kHeaderBegin, kHeaderEnd, kTurnEnd,
                        "<|start_header_id|>assistant<|end_header_id|>\n\n"},
                       {})) {
    return nullptr;
  }
  return std::make_unique<Llama3>(std::move(options));
}

}  // namespace strata
