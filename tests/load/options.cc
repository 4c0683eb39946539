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

ABSL_FLAG(int, num_prompts, 100, "calls to make");
ABSL_FLAG(int, concurrency, 0,
          "most calls at once; alone it is a closed loop; 0: no cap, or 16 "
          "where no --request_rate is given");
ABSL_FLAG(double, request_rate, std::numeric_limits<double>::infinity(),
          "calls started per second (open loop); inf: as fast as "
          "--concurrency lets them");
ABSL_FLAG(double, burstiness, 1.0,
          "shape of the gamma distributed gaps: 1 is Poisson, less is "
          "burstier, more is more regular");
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
ABSL_FLAG(double, cancel_rate, 0, "share of the calls that is cancelled");
ABSL_FLAG(double, cancel_within, 2,
          "seconds: half of the cancelled calls end at a random moment within "
          "this, the other half after a random number of responses");
ABSL_FLAG(double, timeout, 600, "deadline of each call in seconds; 0: none");
ABSL_FLAG(std::string, goodput, "",
          "limits in ms that a good call meets, such as ttft:200,tpot:50");
ABSL_FLAG(std::vector<std::string>, allow_errors, {},
          "codes that do not fail the run, such as RESOURCE_EXHAUSTED");
ABSL_FLAG(uint64_t, seed, 0, "of arrivals, lengths, prompts and cancellations");
ABSL_FLAG(
    std::optional<std::string>, cache_salt, std::nullopt,
    "salt of the prefix cache; default: a random one, so that a run finds "
    "nothing that an earlier one left");
ABSL_FLAG(std::string, json, "", "file to write the report to");

namespace strata {
namespace {

std::string RandomSalt() {
  std::random_device random;
  return absl::StrCat("load-", absl::Hex(random()), "-", absl::Hex(random()));
}

absl::Status Within(const char* flag, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", value, ": must be from ", low, " to ", high));
}

absl::Status CheckNumbers() {
  constexpr double kTiny = std::numeric_limits<double>::min();
  constexpr double kAny = std::numeric_limits<double>::infinity();
  STRATA_RETURN_IF_ERROR(
      Within("num_prompts", absl::GetFlag(FLAGS_num_prompts), 1, 1e7));
  STRATA_RETURN_IF_ERROR(
      Within("concurrency", absl::GetFlag(FLAGS_concurrency), 0, 1e5));
  STRATA_RETURN_IF_ERROR(
      Within("request_rate", absl::GetFlag(FLAGS_request_rate), kTiny, kAny));
  STRATA_RETURN_IF_ERROR(
      Within("burstiness", absl::GetFlag(FLAGS_burstiness), 1e-3, 1e6));
  STRATA_RETURN_IF_ERROR(Within("shared_prefix_tokens",
                                absl::GetFlag(FLAGS_shared_prefix_tokens), 0,
                                1e7));
  STRATA_RETURN_IF_ERROR(
      Within("temperature", absl::GetFlag(FLAGS_temperature), 0, 100));
  STRATA_RETURN_IF_ERROR(
      Within("cancel_rate", absl::GetFlag(FLAGS_cancel_rate), 0, 1));
  STRATA_RETURN_IF_ERROR(
      Within("cancel_within", absl::GetFlag(FLAGS_cancel_within), 0, 1e6));
  return Within("timeout", absl::GetFlag(FLAGS_timeout), 0, 1e6);
}

// `value`, or its error with the flag's name before it.
template <typename T>
absl::StatusOr<T> Named(const char* flag, absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", value.status().message()));
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
  int concurrency = absl::GetFlag(FLAGS_concurrency);
  const double rate = absl::GetFlag(FLAGS_request_rate);
  if (concurrency == 0 && std::isinf(rate)) concurrency = 16;
  const std::vector<std::string> allowed = absl::GetFlag(FLAGS_allow_errors);
  return LoadOptions{
      .num_prompts = absl::GetFlag(FLAGS_num_prompts),
      .concurrency = concurrency,
      .request_rate = rate,
      .burstiness = absl::GetFlag(FLAGS_burstiness),
      .mix = std::move(mix),
      .prompt_lengths = prompt_lengths,
      .shared_prefix_tokens = absl::GetFlag(FLAGS_shared_prefix_tokens),
      .output_lengths = output_lengths,
      .text_prompts = prompts == "text",
      .bypass_prefix_cache = absl::GetFlag(FLAGS_bypass_prefix_cache),
      .ignore_eos = absl::GetFlag(FLAGS_ignore_eos),
      .temperature = static_cast<float>(absl::GetFlag(FLAGS_temperature)),
      .cancel_rate = absl::GetFlag(FLAGS_cancel_rate),
      .cancel_within_s = absl::GetFlag(FLAGS_cancel_within),
      .timeout_s = absl::GetFlag(FLAGS_timeout),
      .goodput = goodput,
      .allow_errors = {allowed.begin(), allowed.end()},
      .seed = absl::GetFlag(FLAGS_seed),
      .cache_salt = absl::GetFlag(FLAGS_cache_salt).value_or(RandomSalt()),
      .json_path = absl::GetFlag(FLAGS_json)};
}

}  // namespace strata
