#include "tests/load/capacity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/flags/flag.h"
#include "base/check.h"
#include "tests/load/flag_range.h"

ABSL_FLAG(bool, find_capacity, false,
          "instead of one run, search for each strategy of --mix alone the "
          "highest --request_rate at which --attainment of the calls meet "
          "--goodput");
ABSL_FLAG(double, attainment, 0.95, "share of the calls that must be good");
ABSL_FLAG(double, probe_seconds, 20,
          "seconds of arrivals of each run of the search");
ABSL_FLAG(double, lowest_rate, 0.1, "calls per second where it gives up");
ABSL_FLAG(double, highest_rate, 1000, "calls per second where it stops");
ABSL_FLAG(double, rate_precision, 0.1,
          "how near the found rate and one that failed are, relative");

namespace strata {
namespace {

class Search {
 public:
  Search(const CapacityOptions& options, const ProbeRunner& run)
      : options_(options), run_(run) {}

  absl::StatusOr<Capacity> Run() {
    STRATA_RETURN_IF_ERROR(Bracket());
    // Bracketed by probes: 0 and infinity where there is none.
    while (passed_ > 0) {
      STRATA_RETURN_IF_ERROR(Bisect());
      STRATA_ASSIGN_OR_RETURN(const bool again, Passes(passed_, true));
      if (again) break;
      failed_ = passed_;
      passed_ = 0;
      for (const Probe& probe : capacity_.probes) {
        if (probe.rate_per_s < failed_ && IsGood(probe)) {
          passed_ = std::max(passed_, probe.rate_per_s);
        }
      }
      if (passed_ == 0) STRATA_RETURN_IF_ERROR(Descend());
    }
    capacity_.rate_per_s = passed_;
    capacity_.is_bounded = std::isfinite(failed_);
    return std::move(capacity_);
  }

 private:
  bool IsGood(const Probe& probe) const {
    return probe.attainment >= options_.attainment;
  }

  absl::StatusOr<bool> Passes(double rate, bool is_confirmation) {
    const int number = static_cast<int>(capacity_.probes.size());
    STRATA_ASSIGN_OR_RETURN(Probe probe, run_(rate, number));
    probe.rate_per_s = rate;
    probe.is_confirmation = is_confirmation;
    capacity_.probes.push_back(probe);
    return IsGood(probe);
  }

  absl::Status Try(double rate) {
    STRATA_ASSIGN_OR_RETURN(const bool passes, Passes(rate, false));
    (passes ? passed_ : failed_) = rate;
    return absl::OkStatus();
  }

  absl::Status Bracket() {
    STRATA_RETURN_IF_ERROR(
        Try(std::clamp(1.0, options_.lowest_rate, options_.highest_rate)));
    while (std::isinf(failed_) && passed_ < options_.highest_rate) {
      STRATA_RETURN_IF_ERROR(Try(std::min(2 * passed_, options_.highest_rate)));
    }
    return passed_ > 0 ? absl::OkStatus() : Descend();
  }

  // Halves the rate that failed until one passes.
  absl::Status Descend() {
    while (passed_ == 0 && failed_ > options_.lowest_rate) {
      STRATA_RETURN_IF_ERROR(Try(std::max(failed_ / 2, options_.lowest_rate)));
    }
    return absl::OkStatus();
  }

  absl::Status Bisect() {
    while (std::isfinite(failed_) &&
           failed_ / passed_ > 1 + options_.precision) {
      STRATA_RETURN_IF_ERROR(Try(std::sqrt(passed_ * failed_)));
    }
    return absl::OkStatus();
  }

  const CapacityOptions& options_;
  const ProbeRunner& run_;
  Capacity capacity_;
  double passed_ = 0;  // the highest that passed below failed_
  double failed_ = std::numeric_limits<double>::infinity();  // the lowest
};

}  // namespace

absl::StatusOr<CapacityOptions> CapacityOptions::FromFlags() {
  CapacityOptions options = {.find = absl::GetFlag(FLAGS_find_capacity),
                             .attainment = absl::GetFlag(FLAGS_attainment),
                             .seconds = absl::GetFlag(FLAGS_probe_seconds),
                             .lowest_rate = absl::GetFlag(FLAGS_lowest_rate),
                             .highest_rate = absl::GetFlag(FLAGS_highest_rate),
                             .precision = absl::GetFlag(FLAGS_rate_precision)};
  STRATA_RETURN_IF_ERROR(Within("attainment", options.attainment, 0.01, 1));
  STRATA_RETURN_IF_ERROR(Within("probe_seconds", options.seconds, 0.1, 1e5));
  STRATA_RETURN_IF_ERROR(
      Within("highest_rate", options.highest_rate, 1e-3, 1e6));
  STRATA_RETURN_IF_ERROR(
      Within("lowest_rate", options.lowest_rate, 1e-3, options.highest_rate));
  STRATA_RETURN_IF_ERROR(Within("rate_precision", options.precision, 0.01, 1));
  return options;
}

absl::StatusOr<Capacity> FindCapacity(const CapacityOptions& options,
                                      const ProbeRunner& run) {
  return Search(options, run).Run();
}

}  // namespace strata
