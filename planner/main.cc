// ./strata plan: capacity and speed at best, before anything is run.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/flags.h"
#include "planner/plan_flags.h"
#include "planner/run_plan.h"

namespace strata {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "strata plan: %s\n",
               std::string(status.message()).c_str());
  return absl::IsUnavailable(status) ? 1 : 2;
}

int Main(const std::vector<std::string>& args) {
  if (WantsHelp(args)) {
    std::fputs(PlanHelp().c_str(), stdout);
    return 0;
  }
  const auto flags = PlanFlagsFrom(args);
  if (!flags.ok()) return Fail(flags.status());
  const auto text = RunPlan(*flags);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::Main({argv + 1, argv + argc});
}
