// ./strata generate: one prompt, streamed to the terminal.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/connection.h"
#include "client/connection_flags.h"
#include "client/generation.h"
#include "client/interrupt.h"
#include "client/text_format.h"
#include "proto/strata.pb.h"

ABSL_FLAG(std::string, strategy, "",
          "full, every=N, keep=R, prefix=K, leaders=0,..., sources=0,... or a "
          "registered name; empty: the server's default");
ABSL_FLAG(uint32_t, max_tokens, 256, "most tokens to generate");
ABSL_FLAG(std::optional<float>, temperature, std::nullopt,
          "0: greedy; unset: the server's default");
ABSL_FLAG(std::optional<float>, top_p, std::nullopt, "in (0, 1]");
ABSL_FLAG(std::optional<uint32_t>, top_k, std::nullopt, "0: all");
ABSL_FLAG(std::optional<float>, min_p, std::nullopt, "in [0, 1]");
ABSL_FLAG(std::optional<float>, repetition_penalty, std::nullopt, "above 0");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt,
          "same seed, prompt and strategy: same text");
ABSL_FLAG(std::vector<std::string>, stop, {},
          "strings that end the text, separated by commas; C escapes count "
          "(\\n), a comma is \\x2c");
ABSL_FLAG(std::string, system, "", "system message of the chat");
ABSL_FLAG(bool, chat, false,
          "insist on the chat template; default: where the model has one");
ABSL_FLAG(bool, raw, false, "send the text as it is, without a template");

namespace strata {
namespace {

constexpr char kUsage[] =
    "Streams the answer to one prompt.\n\n"
    "  ./strata generate \"text\" [flags]     ('-': the prompt is read from "
    "standard input)";

int Fail(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "strata generate: %s\n", line.c_str());
  return 1;
}

// False: a stop string has a bad escape; `*error` says which.
bool RequestFromFlags(v1::GenerateRequest* request, std::string* error) {
  request->mutable_strategy()->set_spec(absl::GetFlag(FLAGS_strategy));
  v1::Sampling* sampling = request->mutable_sampling();
  if (auto v = absl::GetFlag(FLAGS_temperature)) sampling->set_temperature(*v);
  if (auto v = absl::GetFlag(FLAGS_top_p)) sampling->set_top_p(*v);
  if (auto v = absl::GetFlag(FLAGS_top_k)) sampling->set_top_k(*v);
  if (auto v = absl::GetFlag(FLAGS_min_p)) sampling->set_min_p(*v);
  if (auto v = absl::GetFlag(FLAGS_repetition_penalty)) {
    sampling->set_repetition_penalty(*v);
  }
  if (auto v = absl::GetFlag(FLAGS_seed)) sampling->set_seed(*v);
  v1::Stopping* stopping = request->mutable_stopping();
  stopping->set_max_tokens(absl::GetFlag(FLAGS_max_tokens));
  for (const std::string& stop : absl::GetFlag(FLAGS_stop)) {
    if (!absl::CUnescape(stop, stopping->add_stop(), error)) return false;
  }
  return true;
}

std::string Summary(const GenerationResult& result) {
  const v1::Usage& usage = result.done.usage();
  std::string line = absl::StrFormat(
      "%d tokens (%d prompt)  %.1f tok/s  TTFT %.0f ms",
      usage.generated_tokens(), usage.prompt_tokens(),
      result.DecodeTokensPerSecond(), 1e3 * result.first_token_s);
  const uint64_t held = usage.kv_bytes();
  const uint64_t full = usage.kv_bytes_full();
  absl::StrAppendFormat(
      &line, "  KV held %s, saved %s  strategy %s", FormatBytes(held),
      FormatBytes(full > held ? full - held : 0), usage.strategy());
  return line;
}

int RunGenerate(std::vector<std::string> words) {
  if (words.empty()) return Fail("no prompt: ./strata generate \"text\"");
  if (absl::GetFlag(FLAGS_chat) && absl::GetFlag(FLAGS_raw)) {
    return Fail("--chat and --raw exclude each other");
  }
  std::string prompt = absl::StrJoin(words, " ");
  if (prompt == "-") {
    prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  }
  v1::GenerateRequest request;
  std::string error;
  if (!RequestFromFlags(&request, &error)) return Fail("--stop: " + error);

  auto connection = Connection::Open(ConnectionOptionsFromFlags());
  if (!connection.ok()) {
    return Fail(std::string(connection.status().message()));
  }
  Generator generator(connection->get());
  InterruptWatcher watcher([&generator] { generator.Cancel(); });
  const PromptMode mode = absl::GetFlag(FLAGS_raw)    ? PromptMode::kText
                          : absl::GetFlag(FLAGS_chat) ? PromptMode::kChat
                                                      : PromptMode::kChatOrText;
  const GenerationResult result =
      generator.Run(request, prompt, absl::GetFlag(FLAGS_system), mode,
                    [](std::string_view text) {
                      std::fwrite(text.data(), 1, text.size(), stdout);
                      std::fflush(stdout);
                    });
  if (!result.text.empty() && result.text.back() != '\n') std::puts("");
  std::fflush(stdout);
  if (result.status.error_code() == grpc::StatusCode::CANCELLED) {
    std::fprintf(stderr, "cancelled after %lld tokens\n",
                 static_cast<long long>(result.num_tokens));
    return 130;  // what shells expect after Ctrl-C
  }
  if (!result.status.ok()) {
    return Fail((*connection)->ErrorLine(result.status));
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
  strata::ShowOwnFlagsInHelp(strata::kUsage);
  std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  return strata::RunGenerate({rest.begin() + 1, rest.end()});
}
