#include "tests/load/disturbances.h"

#include <algorithm>

#include "absl/flags/flag.h"
#include "base/check.h"
#include "client/strategy_list.h"
#include "tests/load/flag_range.h"

ABSL_FLAG(double, cancel_rate, 0, "share of the calls that is cancelled");
ABSL_FLAG(double, cancel_within, 2,
          "seconds: half of the cancelled calls end at a random moment within "
          "this, the other half after a random number of responses");
ABSL_FLAG(double, slow_reader_rate, 0,
          "share of the calls whose client waits before it reads each response "
          "after the first");
ABSL_FLAG(double, slow_reader_delay, 0.1, "seconds that such a client waits");
ABSL_FLAG(double, deadline_rate, 0,
          "share of the calls with a short deadline, drawn up to "
          "--deadline_within; one that passes is no failure");
ABSL_FLAG(double, deadline_within, 2, "the longest such deadline, in seconds");
ABSL_FLAG(double, switch_rate, 0,
          "share of the calls that Admin switches to one of --switch_to after "
          "a random number of responses (--api_key_file: the admin key)");
ABSL_FLAG(std::string, switch_to, "",
          "strategies for it, such as every=4,prefix=2; their leaders must be "
          "among those of every strategy of --mix, unless --switch_recompute");
ABSL_FLAG(bool, switch_recompute, false,
          "switches may recompute what they need");

namespace strata {
namespace {

absl::Status CheckNumbers() {
  for (const auto& [flag, value] :
       {std::pair("cancel_rate", absl::GetFlag(FLAGS_cancel_rate)),
        std::pair("slow_reader_rate", absl::GetFlag(FLAGS_slow_reader_rate)),
        std::pair("deadline_rate", absl::GetFlag(FLAGS_deadline_rate)),
        std::pair("switch_rate", absl::GetFlag(FLAGS_switch_rate))}) {
    STRATA_RETURN_IF_ERROR(Within(flag, value, 0, 1));
  }
  STRATA_RETURN_IF_ERROR(
      Within("cancel_within", absl::GetFlag(FLAGS_cancel_within), 0, 1e6));
  STRATA_RETURN_IF_ERROR(Within(
      "slow_reader_delay", absl::GetFlag(FLAGS_slow_reader_delay), 0, 1e6));
  return Within("deadline_within", absl::GetFlag(FLAGS_deadline_within), 1e-3,
                1e6);
}

bool Happens(double rate, std::mt19937_64* random) {
  return std::bernoulli_distribution(rate)(*random);
}

double UpTo(double most, std::mt19937_64* random) {
  return std::uniform_real_distribution<double>(0, most)(*random);
}

int OneOf(int count, std::mt19937_64* random) {
  return std::uniform_int_distribution<int>(1, count)(*random);
}

}  // namespace

absl::StatusOr<Disturbances> Disturbances::FromFlags() {
  STRATA_RETURN_IF_ERROR(CheckNumbers());
  Disturbances d = {
      .cancel_rate = absl::GetFlag(FLAGS_cancel_rate),
      .cancel_within_s = absl::GetFlag(FLAGS_cancel_within),
      .slow_reader_rate = absl::GetFlag(FLAGS_slow_reader_rate),
      .slow_reader_delay_s = absl::GetFlag(FLAGS_slow_reader_delay),
      .deadline_rate = absl::GetFlag(FLAGS_deadline_rate),
      .deadline_within_s = absl::GetFlag(FLAGS_deadline_within),
      .switch_rate = absl::GetFlag(FLAGS_switch_rate),
      .switch_recompute = absl::GetFlag(FLAGS_switch_recompute)};
  const std::string switch_to = absl::GetFlag(FLAGS_switch_to);
  if (!switch_to.empty()) d.switch_to = SplitStrategies(switch_to);
  for (const std::string& spec : d.switch_to) {
    if (spec.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--switch_to=", switch_to, ": holds an empty strategy"));
    }
  }
  if (d.switch_rate > 0 && d.switch_to.empty()) {
    return absl::InvalidArgumentError(
        "--switch_rate: needs --switch_to, such as every=4");
  }
  return d;
}

void Disturbances::Draw(std::mt19937_64* random, PlannedCall* call) const {
  if (Happens(cancel_rate, random)) {
    if (Happens(0.5, random)) {
      call->cancel_after_s = UpTo(cancel_within_s, random);
    } else {
      call->cancel_after_responses = OneOf(call->max_tokens, random);
    }
  }
  if (Happens(slow_reader_rate, random)) {
    call->read_delay_s = slow_reader_delay_s;
  }
  if (Happens(deadline_rate, random)) {
    call->deadline_s = UpTo(deadline_within_s, random);
  }
  if (Happens(switch_rate, random)) {
    const int count = static_cast<int>(switch_to.size());
    call->switch_to = switch_to[OneOf(count, random) - 1];
    call->switch_after_responses =
        OneOf(std::max(1, call->max_tokens - 1), random);
  }
}

}  // namespace strata
