#ifndef TESTS_LOAD_RUN_H_
#define TESTS_LOAD_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "tests/load/options.h"
#include "tests/load/plan.h"
#include "tests/load/report.h"
#include "tests/load/report_json.h"
#include "tests/load/runner.h"

namespace strata {

// A run and what it came to.
struct RunResult {
  std::vector<CallRecord> records;
  Report report;
  RunFacts facts;
};

// Carries out `plan` by `runner`, which was made for it and for `connection`,
// watches the server meanwhile, and holds it against the invariants afterwards.
// UNAVAILABLE, INVALID_ARGUMENT: the metrics page does not answer beforehand.
absl::StatusOr<RunResult> RunPlan(const LoadOptions& options, const Plan& plan,
                                  const Connection& connection, Runner* runner,
                                  const Runner::ProgressSink& progress);

// What makes the run a failure, a line each; empty: it succeeded.
std::vector<std::string> Faults(const RunResult& result,
                                const LoadOptions& options);

}  // namespace strata

#endif  // TESTS_LOAD_RUN_H_
