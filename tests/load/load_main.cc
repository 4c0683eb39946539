// ./strata load: many calls at once, under a mix of strategies; a report in the
// terms of `vllm bench serve`.

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/command_line.h"
#include "client/connection.h"
#include "client/connection_flags.h"
#include "client/interrupt.h"
#include "client/text_format.h"
#include "proto/strata.pb.h"
#include "tests/load/capacity_run.h"
#include "tests/load/options.h"
#include "tests/load/output_file.h"
#include "tests/load/plan.h"
#include "tests/load/progress.h"
#include "tests/load/report_json.h"
#include "tests/load/report_table.h"
#include "tests/load/run.h"
#include "tests/load/runner.h"
#include "tests/load/stop_button.h"
#include "tests/load/trace_maker.h"

ABSL_FLAG(std::string, make_trace, "",
          "mooncake or sharegpt: writes a trace of that form and shape to "
          "--trace, with --num_prompts calls or conversations, --request_rate "
          "and --seed, and needs no server");

namespace strata {
namespace {

constexpr char kUsage[] =
    "Loads a running server and reports latencies, throughput and KV bytes, in "
    "all and by strategy.  tests/load/README.md explains flags and report.\n"
    "Exits with 1 if a call failed (see --allow_errors), the server kept "
    "anything afterwards or its counters (--metrics) and the client's differ; "
    "with 2 for wrong flags.\n\n"
    "  ./strata load --concurrency=16 --mix=full:0.5,every=4:0.5\n"
    "  ./strata load --request_rate=4 --num_prompts=200 --report=FOLDER "
    "--metrics=127.0.0.1:8002\n"
    "  ./strata load --request_rate=8 --mix='full>every=4:1,every=4:1' "
    "--shared_prefix_tokens=128\n"
    "  ./strata load --make_trace=mooncake --trace=TRACE.jsonl, then "
    "--trace=TRACE.jsonl --length_scale=0.05\n"
    "  ./strata load --find_capacity --goodput=ttft:1000,tpot:60 "
    "--mix=full,every=4\n"
    "  ./strata load soak --help";

int Fail(int exit_status, const std::string& line) {
  absl::FPrintF(stderr, "strata load: %s\n", line);
  return exit_status;
}

int Fail(const absl::Status& status) {
  const bool is_flag =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return Fail(is_flag ? kBadCommandLine : kFailed,
              std::string(status.message()));
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

// What was cut is said before the run: its figures are of the cut calls.
void SayCuts(const Plan& plan, const v1::GetModelResponse& model) {
  if (plan.num_cut_prompts + plan.num_cut_outputs == 0) return;
  absl::FPrintF(stderr,
                "%d of %d prompts and %d outputs were cut to fit the model's "
                "context of %d tokens\n",
                plan.num_cut_prompts, plan.calls.size(), plan.num_cut_outputs,
                model.max_model_len());
}

void PrintReport(const RunResult& result, const LoadOptions& options) {
  const GroupReport& total = result.report.total;
  const RunFacts& facts = result.facts;
  absl::PrintF(
      "%s\n%s\n%d calls in %.1f s, at most %d at once; resident in the server "
      "at most %d, %.1f in the mean; KV peak %s\n",
      ReportTable(result.report, options.mix.Labels()),
      EconomyTable(result.report, options.mix.Labels()), total.num_calls(),
      total.duration_s, facts.max_concurrent_requests, facts.seen.running_peak,
      facts.seen.running_mean, FormatBytes(facts.seen.kv_bytes_peak));
  if (options.goodput.any()) {
    absl::PrintF("within the goodput limits: %d of %d completed\n", total.good,
                 total.completed);
  }
  if (options.disturbances.switch_rate > 0) {
    absl::PrintF("switched by Admin: %d, too late: %d\n", total.live_switches,
                 total.live_switches_late);
  }
  if (!options.metrics_address.empty()) {
    absl::PrintF("server memory over the second half: %+.1f MiB\n",
                 facts.memory_growth_bytes / (1 << 20));
  }
  for (const auto& [code, count] : total.errors) {
    absl::PrintF("failed with %s: %d\n", code, count);
  }
}

int MakeTrace(const std::string& form, const LoadOptions& options) {
  if (options.trace.path.empty()) {
    return Fail(kBadCommandLine,
                "--make_trace needs --trace, the file to write");
  }
  if (form != "mooncake" && form != "sharegpt") {
    return Fail(
        kBadCommandLine,
        absl::StrCat("--make_trace=", form, ": must be mooncake or sharegpt"));
  }
  auto file = OutputFile::Open(options.trace.path);
  if (!file.ok()) return Fail(file.status());
  const int count = options.num_prompts > 0 ? options.num_prompts : 1000;
  const double rate =
      std::isinf(options.request_rate) ? 3 : options.request_rate;
  const absl::Status written =
      file->Write(form == "mooncake" ? MakeMooncake(count, rate, options.seed)
                                     : MakeShareGpt(count, options.seed));
  return written.ok() ? 0 : Fail(written);
}

int RunCapacity(const LoadOptions& options, const Connection& connection,
                const v1::GetModelResponse& model, StopButton* stop,
                OutputFile* json) {
  const auto found = FindCapacities(options, connection, model, stop);
  if (!found.ok()) return Fail(found.status());
  absl::PrintF("%s", CapacityTable(*found));
  const absl::Status written =
      json->Write(CapacityJson(*found, options, model.name()));
  return written.ok() ? 0 : Fail(written);
}

int RunOnce(const LoadOptions& options, const Connection& connection,
            const v1::GetModelResponse& model, StopButton* stop,
            OutputFile* json, OutputFile* details) {
  const auto plan = PlanRun(options, model, connection);
  if (!plan.ok()) return Fail(plan.status());
  SayCuts(*plan, model);
  Runner runner(&options, &*plan, &connection);
  stop->Attach(&runner);
  ProgressBar bar(stderr);
  auto result =
      RunPlan(options, *plan, connection, &runner,
              [&bar](const Progress& progress) { bar.Show(progress); });
  stop->Attach(nullptr);
  bar.Clear();
  if (!result.ok()) return Fail(result.status());
  result->facts.model_id = model.name();
  PrintReport(*result, options);
  for (const auto& [file, records] :
       {std::pair(json, static_cast<const std::vector<CallRecord>*>(nullptr)),
        std::pair(details, static_cast<const std::vector<CallRecord>*>(
                               &result->records))}) {
    const absl::Status written = file->Write(
        ReportJson(result->report, options, result->facts, records));
    if (!written.ok()) return Fail(written);
  }
  const auto faults = Faults(*result, options);
  for (const std::string& fault : faults) Fail(kFailed, fault);
  return faults.empty() ? 0 : kFailed;
}

int RunLoad(const std::vector<std::string>& words) {
  if (!words.empty()) {
    return Fail(kBadCommandLine, "takes flags only; see --help");
  }
  const absl::StatusOr<LoadOptions> options = LoadOptionsFromFlags();
  if (!options.ok()) return Fail(options.status());
  const std::string form = absl::GetFlag(FLAGS_make_trace);
  if (!form.empty()) return MakeTrace(form, *options);
  // Opened now, so that a wrong path shows before the run.
  auto json = OutputFile::Open(options->json_path);
  if (!json.ok()) return Fail(json.status());
  auto details = OutputFile::OpenIn(options->report_folder, "report.json");
  if (!details.ok()) return Fail(details.status());
  StopButton stop;
  InterruptWatcher watcher([&stop] { stop.Press(); });
  const auto connection = Connection::Open(ConnectionOptionsFromFlags());
  if (!connection.ok()) return Fail(connection.status());
  v1::GetModelResponse model;
  if (const auto status = GetModel(**connection, &model); !status.ok()) {
    return Fail(kFailed, (*connection)->ErrorLine(status));
  }
  if (options->capacity.find) {
    return RunCapacity(*options, **connection, model, &stop, &*json);
  }
  return RunOnce(*options, **connection, model, &stop, &*json, &*details);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::RunLoad(
      strata::WordsOfCommandLine("strata load", strata::kUsage, argc, argv));
}
