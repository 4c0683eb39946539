// ./strata generate: one prompt, streamed to the terminal.

#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_join.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/connection_flags.h"
#include "client/generate_flags.h"
#include "client/generation.h"
#include "client/interrupt.h"
#include "client/summary.h"

ABSL_FLAG(std::string, system, "", "system message of the chat");
ABSL_FLAG(bool, chat, false,
          "insist on the chat template; default: where the model has one");
ABSL_FLAG(bool, raw, false, "send the text as it is, without a template");

namespace strata {
namespace {

constexpr char kUsage[] =
    "Streams the answer to one prompt.\n\n"
    "  ./strata generate \"text\" [flags]     ('-': the prompt is read from "
    "standard input)\n\n"
    "Exit status: 0; 1 if the server refuses or does not answer, 2 for wrong "
    "flags, 130 after Ctrl-C.";

int Fail(int exit_status, absl::string_view line) {
  std::fflush(stdout);
  std::fprintf(stderr, "strata generate: %s\n", std::string(line).c_str());
  return exit_status;
}

void EndLine(const std::string& text) {
  if (!text.empty() && text.back() != '\n') std::puts("");
}

// The first text has been streamed.
void PrintTexts(const std::vector<std::string>& texts) {
  EndLine(texts[0]);
  for (size_t i = 1; i < texts.size(); ++i) {
    std::printf("--- answer %zu of %zu\n%s", i + 1, texts.size(),
                texts[i].c_str());
    EndLine(texts[i]);
  }
  std::fflush(stdout);
}

PromptMode PromptModeFromFlags() {
  if (absl::GetFlag(FLAGS_raw)) return PromptMode::kText;
  return absl::GetFlag(FLAGS_chat) ? PromptMode::kChat
                                   : PromptMode::kChatOrText;
}

int RunGenerate(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Fail(kBadCommandLine, "no prompt: ./strata generate \"text\"");
  }
  if (absl::GetFlag(FLAGS_chat) && absl::GetFlag(FLAGS_raw)) {
    return Fail(kBadCommandLine, "--chat and --raw exclude each other");
  }
  const auto request = GenerateRequestFromFlags();
  if (!request.ok()) return Fail(kBadCommandLine, request.status().message());
  std::string prompt = absl::StrJoin(words, " ");
  if (prompt == "-") {
    prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  }

  Generator generator;
  InterruptWatcher watcher([&generator] { generator.Cancel(); });
  const auto connection = Connection::Open(ConnectionOptionsFromFlags());
  if (!connection.ok()) {
    return Fail(kBadCommandLine, connection.status().message());
  }
  const GenerationResult result =
      generator.Run(**connection, *request, prompt, absl::GetFlag(FLAGS_system),
                    PromptModeFromFlags(), [](std::string_view text) {
                      std::fwrite(text.data(), 1, text.size(), stdout);
                      std::fflush(stdout);
                    });
  PrintTexts(result.texts);
  if (result.status.error_code() == grpc::StatusCode::CANCELLED) {
    std::fprintf(stderr, "cancelled after %lld tokens\n",
                 static_cast<long long>(result.num_tokens));
    return kInterrupted;
  }
  if (!result.status.ok()) {
    return Fail(kFailed, (*connection)->ErrorLine(result.status));
  }
  if (result.fell_back_to_text) {
    std::fprintf(stderr,
                 "note: the server has no chat template; the prompt was sent "
                 "as plain text (--raw)\n");
  }
  std::fprintf(stderr, "%s\n", Summary(result).c_str());
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::RunGenerate(strata::WordsOfCommandLine(
      "strata generate", strata::kUsage, argc, argv));
}
