#include "client/summary.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "client/text_format.h"
#include "proto/strata.pb.h"

namespace strata {

std::string Summary(const GenerationResult& result) {
  const v1::Usage& usage = result.done.usage();
  std::string line = absl::StrFormat(
      "%d tokens (%d prompt", usage.generated_tokens(), usage.prompt_tokens());
  if (usage.cached_tokens() > 0) {
    absl::StrAppendFormat(&line, ", %d of them cached", usage.cached_tokens());
  }
  const uint64_t held = usage.kv_bytes();
  const uint64_t full = usage.kv_bytes_full();
  absl::StrAppendFormat(
      &line, ")  %.1f tok/s  TTFT %.0f ms  KV held %s, saved %s  strategy %s",
      result.DecodeTokensPerSecond(), 1e3 * result.first_token_s,
      FormatBytes(held), FormatBytes(full > held ? full - held : 0),
      usage.strategy());
  for (const v1::SwitchRecord& record : usage.switches()) {
    absl::StrAppendFormat(&line, "  after %d tokens: %s (freed %s)",
                          record.after_generated(), record.strategy(),
                          FormatBytes(record.freed_bytes()));
  }
  if (usage.preemptions() > 0) {
    absl::StrAppendFormat(&line, "  pre-empted %dx", usage.preemptions());
  }
  return line;
}

}  // namespace strata
