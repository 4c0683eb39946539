#include "tests/load/invariants.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/strata.pb.h"

namespace strata {

std::vector<std::string> CheckTokens(const std::vector<CallRecord>& records) {
  int num_wrong = 0;
  int64_t received = 0;
  int64_t counted = 0;
  for (const CallRecord& record : records) {
    if (!record.has_usage) continue;
    received += record.num_received;
    counted += record.generated_tokens;
    if (record.num_received != record.generated_tokens) ++num_wrong;
  }
  if (num_wrong == 0) return {};
  return {absl::StrCat(num_wrong,
                       " calls received other tokens than their "
                       "usage says: ",
                       received, " in all, usage says ", counted)};
}

std::vector<std::string> CheckIdle(const Connection& connection,
                                   absl::Duration patience) {
  const absl::Time give_up = absl::Now() + patience;
  while (true) {
    grpc::ClientContext context;
    connection.Authorize(&context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    v1::GetLoadResponse load;
    const grpc::Status status = connection.stub()->GetLoad(&context, {}, &load);
    if (status.ok() && load.running() == 0 && load.waiting() == 0 &&
        load.kv_used_bytes() == 0 && load.kv_reserved_bytes() == 0) {
      return {};
    }
    if (absl::Now() >= give_up) {
      if (!status.ok()) return {connection.ErrorLine(status)};
      return {absl::StrCat(
          "after the run the server still has ", load.running(), " running, ",
          load.waiting(), " waiting, ", load.kv_used_bytes(),
          " KV bytes used, ", load.kv_reserved_bytes(), " reserved")};
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
}

namespace {

// What the calls of a run allow the server to have counted.
struct Expected {
  double calls = 0;
  double whole = 0;  // certainly ended by themselves
  double open = 0;   // ended by their clients, who know not how far they were
  double refused_full = 0;
  double began = 0;  // had a token, so were accepted
  double received = 0;
  double may_have_more = 0;  // tokens of the open ones
  double prompt_tokens = 0;  // of those that began
  double prompt_more = 0;    // of those that may have
  bool knows_prompts = true;
};

Expected Expect(const std::vector<CallRecord>& records) {
  using Outcome = CallRecord::Outcome;
  Expected e;
  e.calls = static_cast<double>(records.size());
  for (const CallRecord& record : records) {
    const Outcome outcome = record.outcome();
    const bool refused =
        record.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    const bool began =
        outcome == Outcome::kCompleted || record.num_received > 0;
    const double prompt = static_cast<double>(
        record.has_usage ? record.prompt_tokens : record.planned_prompt_tokens);
    e.knows_prompts = e.knows_prompts && (prompt > 0 || refused);
    e.received += static_cast<double>(record.num_received);
    e.whole += outcome == Outcome::kCompleted;
    e.refused_full += refused;
    e.began += began;
    if (began) e.prompt_tokens += prompt;
    if (outcome == Outcome::kCompleted || refused) continue;
    ++e.open;
    e.may_have_more +=
        static_cast<double>(record.max_tokens - record.num_received);
    if (!began) e.prompt_more += prompt;
  }
  return e;
}

void Between(const char* what, double counted, double low, double high,
             std::vector<std::string>* wrong) {
  if (counted >= low && counted <= high) return;
  wrong->push_back(absl::StrFormat(
      "the server counted %.0f %s, the client's calls allow %.0f to %.0f",
      counted, what, low, high));
}

}  // namespace

std::vector<std::string> CheckCounters(const ServerPage& before,
                                       const ServerPage& after,
                                       const std::vector<CallRecord>& records) {
  const Expected e = Expect(records);
  std::vector<std::string> wrong;
  const double finished = after.finished - before.finished;
  const double rejected = after.rejected - before.rejected;
  Between("calls", finished + rejected, e.calls - e.open, e.calls, &wrong);
  Between("accepted calls", finished, e.began, e.calls - e.refused_full,
          &wrong);
  Between("whole answers", after.finished_whole - before.finished_whole,
          e.whole, e.whole + e.open, &wrong);
  Between("errors of its own", after.finished_errors - before.finished_errors,
          0, 0, &wrong);
  Between("calls refused by a full queue",
          after.rejected_queue_full - before.rejected_queue_full,
          e.refused_full, e.refused_full + e.open, &wrong);
  Between("generated tokens",
          after.generation_tokens - before.generation_tokens, e.received,
          e.received + e.may_have_more, &wrong);
  if (e.knows_prompts) {
    Between("prompt tokens", after.prompt_tokens - before.prompt_tokens,
            e.prompt_tokens, e.prompt_tokens + e.prompt_more, &wrong);
  }
  Between("bytes of orphan KV pages", after.kv_held_bytes, 0, 0, &wrong);
  Between("KV bytes in all states", after.kv_bytes, after.kv_pool_bytes,
          after.kv_pool_bytes, &wrong);
  return wrong;
}

std::vector<std::string> CheckPage(const ServerPage& before,
                                   const std::string& metrics_address,
                                   const std::vector<CallRecord>& records,
                                   absl::Duration patience) {
  const absl::Time give_up = absl::Now() + patience;
  while (true) {
    const auto after = ScrapeServerPage(metrics_address);
    std::vector<std::string> wrong =
        after.ok()
            ? CheckCounters(before, *after, records)
            : std::vector<std::string>{std::string(after.status().message())};
    if (wrong.empty() || absl::Now() >= give_up) return wrong;
    absl::SleepFor(absl::Milliseconds(100));
  }
}

}  // namespace strata
