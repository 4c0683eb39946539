#include "tests/load/run.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "client/text_format.h"
#include "tests/load/invariants.h"
#include "tests/load/load_watch.h"
#include "tests/load/server_page.h"

namespace strata {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

void Append(std::vector<std::string> more, std::vector<std::string>* lines) {
  lines->insert(lines->end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

// The first failed call's words for `code`.
std::string FirstMessage(const std::vector<CallRecord>& records,
                         const std::string& code) {
  for (const CallRecord& record : records) {
    if (record.outcome() == CallRecord::Outcome::kFailed &&
        CodeName(record.status.error_code()) == code) {
      return OneLine(record.status.error_message());
    }
  }
  return "";
}

std::string FirstSwitchMessage(const std::vector<CallRecord>& records) {
  for (const CallRecord& record : records) {
    if (record.live_switch == CallRecord::LiveSwitch::kFailed) {
      return OneLine(record.live_switch_status.error_message());
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<RunResult> RunPlan(const LoadOptions& options, const Plan& plan,
                                  const Connection& connection, Runner* runner,
                                  const Runner::ProgressSink& progress) {
  const std::string& page_address = options.metrics_address;
  ServerPage before;
  if (!page_address.empty()) {
    STRATA_ASSIGN_OR_RETURN(before, ScrapeServerPage(page_address));
  }
  LoadWatch watch(&connection, page_address);
  const absl::Time start = absl::Now();
  RunResult result;
  result.records = runner->Run(progress);
  const double duration_s = absl::ToDoubleSeconds(absl::Now() - start);
  RunFacts& facts = result.facts;
  facts.max_concurrent_requests = runner->max_concurrent();
  facts.seen = watch.Stop();
  facts.memory_growth_bytes = MemoryGrowth(facts.seen.samples);
  facts.num_cut_prompts = plan.num_cut_prompts;
  facts.num_cut_outputs = plan.num_cut_outputs;
  facts.violations = CheckTokens(result.records);
  Append(CheckIdle(connection, kPatience), &facts.violations);
  if (!page_address.empty()) {
    Append(CheckPage(before, page_address, result.records, kPatience),
           &facts.violations);
  }
  if (options.max_memory_growth_bytes > 0 &&
      facts.memory_growth_bytes > options.max_memory_growth_bytes) {
    facts.violations.push_back(absl::StrCat(
        "the server's memory grew by ",
        FormatBytes(static_cast<uint64_t>(facts.memory_growth_bytes)),
        " over the second half of the run"));
  }
  result.report =
      MakeReport(result.records, static_cast<int>(options.mix.items().size()),
                 options.goodput, duration_s);
  return result;
}

std::vector<std::string> Faults(const RunResult& result,
                                const LoadOptions& options) {
  std::vector<std::string> faults = result.facts.violations;
  const GroupReport& total = result.report.total;
  for (const auto& [code, count] : total.errors) {
    if (options.allow_errors.contains(code)) continue;
    faults.push_back(
        absl::StrCat(count, " calls failed with ", code,
                     "; the first: ", FirstMessage(result.records, code)));
  }
  for (const auto& [code, count] : total.live_switch_errors) {
    faults.push_back(absl::StrCat(
        count, " switches failed with ", code,
        "; the first of all: ", FirstSwitchMessage(result.records)));
  }
  return faults;
}

}  // namespace strata
