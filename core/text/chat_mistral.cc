#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/text/chat_families.h"

// Mistral: [INST] QUESTION [/INST] ANSWER</s>.  The versions differ in blanks,
// and in whether the system prompt stands in the first or in the last question.

namespace strata {
namespace {

struct MistralFormat {
  std::string bos;
  std::string eos;
  std::string user_begin;
  std::string user_end;
  std::string answer_begin;
  std::string answer_end;  // after eos
  bool trim_answer = false;
  enum { kRefused, kInFirst, kInLast } system = kRefused;
};

class Mistral final : public ChatTemplate {
 public:
  explicit Mistral(MistralFormat format) : format_(std::move(format)) {}

  std::string_view family() const override { return "mistral"; }

  // The prompt of an answer is the end of the question.
  absl::StatusOr<std::vector<Piece>> Render(
      const std::vector<ChatMessage>& messages,
      bool /*add_generation_prompt*/) const override {
    const bool takes_system = format_.system != MistralFormat::kRefused;
    STRATA_RETURN_IF_ERROR(CheckRoles(
        messages,
        takes_system
            ? std::vector<std::string_view>{"system", "user", "assistant"}
            : std::vector<std::string_view>{"user", "assistant"}));
    const size_t first = takes_system && messages[0].role == "system" ? 1 : 0;
    PieceWriter out;
    out.Text(format_.bos);
    for (size_t i = first; i < messages.size(); ++i) {
      const bool is_user = (i - first) % 2 == 0;
      if (messages[i].role != (is_user ? "user" : "assistant")) {
        return absl::InvalidArgumentError(absl::StrCat(
            "message ", i,
            ": roles must alternate user/assistant/user/assistant/...",
            takes_system ? " after an optional system message" : ""));
      }
      if (is_user) {
        const size_t with_system = format_.system == MistralFormat::kInFirst
                                       ? first
                                       : messages.size() - 1;
        out.Text(format_.user_begin);
        if (first == 1 && i == with_system) {
          out.Content(messages[0].content);
          out.Text("\n\n");
        }
        out.Content(messages[i].content);
        out.Text(format_.user_end);
      } else {
        out.Text(format_.answer_begin);
        const std::string_view content = messages[i].content;
        out.Content(format_.trim_answer ? StripAsPython(content) : content);
        out.Text(format_.eos);
        out.Text(format_.answer_end);
      }
    }
    return out.Take();
  }

 private:
  const MistralFormat format_;
};

bool ReadQuestion(const JinjaText& jinja, MistralFormat* format) {
  for (const char* begin : {" [INST] ", "[INST] ", "[INST]"}) {
    for (const char* end : {" [/INST]", "[/INST]"}) {
      const std::string open = absl::StrCat("'", begin, "'+");
      const std::string close = absl::StrCat("message['content']+'", end, "';");
      if (!jinja.Has(";" + open + close)) continue;
      format->user_begin = begin;
      format->user_end = end;
      const std::string with_system = open + "system_message+'\n\n'+" + close;
      if (jinja.Has("ifloop.firstandsystem_messageisdefined;" + with_system)) {
        format->system = MistralFormat::kInFirst;
      } else if (jinja.Has("ifloop.lastandsystem_messageisdefined;" +
                           with_system)) {
        format->system = MistralFormat::kInLast;
      } else if (jinja.Has("system_message")) {
        return false;
      }
      return true;
    }
  }
  return false;
}

bool ReadAnswer(const JinjaText& jinja, MistralFormat* format) {
  for (const char* begin : {" ", ""}) {
    for (const char* trim : {"|trim", ""}) {
      for (const char* end : {" ", ""}) {
        const std::string code =
            absl::StrCat(";", *begin ? "' '+" : "", "message['content']", trim,
                         "+eos_token", *end ? "+' '" : "", ";");
        if (!jinja.Has(code)) continue;
        format->answer_begin = begin;
        format->answer_end = end;
        format->trim_answer = *trim != '\0';
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::unique_ptr<const ChatTemplate> RecognizeMistral(const JinjaText& jinja,
                                                     std::string_view bos,
                                                     std::string_view eos) {
  MistralFormat format;
  format.bos = bos;
  format.eos = eos;
  const bool alternates =
      jinja.Has("if(message['role']=='user')!=(loop.index0%2==0);") ||
      jinja.Has("if(message['role']=='user')!=(ns.index%2==0);");
  if (!alternates || !jinja.Has(";bos_token;") || jinja.Has("SYSTEM_PROMPT") ||
      !ReadQuestion(jinja, &format) || !ReadAnswer(jinja, &format)) {
    return nullptr;
  }
  return std::make_unique<Mistral>(std::move(format));
}

}  // namespace strata
