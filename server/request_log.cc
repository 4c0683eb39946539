#include "server/request_log.h"

namespace strata {

RequestLog StartLog(std::string_view method, const std::string& label) {
  RequestLog log;
  log.method = method;
  log.label = label;
  return log;
}

void Describe(const Request& request, RequestLog* log) {
  log->strategy = request.strategy.canonical();
  log->num_sequences = request.num_sequences;
  log->prompt_tokens = static_cast<int>(request.prompt.size());
}

void AddUsage(const Usage& usage, RequestLog* log) {
  if (log->num_ended == 0) {
    log->queue_seconds = usage.queue_seconds;
    log->prefill_seconds = usage.prefill_seconds;
    log->decode_seconds = usage.decode_seconds;
  }
  ++log->num_ended;
  log->cached_tokens += usage.cached_tokens;
  log->num_switches += static_cast<int>(usage.switches.size());
  log->num_preemptions += usage.preemptions;
  log->strategy = usage.strategy;
  log->kv_bytes_of_ended += usage.kv_bytes;
}

}  // namespace strata
