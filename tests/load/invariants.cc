#include "tests/load/invariants.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
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

}  // namespace strata
