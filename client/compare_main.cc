// ./strata compare: one prompt under several strategies, side by side.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/connection_flags.h"
#include "client/generation.h"
#include "client/interrupt.h"
#include "client/strategy_list.h"
#include "client/table.h"
#include "client/text_format.h"
#include "proto/strata.pb.h"

ABSL_FLAG(std::string, strategies, "full;every=2;keep=0.25",
          "strategies to compare, separated by ';' or ','");
ABSL_FLAG(uint32_t, max_tokens, 48, "tokens to generate under each");
ABSL_FLAG(bool, raw, false,
          "send the text as it is; default: as chat, where the model has a "
          "template");

namespace strata {
namespace {

constexpr char kUsage[] =
    "Generates from one prompt under several strategies, one after another, "
    "and shows what each held.\n\n"
    "  ./strata compare \"text\" [flags]\n\n"
    "Exit status: 0; 1 if the server refuses or does not answer, 2 for wrong "
    "flags, 130 after Ctrl-C.";

constexpr char kNote[] =
    "\nGreedy decoding, repetition penalty 1.1.  KV held: the cache of the "
    "whole request\nat its largest; saved: against full.  tok/s: tokens after "
    "the first, one stream alone."
    "\nHow well the text bears sharing depends on training: an ordinary "
    "checkpoint turns\nto noise, one trained for it (./strata train) degrades "
    "slowly.\n";

int Fail(int exit_status, absl::string_view line) {
  std::fprintf(stderr, "strata compare: %s\n", std::string(line).c_str());
  return exit_status;
}

int Fail(const Connection& connection, absl::string_view where,
         const grpc::Status& status) {
  const bool is_own = status.error_code() == grpc::StatusCode::CANCELLED;
  return Fail(is_own ? kInterrupted : kFailed,
              absl::StrCat(where, connection.ErrorLine(status)));
}

v1::GenerateRequest GreedyRequest(const std::string& spec,
                                  uint32_t num_tokens) {
  v1::GenerateRequest request;
  request.mutable_strategy()->set_spec(spec);
  request.mutable_sampling()->set_temperature(0);
  // Small models go in circles without.
  request.mutable_sampling()->set_repetition_penalty(1.1);
  request.mutable_stopping()->set_max_tokens(num_tokens);
  // Equal work for all: the same number of tokens, nothing from earlier rows.
  request.mutable_stopping()->set_ignore_eos(true);
  request.set_bypass_prefix_cache(true);
  return request;
}

void AddRow(const std::string& spec, const GenerationResult& result,
            Table* table) {
  const v1::Usage& usage = result.done.usage();
  const uint64_t full = usage.kv_bytes_full();
  const uint64_t saved = full > usage.kv_bytes() ? full - usage.kv_bytes() : 0;
  const double percent =
      full > 0 ? 100.0 * static_cast<double>(saved) / static_cast<double>(full)
               : 0;
  table->AddRow({spec.empty() ? usage.strategy() : spec,
                 FormatBytes(usage.kv_bytes()),
                 absl::StrFormat("%s (%.0f%%)", FormatBytes(saved), percent),
                 absl::StrFormat("%.1f", result.DecodeTokensPerSecond()),
                 OneLine(result.texts[0])});
}

int RunCompare(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Fail(kBadCommandLine, "no prompt: ./strata compare \"text\"");
  }
  const std::string prompt = absl::StrJoin(words, " ");
  Generator generator;
  InterruptWatcher watcher([&generator] { generator.Cancel(); });
  const auto connection = Connection::Open(ConnectionOptionsFromFlags());
  if (!connection.ok()) {
    return Fail(kBadCommandLine, connection.status().message());
  }
  PromptMode mode =
      absl::GetFlag(FLAGS_raw) ? PromptMode::kText : PromptMode::kChatOrText;
  const auto run = [&](const std::string& spec, uint32_t num_tokens) {
    return generator.Run(**connection, GreedyRequest(spec, num_tokens), prompt,
                         "", mode, [](std::string_view) {});
  };

  const GenerationResult warm_up = run("full", 4);
  if (!warm_up.status.ok()) return Fail(**connection, "", warm_up.status);
  if (warm_up.fell_back_to_text) mode = PromptMode::kText;

  Table table({{"strategy", Table::Align::kLeft},
               {"KV held"},
               {"saved"},
               {"tok/s"},
               {"text", Table::Align::kLeft}});
  for (const std::string& spec :
       SplitStrategies(absl::GetFlag(FLAGS_strategies))) {
    const GenerationResult result = run(spec, absl::GetFlag(FLAGS_max_tokens));
    if (!result.status.ok()) {
      return Fail(**connection, absl::StrCat("under '", spec, "': "),
                  result.status);
    }
    if (result.num_tokens == 0) {
      return Fail(kFailed, absl::StrCat("under '", spec, "': no token came"));
    }
    AddRow(spec, result, &table);
  }
  std::printf("prompt: %s\n\n%s%s", OneLine(prompt).c_str(),
              table.Render(TerminalWidth(STDOUT_FILENO, 120)).c_str(), kNote);
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::RunCompare(
      strata::WordsOfCommandLine("strata compare", strata::kUsage, argc, argv));
}
