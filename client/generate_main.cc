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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/connection.h"
#include "client/connection_flags.h"
#include "client/generation.h"
#include "client/interrupt.h"
#include "client/planned_switches.h"
#include "client/summary.h"
#include "proto/strata.pb.h"

ABSL_FLAG(std::string, strategy, "",
          "full, every=N, keep=R, prefix=K, leaders=0,..., sources=0,... or a "
          "registered name; empty: the server's default");
ABSL_FLAG(std::string, floor, "",
          "strategy that the server may switch to when memory runs out; empty: "
          "never");
ABSL_FLAG(std::string, switch, "",
          "switches on the way, as TOKENS:STRATEGY, separated by ';': "
          "5:every=4;32:leaders=0 keeps fewer layers cached after 5 generated "
          "tokens and again after 32");
ABSL_FLAG(std::string, request_id, "",
          "label, for logs and ./strata admin switch");
ABSL_FLAG(std::string, cache_salt, "",
          "the server shares cached prefixes between equal salts only");
ABSL_FLAG(bool, bypass_prefix_cache, false,
          "neither use cached prefixes nor leave any");
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

// False: a flag's value is malformed; `*error` says which.
bool SetStrategy(v1::Strategy* strategy, std::string* error) {
  strategy->set_spec(absl::GetFlag(FLAGS_strategy));
  strategy->set_floor(absl::GetFlag(FLAGS_floor));
  const absl::Status planned =
      AddPlannedSwitches(absl::GetFlag(FLAGS_switch), strategy);
  if (!planned.ok()) *error = absl::StrCat("--switch: ", planned.message());
  return planned.ok();
}

bool SetStopping(v1::Stopping* stopping, std::string* error) {
  stopping->set_max_tokens(absl::GetFlag(FLAGS_max_tokens));
  for (const std::string& stop : absl::GetFlag(FLAGS_stop)) {
    if (!absl::CUnescape(stop, stopping->add_stop(), error)) {
      *error = "--stop: " + *error;
      return false;
    }
  }
  return true;
}

void SetSampling(v1::Sampling* sampling) {
  if (auto v = absl::GetFlag(FLAGS_temperature)) sampling->set_temperature(*v);
  if (auto v = absl::GetFlag(FLAGS_top_p)) sampling->set_top_p(*v);
  if (auto v = absl::GetFlag(FLAGS_top_k)) sampling->set_top_k(*v);
  if (auto v = absl::GetFlag(FLAGS_min_p)) sampling->set_min_p(*v);
  if (auto v = absl::GetFlag(FLAGS_repetition_penalty)) {
    sampling->set_repetition_penalty(*v);
  }
  if (auto v = absl::GetFlag(FLAGS_seed)) sampling->set_seed(*v);
}

bool RequestFromFlags(v1::GenerateRequest* request, std::string* error) {
  request->set_request_id(absl::GetFlag(FLAGS_request_id));
  request->set_cache_salt(absl::GetFlag(FLAGS_cache_salt));
  request->set_bypass_prefix_cache(absl::GetFlag(FLAGS_bypass_prefix_cache));
  SetSampling(request->mutable_sampling());
  return SetStrategy(request->mutable_strategy(), error) &&
         SetStopping(request->mutable_stopping(), error);
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
  if (!RequestFromFlags(&request, &error)) return Fail(error);

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
