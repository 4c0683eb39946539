#include "server/faces.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "server/http/operator_pages.h"
#include "server/transport/listen_address.h"

namespace strata {
namespace {

// After the flush: for the answers of calls that take no time, and of watches.
constexpr absl::Duration kShortCallLimit = absl::Milliseconds(100);

// `status` with the names of the flags that set what it speaks of.
absl::Status OfFlags(absl::string_view flags, const absl::Status& status) {
  return {status.code(), absl::StrCat(flags, ": ", status.message())};
}

// What is not known of a call that was refused or cut is left out.
void LogRequest(const RequestLog& log, Logger* logger) {
  const bool is_accepted = log.num_sequences > 0;
  const auto if_accepted = [&](int value) {
    return is_accepted ? std::optional(value) : std::nullopt;
  };
  const bool is_whole = is_accepted && log.num_ended == log.num_sequences;
  logger->Info("request",
               {{"method", log.method},
                {"id", log.id},
                {"label", log.label},
                {"strategy", log.strategy},
                {"n", if_accepted(log.num_sequences)},
                {"prompt_tokens", if_accepted(log.prompt_tokens)},
                {"cached_tokens", if_accepted(log.cached_tokens)},
                {"generated_tokens", if_accepted(log.generated_tokens)},
                {"switches", if_accepted(log.num_switches)},
                {"preemptions", if_accepted(log.num_preemptions)},
                {"kv_bytes", is_whole ? std::optional(log.kv_bytes_of_ended)
                                      : std::nullopt},
                {"queue_seconds", log.queue_seconds},
                {"prefill_seconds", log.prefill_seconds},
                {"decode_seconds", log.decode_seconds},
                {"seconds", absl::ToDoubleSeconds(log.total)},
                {"status", absl::StatusCodeToString(log.status.code())},
                {"message", std::string(log.status.message())}});
}

void LogAdmin(const AdminLog& log, Logger* logger) {
  logger->Info("admin",
               {{"method", log.method},
                {"peer", log.peer},
                {"change", log.change},
                {"status", absl::StatusCodeToString(log.status.code())},
                {"message", std::string(log.status.message())}});
}

}  // namespace

Faces::Faces(const ServerOptions& options, Logger* logger)
    : options_(options),
      logger_(logger),
      admission_(
          &state_, [logger](const RequestLog& log) { LogRequest(log, logger); },
          {.max_calls = options.MaxLiveCalls(),
           .max_answer_bytes = static_cast<size_t>(options.MaxMessageBytes())}),
      inference_(&admission_),
      kserve_(&admission_),
      vllm_(&admission_, {.model_path = options.model,
                          .max_sequences = options.max_sequences}),
      admin_(&state_,
             options.admin_key_file.empty() ? AdminService::Callers::kOnThisHost
                                            : AdminService::Callers::kAll,
             {.demote_under_pressure = options.demote_under_pressure,
              .pressure_threshold = options.pressure_threshold},
             [logger](const AdminLog& log) { LogAdmin(log, logger); }),
      health_(&state_) {}

absl::Status Faces::Open() {
  auto security =
      PortSecurity::Open(options_, logger_, [this] { CountRefusal(); });
  if (!security.ok()) return security.status();
  security_ = *std::move(security);
  auto grpc =
      GrpcServer::Start({.host = options_.host,
                         .port = options_.grpc_port,
                         .max_message_bytes = options_.MaxMessageBytes(),
                         .max_streams = options_.MaxConcurrentStreams(),
                         .keepalive_time = options_.keepalive_time,
                         .keepalive_timeout = options_.keepalive_timeout,
                         .reflection = options_.reflection != "off",
                         .credentials = security_->credentials()},
                        {&inference_, &kserve_, &vllm_, &admin_, &health_});
  if (!grpc.ok()) return OfFlags("--host, --grpc_port", grpc.status());
  grpc_ = *std::move(grpc);
  auto http = HttpServer::Start(
      options_.host, options_.http_port,
      OperatorPages(
          &state_, &metrics_page_,
          options_.metrics_need_key ? &security_->access() : nullptr));
  if (!http.ok()) return OfFlags("--host, --http_port", http.status());
  http_ = *std::move(http);
  return absl::OkStatus();
}

void Faces::Serve(ModelHost* host) {
  metrics_page_.Publish(host->metrics());
  state_.Publish(&host->served());
}

void Faces::Close(absl::Duration flush_limit) {
  health_.EndWatches();
  admission_.WaitForCalls(flush_limit);
  // Idle connections would keep it waiting for all of a longer time.
  if (grpc_ != nullptr) grpc_->Shutdown(absl::Now() + kShortCallLimit);
}

std::string Faces::grpc_address() const {
  return JoinHostPort(options_.host, grpc_->port());
}
std::string Faces::http_address() const {
  return JoinHostPort(options_.host, http_->port());
}

void Faces::CountRefusal() {
  if (const ServedModel* model = state_.model()) {
    model->metrics->RecordRejection(Metrics::Rejection::kNoAccess);
  }
}

}  // namespace strata
