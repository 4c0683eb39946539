#include "server/request_log.h"

namespace strata {

RequestLog StartLog(std::string_view method, const Request& request) {
  RequestLog log;
  log.method = method;
  log.label = request.label;
  log.strategy = request.strategy.canonical();
  log.num_sequences = request.num_sequences;
  log.prompt_tokens = static_cast<int>(request.prompt.size());
  return log;
}

void AddUsage(const Usage& usage, RequestLog* log) {
  if (log->generated_tokens == 0) {
    log->queue_seconds = usage.queue_seconds;
    log->prefill_seconds = usage.prefill_seconds;
    log->decode_seconds = usage.decode_seconds;
  }
  log->strategy = usage.strategy;
  log->generated_tokens += usage.generated_tokens;
  log->kv_bytes += usage.kv_bytes;
}

}  // namespace strata
