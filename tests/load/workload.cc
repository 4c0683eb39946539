#include "tests/load/workload.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tests/load/flag_range.h"
#include "tests/load/trace.h"

ABSL_FLAG(std::string, trace, "",
          "file of calls to replay, in the form of --trace_format; prompt and "
          "output lengths and the shared prefix come from it then");
ABSL_FLAG(std::string, trace_format, "",
          "mooncake: a JSON line for each call; sharegpt: a JSON list of "
          "conversations; empty: by the file's end, .jsonl or .json");
ABSL_FLAG(double, time_scale, 1,
          "factor on the times between a Mooncake trace's calls: 0.5 is twice "
          "as fast; a --request_rate replaces them");
ABSL_FLAG(double, length_scale, 1,
          "factor on a Mooncake trace's lengths and its blocks of 512 tokens, "
          "to fit a context; above 0, at most 1");
ABSL_FLAG(int, trace_turns, 1,
          "answers taken of each ShareGPT conversation, the turns before as "
          "the prompt");

namespace strata {
namespace {

constexpr int kMooncakeBlock = 512;

absl::StatusOr<TraceOptions::Format> ParseFormat(const std::string& path) {
  const std::string name = absl::GetFlag(FLAGS_trace_format);
  if (name == "mooncake" || (name.empty() && absl::EndsWith(path, ".jsonl"))) {
    return TraceOptions::Format::kMooncake;
  }
  if (name == "sharegpt" || (name.empty() && absl::EndsWith(path, ".json"))) {
    return TraceOptions::Format::kShareGpt;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--trace_format=", name, ": must be mooncake or sharegpt",
      name.empty() ? ", as the file ends in neither .jsonl nor .json" : ""));
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.fail()) {
    return absl::NotFoundError("cannot be read, or is empty");
  }
  return std::move(text).str();
}

std::vector<TracedCall> MakeMooncakeCalls(
    const TraceOptions& options, const std::vector<MooncakeCall>& trace,
    size_t count, uint64_t seed, const v1::GetModelResponse& model) {
  const auto scaled = [&](int length) {
    return std::max(1, static_cast<int>(length * options.length_scale));
  };
  std::mt19937_64 random(seed);
  std::vector<TracedCall> calls;
  for (size_t i = 0; i < count; ++i) {
    const int length = scaled(trace[i].input_length);
    const int kept = std::min(length, static_cast<int>(model.max_model_len()));
    calls.push_back(
        {.at_s = trace[i].at_s * options.time_scale,
         .tokens = MooncakePrompt(trace[i], kept, scaled(kMooncakeBlock),
                                  model.vocab_size(), seed, random()),
         .prompt_tokens = length,
         .output_tokens = scaled(trace[i].output_length)});
  }
  return calls;
}

absl::StatusOr<std::vector<uint32_t>> Tokenize(const std::string& text,
                                               const Connection& connection) {
  grpc::ClientContext context;
  connection.Authorize(&context);
  v1::TokenizeRequest request;
  request.set_text(text);
  v1::TokenizeResponse response;
  const grpc::Status status =
      connection.stub()->Tokenize(&context, request, &response);
  if (!status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its texts cannot be tokenized: ", connection.ErrorLine(status)));
  }
  return std::vector<uint32_t>(response.token_ids().begin(),
                               response.token_ids().end());
}

absl::StatusOr<std::vector<TracedCall>> MakeShareGptCalls(
    const std::vector<Exchange>& exchanges, size_t count,
    const v1::GetModelResponse& model, const Connection& connection) {
  std::vector<TracedCall> calls;
  for (size_t i = 0; i < exchanges.size() && calls.size() < count; ++i) {
    TracedCall call;
    STRATA_ASSIGN_OR_RETURN(call.tokens,
                            Tokenize(exchanges[i].prompt, connection));
    STRATA_ASSIGN_OR_RETURN(const std::vector<uint32_t> answer,
                            Tokenize(exchanges[i].answer, connection));
    if (call.tokens.empty()) continue;  // an empty question
    call.prompt_tokens = static_cast<int64_t>(call.tokens.size());
    call.output_tokens = std::max<int64_t>(1, answer.size());
    call.tokens.resize(
        std::min<size_t>(call.tokens.size(), model.max_model_len()));
    calls.push_back(std::move(call));
  }
  return calls;
}

absl::StatusOr<std::vector<TracedCall>> Read(const TraceOptions& options,
                                             size_t most, uint64_t seed,
                                             const v1::GetModelResponse& model,
                                             const Connection& connection) {
  STRATA_ASSIGN_OR_RETURN(const std::string text, ReadAll(options.path));
  if (options.format == TraceOptions::Format::kShareGpt) {
    STRATA_ASSIGN_OR_RETURN(const std::vector<Exchange> exchanges,
                            ParseShareGpt(text, options.turns));
    const size_t count = most > 0 ? most : exchanges.size();
    STRATA_ASSIGN_OR_RETURN(
        std::vector<TracedCall> calls,
        MakeShareGptCalls(exchanges, count, model, connection));
    if (calls.empty()) return absl::InvalidArgumentError("all say nothing");
    return calls;
  }
  STRATA_ASSIGN_OR_RETURN(const std::vector<MooncakeCall> trace,
                          ParseMooncake(text));
  const size_t count = most > 0 ? std::min(most, trace.size()) : trace.size();
  return MakeMooncakeCalls(options, trace, count, seed, model);
}

}  // namespace

absl::StatusOr<TraceOptions> TraceOptions::FromFlags() {
  TraceOptions options = {.path = absl::GetFlag(FLAGS_trace),
                          .time_scale = absl::GetFlag(FLAGS_time_scale),
                          .length_scale = absl::GetFlag(FLAGS_length_scale),
                          .turns = absl::GetFlag(FLAGS_trace_turns)};
  STRATA_RETURN_IF_ERROR(Within("time_scale", options.time_scale, 0, 1e6));
  STRATA_RETURN_IF_ERROR(Within("length_scale", options.length_scale, 1e-6, 1));
  STRATA_RETURN_IF_ERROR(Within("trace_turns", options.turns, 1, 1e6));
  if (!options.path.empty()) {
    STRATA_ASSIGN_OR_RETURN(options.format, ParseFormat(options.path));
  }
  return options;
}

absl::StatusOr<std::vector<TracedCall>> ReadTrace(
    const TraceOptions& options, int most, uint64_t seed,
    const v1::GetModelResponse& model, const Connection& connection) {
  absl::StatusOr<std::vector<TracedCall>> calls =
      Read(options, static_cast<size_t>(most), seed, model, connection);
  if (calls.ok()) return calls;
  return absl::Status(
      calls.status().code(),
      absl::StrCat("--trace=", options.path, ": ", calls.status().message()));
}

}  // namespace strata
