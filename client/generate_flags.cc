#include "client/generate_flags.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/planned_switches.h"

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
ABSL_FLAG(int32_t, priority, 0, "lower runs first");
ABSL_FLAG(uint32_t, num_sequences, 1,
          "answers to the one prompt, which share its KV cache; the first "
          "streams");
ABSL_FLAG(std::string, cache_salt, "",
          "the server shares cached prefixes between equal salts only");
ABSL_FLAG(bool, bypass_prefix_cache, false,
          "neither use cached prefixes nor leave any");
ABSL_FLAG(uint32_t, max_tokens, 256, "most tokens to generate");
ABSL_FLAG(uint32_t, min_tokens, 0, "fewest tokens to generate");
ABSL_FLAG(bool, ignore_eos, false, "go on after the model's end of text");
ABSL_FLAG(std::vector<std::string>, stop, {},
          "strings that end the text, separated by commas; C escapes count "
          "(\\n), a comma is \\x2c");
ABSL_FLAG(std::optional<float>, temperature, std::nullopt,
          "0: greedy; unset: the server's default, 1");
ABSL_FLAG(std::optional<float>, top_p, std::nullopt, "in (0, 1]");
ABSL_FLAG(std::optional<uint32_t>, top_k, std::nullopt, "0: all");
ABSL_FLAG(std::optional<float>, min_p, std::nullopt, "in [0, 1]");
ABSL_FLAG(std::optional<float>, repetition_penalty, std::nullopt, "above 0");
ABSL_FLAG(std::optional<float>, presence_penalty, std::nullopt, "in [-2, 2]");
ABSL_FLAG(std::optional<float>, frequency_penalty, std::nullopt, "in [-2, 2]");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt,
          "same seed, prompt and strategy: same text");

namespace strata {
namespace {

absl::Status Malformed(const char* flag, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", what));
}

absl::Status SetStrategy(v1::Strategy* strategy) {
  strategy->set_spec(absl::GetFlag(FLAGS_strategy));
  strategy->set_floor(absl::GetFlag(FLAGS_floor));
  const absl::Status planned =
      AddPlannedSwitches(absl::GetFlag(FLAGS_switch), strategy);
  return planned.ok() ? planned : Malformed("switch", planned.message());
}

absl::Status SetStopping(v1::Stopping* stopping) {
  stopping->set_max_tokens(absl::GetFlag(FLAGS_max_tokens));
  stopping->set_min_tokens(absl::GetFlag(FLAGS_min_tokens));
  stopping->set_ignore_eos(absl::GetFlag(FLAGS_ignore_eos));
  for (const std::string& stop : absl::GetFlag(FLAGS_stop)) {
    std::string error;
    if (!absl::CUnescape(stop, stopping->add_stop(), &error)) {
      return Malformed("stop", error);
    }
  }
  return absl::OkStatus();
}

void SetSampling(v1::Sampling* sampling) {
  if (auto v = absl::GetFlag(FLAGS_temperature)) sampling->set_temperature(*v);
  if (auto v = absl::GetFlag(FLAGS_top_p)) sampling->set_top_p(*v);
  if (auto v = absl::GetFlag(FLAGS_top_k)) sampling->set_top_k(*v);
  if (auto v = absl::GetFlag(FLAGS_min_p)) sampling->set_min_p(*v);
  if (auto v = absl::GetFlag(FLAGS_repetition_penalty)) {
    sampling->set_repetition_penalty(*v);
  }
  if (auto v = absl::GetFlag(FLAGS_presence_penalty)) {
    sampling->set_presence_penalty(*v);
  }
  if (auto v = absl::GetFlag(FLAGS_frequency_penalty)) {
    sampling->set_frequency_penalty(*v);
  }
  if (auto v = absl::GetFlag(FLAGS_seed)) sampling->set_seed(*v);
}

}  // namespace

absl::StatusOr<v1::GenerateRequest> GenerateRequestFromFlags() {
  v1::GenerateRequest request;
  request.set_request_id(absl::GetFlag(FLAGS_request_id));
  request.set_priority(absl::GetFlag(FLAGS_priority));
  request.set_num_sequences(absl::GetFlag(FLAGS_num_sequences));
  request.set_cache_salt(absl::GetFlag(FLAGS_cache_salt));
  request.set_bypass_prefix_cache(absl::GetFlag(FLAGS_bypass_prefix_cache));
  SetSampling(request.mutable_sampling());
  absl::Status status = SetStrategy(request.mutable_strategy());
  status.Update(SetStopping(request.mutable_stopping()));
  if (!status.ok()) return status;
  return request;
}

}  // namespace strata
