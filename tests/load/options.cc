#include "tests/load/options.h"

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "client/connection.h"
#include "tests/load/flag_range.h"

ABSL_FLAG(int, num_prompts, 0,
          "calls to make, of a --trace at most; 0: 100, or the whole trace");
ABSL_FLAG(double, duration, 0,
          "seconds after which no further call starts; 0: no limit");
ABSL_FLAG(int, concurrency, 0,
          "most calls at once; alone it is a closed loop; 0: no cap, or 16 "
          "where no --request_rate is given");
ABSL_FLAG(double, request_rate, std::numeric_limits<double>::infinity(),
          "calls started per second (open loop); inf: as fast as "
          "--concurrency lets them");
ABSL_FLAG(double, burstiness, 1.0,
          "shape of the gamma distributed gaps: 1 is Poisson, less is "
          "burstier, more is more regular, inf: one call each "
          "1/request_rate seconds");
ABSL_FLAG(
    std::string, mix, "",
    "strategies and weights, such as full:0.5,every=4:0.5; full>every=4 lets "
    "the server demote to the floor every=4 under memory pressure; empty: "
    "the server's default");
ABSL_FLAG(std::string, prompt_tokens, "64",
          "prompt lengths: N, uniform:A-B, normal:MEAN,SD, lognormal:MEAN,SD");
ABSL_FLAG(int, shared_prefix_tokens, 0,
          "random tokens (or words) in front of every prompt, the same for all "
          "calls, as a system prompt is; --prompt_tokens come after them");
ABSL_FLAG(bool, bypass_prefix_cache, false,
          "calls neither read nor write the server's prefix cache");
ABSL_FLAG(std::string, output_tokens, "32", "output lengths, as above");
ABSL_FLAG(std::string, prompts, "tokens",
          "tokens: random ids of the vocabulary; text: random words, about one "
          "a token");
ABSL_FLAG(bool, ignore_eos, true,
          "generate to the drawn length, whatever the model says");
ABSL_FLAG(double, temperature, 0, "0: greedy");
ABSL_FLAG(double, timeout, 600, "deadline of each call in seconds; 0: none");
ABSL_FLAG(std::string, goodput, "",
          "limits in ms that a good call meets, such as ttft:200,tpot:50,"
          "e2el:5000; in an open loop from the time when it should have "
          "started");
ABSL_FLAG(std::vector<std::string>, allow_errors, {},
          "codes that do not fail the run, such as RESOURCE_EXHAUSTED");
ABSL_FLAG(uint64_t, seed, 0, "of arrivals, lengths, prompts and cancellations");
ABSL_FLAG(
    std::optional<std::string>, cache_salt, std::nullopt,
    "salt of the prefix cache; default: a random one, so that a run finds "
    "nothing that an earlier one left");
ABSL_FLAG(std::string, json, "", "file to write the report to");
ABSL_FLAG(
    std::string, report, "",
    "folder to write report.json to, with every call in it; ./strata load "
    "adds report.md and report.png");
ABSL_FLAG(
    std::string, metrics, "",
    "HOST:PORT of the server's /metrics, which serves nobody else: the run "
    "fails where its counters and the client's differ or a page of the KV "
    "cache is left over");
ABSL_FLAG(
    double, max_memory_growth_mib, 0,
    "fails the run if the server's resident memory grows by more over the "
    "second half of it; needs --metrics; 0: not judged");

namespace strata {
namespace {

std::string RandomSalt() {
  std::random_device random;
  return absl::StrCat("load-", absl::Hex(random()), "-", absl::Hex(random()));
}

// A rate of which infinity is one.
absl::Status CheckAboveZero(const char* flag, double value) {
  if (value >= 1e-3) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", value, ": must be a number from 0.001, or inf"));
}

absl::Status CheckNumbers() {
  STRATA_RETURN_IF_ERROR(
      Within("num_prompts", absl::GetFlag(FLAGS_num_prompts), 0, 1e7));
  STRATA_RETURN_IF_ERROR(
      Within("concurrency", absl::GetFlag(FLAGS_concurrency), 0, 1e5));
  STRATA_RETURN_IF_ERROR(
      CheckAboveZero("request_rate", absl::GetFlag(FLAGS_request_rate)));
  STRATA_RETURN_IF_ERROR(
      CheckAboveZero("burstiness", absl::GetFlag(FLAGS_burstiness)));
  STRATA_RETURN_IF_ERROR(
      Within("duration", absl::GetFlag(FLAGS_duration), 0, 1e7));
  STRATA_RETURN_IF_ERROR(Within("max_memory_growth_mib",
                                absl::GetFlag(FLAGS_max_memory_growth_mib), 0,
                                1e9));
  STRATA_RETURN_IF_ERROR(Within("shared_prefix_tokens",
                                absl::GetFlag(FLAGS_shared_prefix_tokens), 0,
                                1e7));
  STRATA_RETURN_IF_ERROR(
      Within("temperature", absl::GetFlag(FLAGS_temperature), 0, 100));
  return Within("timeout", absl::GetFlag(FLAGS_timeout), 0, 1e6);
}

// A misspelt one would let a run fail that was meant to pass.
absl::Status CheckCodes(const std::vector<std::string>& codes) {
  constexpr int kNumCodes = grpc::StatusCode::UNAUTHENTICATED + 1;
  for (const std::string& code : codes) {
    bool is_one = false;
    for (int i = 1; i < kNumCodes; ++i) {
      is_one = is_one || code == CodeName(static_cast<grpc::StatusCode>(i));
    }
    if (is_one) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--allow_errors: '", code,
                     "' is no code of gRPC, such as RESOURCE_EXHAUSTED"));
  }
  return absl::OkStatus();
}

// `value`, or its error with the flag's name before it.
template <typename T>
absl::StatusOr<T> Named(const char* flag, absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", value.status().message()));
}

// What flags say together.
absl::Status CheckTogether(const LoadOptions& options) {
  if (options.max_memory_growth_bytes > 0 && options.metrics_address.empty()) {
    return absl::InvalidArgumentError(
        "--max_memory_growth_mib needs --metrics");
  }
  if (!options.capacity.find) return absl::OkStatus();
  if (!options.goodput.any()) {
    return absl::InvalidArgumentError(
        "--find_capacity needs --goodput, such as ttft:1000,tpot:60");
  }
  if (!std::isinf(options.request_rate) || options.concurrency > 0 ||
      options.duration_s > 0) {
    return absl::InvalidArgumentError(
        "--find_capacity sets the rate itself: it takes no --request_rate, "
        "--concurrency or --duration");
  }
  if (!options.report_folder.empty()) {
    return absl::InvalidArgumentError(
        "--find_capacity prints a table and writes --json; --report is of one "
        "run");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadOptions> LoadOptionsFromFlags() {
  STRATA_RETURN_IF_ERROR(CheckNumbers());
  STRATA_ASSIGN_OR_RETURN(Mix mix,
                          Named("mix", Mix::Parse(absl::GetFlag(FLAGS_mix))));
  STRATA_ASSIGN_OR_RETURN(
      Lengths prompt_lengths,
      Named("prompt_tokens",
            Lengths::Parse(absl::GetFlag(FLAGS_prompt_tokens))));
  STRATA_ASSIGN_OR_RETURN(
      Lengths output_lengths,
      Named("output_tokens",
            Lengths::Parse(absl::GetFlag(FLAGS_output_tokens))));
  STRATA_ASSIGN_OR_RETURN(
      Goodput goodput,
      Named("goodput", Goodput::Parse(absl::GetFlag(FLAGS_goodput))));
  const std::string prompts = absl::GetFlag(FLAGS_prompts);
  if (prompts != "tokens" && prompts != "text") {
    return absl::InvalidArgumentError(
        absl::StrCat("--prompts=", prompts, ": must be tokens or text"));
  }
  STRATA_ASSIGN_OR_RETURN(Disturbances disturbances, Disturbances::FromFlags());
  STRATA_ASSIGN_OR_RETURN(TraceOptions trace, TraceOptions::FromFlags());
  STRATA_ASSIGN_OR_RETURN(const CapacityOptions capacity,
                          CapacityOptions::FromFlags());
  const std::vector<std::string> allowed = absl::GetFlag(FLAGS_allow_errors);
  STRATA_RETURN_IF_ERROR(CheckCodes(allowed));
  LoadOptions options = {
      .num_prompts = absl::GetFlag(FLAGS_num_prompts),
      .concurrency = absl::GetFlag(FLAGS_concurrency),
      .request_rate = absl::GetFlag(FLAGS_request_rate),
      .burstiness = absl::GetFlag(FLAGS_burstiness),
      .mix = std::move(mix),
      .prompt_lengths = prompt_lengths,
      .shared_prefix_tokens = absl::GetFlag(FLAGS_shared_prefix_tokens),
      .output_lengths = output_lengths,
      .text_prompts = prompts == "text",
      .bypass_prefix_cache = absl::GetFlag(FLAGS_bypass_prefix_cache),
      .ignore_eos = absl::GetFlag(FLAGS_ignore_eos),
      .temperature = static_cast<float>(absl::GetFlag(FLAGS_temperature)),
      .timeout_s = absl::GetFlag(FLAGS_timeout),
      .goodput = goodput,
      .allow_errors = {allowed.begin(), allowed.end()},
      .seed = absl::GetFlag(FLAGS_seed),
      .cache_salt = absl::GetFlag(FLAGS_cache_salt).value_or(RandomSalt()),
      .json_path = absl::GetFlag(FLAGS_json),
      .report_folder = absl::GetFlag(FLAGS_report),
      .metrics_address = absl::GetFlag(FLAGS_metrics),
      .duration_s = absl::GetFlag(FLAGS_duration),
      .max_memory_growth_bytes =
          absl::GetFlag(FLAGS_max_memory_growth_mib) * (1 << 20),
      .disturbances = std::move(disturbances),
      .trace = std::move(trace),
      .capacity = capacity};
  STRATA_RETURN_IF_ERROR(CheckTogether(options));
  if (options.num_prompts == 0 && options.trace.path.empty()) {
    options.num_prompts = 100;
  }
  if (options.concurrency == 0 && !options.is_open_loop()) {
    options.concurrency = 16;
  }
  return options;
}

}  // namespace strata
