// ./strata load: many calls at once, under a mix of strategies; a report in the
// terms of `vllm bench serve`.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/connection_flags.h"
#include "client/interrupt.h"
#include "client/text_format.h"
#include "proto/strata.pb.h"
#include "tests/load/invariants.h"
#include "tests/load/load_watch.h"
#include "tests/load/options.h"
#include "tests/load/plan.h"
#include "tests/load/progress.h"
#include "tests/load/report.h"
#include "tests/load/report_json.h"
#include "tests/load/report_table.h"
#include "tests/load/runner.h"

namespace strata {
namespace {

constexpr char kUsage[] =
    "Loads a running server and reports latencies, throughput and KV bytes, in "
    "all and by strategy.\n"
    "Exits with 1 if a call failed (see --allow_errors) or the server kept "
    "anything afterwards.\n\n"
    "  ./strata load --concurrency=16 --mix=full:0.5,every=4:0.5\n"
    "  ./strata load --request_rate=4 --num_prompts=200 --json=report.json\n"
    "  ./strata load --request_rate=8 --mix='full>every=4:1,every=4:1' "
    "--shared_prefix_tokens=128";

int Fail(const std::string& line) {
  absl::FPrintF(stderr, "strata load: %s\n", line);
  return 1;
}

grpc::Status GetModel(const Connection& connection,
                      v1::GetModelResponse* model) {
  grpc::ClientContext context;
  connection.Authorize(&context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  const grpc::Status status = connection.stub()->GetModel(&context, {}, model);
  if (status.ok() && (model->vocab_size() < 1 || model->max_model_len() < 2)) {
    return {grpc::StatusCode::INTERNAL,
            "GetModel names no vocabulary or no context"};
  }
  return status;
}

void PrintReport(const Report& report, const LoadOptions& options,
                 const RunFacts& facts) {
  absl::PrintF(
      "%s\n%s\n%d calls in %.1f s, at most %d at once; resident in the server "
      "at most %d, %.1f in the mean; KV peak %s\n",
      ReportTable(report, options.mix.Labels()),
      EconomyTable(report, options.mix.Labels()),
      report.total.completed + report.total.failed + report.total.cancelled,
      report.total.duration_s, facts.max_concurrent_requests,
      facts.seen.running_peak, facts.seen.running_mean,
      FormatBytes(facts.seen.kv_bytes_peak));
  if (options.goodput.any()) {
    absl::PrintF("within the goodput limits: %d of %d completed\n",
                 report.total.good, report.total.completed);
  }
  for (const auto& [code, count] : report.total.errors) {
    absl::PrintF("failed with %s: %d\n", code, count);
  }
}

// What makes the run a failure; empty: it succeeded.
std::vector<std::string> Faults(const Report& report,
                                const std::vector<CallRecord>& records,
                                const LoadOptions& options,
                                const RunFacts& facts) {
  std::vector<std::string> faults = facts.violations;
  for (const auto& [code, count] : report.total.errors) {
    if (options.allow_errors.contains(code)) continue;
    for (const CallRecord& record : records) {
      if (record.outcome() == CallRecord::Outcome::kFailed &&
          CodeName(record.status.error_code()) == code) {
        faults.push_back(absl::StrCat(
            count, " calls failed with ", code,
            "; the first: ", OneLine(record.status.error_message())));
        break;
      }
    }
  }
  return faults;
}

int RunLoad(int num_words) {
  if (num_words > 0) return Fail("takes flags only; see --help");
  const absl::StatusOr<LoadOptions> options = LoadOptionsFromFlags();
  if (!options.ok()) return Fail(std::string(options.status().message()));
  const auto connection = Connection::Open(ConnectionOptionsFromFlags());
  if (!connection.ok()) {
    return Fail(std::string(connection.status().message()));
  }
  std::vector<PlannedCall> plan;
  Runner runner(&*options, &plan, connection->get());
  InterruptWatcher watcher([&runner] { runner.Stop(); });
  v1::GetModelResponse model;
  if (const auto status = GetModel(**connection, &model); !status.ok()) {
    return Fail((*connection)->ErrorLine(status));
  }
  plan = MakePlan(*options, model);

  ProgressBar bar(stderr);
  LoadWatch watch(connection->get());
  const absl::Time start = absl::Now();
  const std::vector<CallRecord> records =
      runner.Run([&bar](const Progress& progress) { bar.Show(progress); });
  const double duration_s = absl::ToDoubleSeconds(absl::Now() - start);
  bar.Clear();

  RunFacts facts = {.model_id = model.name(),
                    .max_concurrent_requests = runner.max_concurrent(),
                    .seen = watch.Stop(),
                    .violations = CheckTokens(records)};
  for (const std::string& line : CheckIdle(**connection, absl::Seconds(5))) {
    facts.violations.push_back(line);
  }
  const Report report =
      MakeReport(records, static_cast<int>(options->mix.items().size()),
                 options->goodput, duration_s);
  PrintReport(report, *options, facts);
  if (!options->json_path.empty()) {
    std::ofstream file(options->json_path);
    file << ReportJson(report, *options, facts) << std::flush;
    if (!file) return Fail(options->json_path + ": cannot be written");
  }
  const auto faults = Faults(report, records, *options, facts);
  for (const std::string& fault : faults) Fail(fault);
  return faults.empty() ? 0 : 1;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  strata::ShowOwnFlagsInHelp(strata::kUsage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  return strata::RunLoad(static_cast<int>(rest.size()) - 1);
}
