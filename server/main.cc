// strata_server: opens its ports, loads a model, serves it until SIGTERM.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "monitoring/metrics_page.h"
#include "server/access/port_security.h"
#include "server/admission.h"
#include "server/grpc_server.h"
#include "server/health/health_service.h"
#include "server/http/http_server.h"
#include "server/http/operator_pages.h"
#include "server/kserve/kserve_service.h"
#include "server/native/admin_service.h"
#include "server/native/inference_service.h"
#include "server/process/flags.h"
#include "server/process/logging.h"
#include "server/process/model_host.h"
#include "server/process/options.h"
#include "server/process/stop_signal.h"
#include "server/serving_state.h"
#include "server/transport/listen_address.h"
#include "server/vllm/vllm_service.h"

namespace strata {
namespace {

// After the drain: for what streams have not yet written.
constexpr absl::Duration kFlushLimit = absl::Seconds(5);
// After that: for the answers of calls that take no time, and of watches.
constexpr absl::Duration kShortCallLimit = absl::Milliseconds(100);

int Fail(const absl::Status& status) {
  std::cerr << "strata_server: " << std::string(status.message()) << std::endl;
  return 1;
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

// The faces on their ports, from before the model is loaded until the end.
class Faces {
 public:
  Faces(const ServerOptions& options, Logger* logger)
      : options_(options),
        logger_(logger),
        admission_(&state_,
                   [logger](const RequestLog& log) { LogRequest(log, logger); },
                   {.max_calls = options.MaxLiveCalls(),
                    .max_answer_bytes =
                        static_cast<size_t>(options.MaxMessageBytes())}),
        inference_(&admission_),
        kserve_(&admission_),
        vllm_(&admission_, {.model_path = options.model,
                            .max_sequences = options.max_sequences}),
        admin_(&state_, options.admin_key_file.empty()
                            ? AdminService::Callers::kOnThisHost
                            : AdminService::Callers::kAll,
               [logger](const AdminLog& log) { LogAdmin(log, logger); }),
        health_(&state_) {}

  absl::Status Open() {
    auto security =
        PortSecurity::Open(options_, logger_, [this] { CountRefusal(); });
    if (!security.ok()) return security.status();
    security_ = *std::move(security);
    auto grpc = GrpcServer::Start(
        {.host = options_.host,
         .port = options_.grpc_port,
         .max_message_bytes = options_.MaxMessageBytes(),
         .max_streams = options_.MaxConcurrentStreams(),
         .keepalive_time = options_.keepalive_time,
         .keepalive_timeout = options_.keepalive_timeout,
         .reflection = options_.reflection != "off",
         .credentials = security_->credentials()},
        {&inference_, &kserve_, &vllm_, &admin_, &health_});
    if (!grpc.ok()) return grpc.status();
    grpc_ = *std::move(grpc);
    auto http = HttpServer::Start(
        options_.host, options_.http_port,
        OperatorPages(&state_, &metrics_page_,
                      options_.metrics_need_key ? &security_->access()
                                                : nullptr));
    if (!http.ok()) return http.status();
    http_ = *std::move(http);
    return absl::OkStatus();
  }

  void Serve(ModelHost* host) {
    metrics_page_.Publish(host->metrics());
    state_.Publish(&host->served());
  }

  // Not ready from now on; new calls are still taken.
  void BeginLeaving() { state_.BeginLeaving(); }
  // New calls are refused from now on.
  void BeginDrain() { state_.BeginDrain(); }

  void Close(absl::Duration flush_limit) {
    health_.EndWatches();
    admission_.WaitForCalls(flush_limit);
    // Idle connections would keep it waiting for all of a longer time.
    if (grpc_ != nullptr) grpc_->Shutdown(absl::Now() + kShortCallLimit);
  }

  std::string grpc_address() const {
    return JoinHostPort(options_.host, grpc_->port());
  }
  std::string http_address() const {
    return JoinHostPort(options_.host, http_->port());
  }

 private:
  void CountRefusal() {
    if (const ServedModel* model = state_.model()) {
      model->metrics->RecordRejection(Metrics::Rejection::kNoAccess);
    }
  }

  const ServerOptions& options_;
  Logger* const logger_;
  ServingState state_;
  MetricsPage metrics_page_;
  Admission admission_;
  InferenceService inference_;
  kserve::KServeService kserve_;
  vllm::VllmService vllm_;
  AdminService admin_;
  HealthService health_;
  std::unique_ptr<PortSecurity> security_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<HttpServer> http_;
};

// Loads the model, unless a signal comes first.
absl::StatusOr<std::unique_ptr<ModelHost>> LoadUnlessStopped(
    const ServerOptions& options, Logger* logger, StopSignal* stop,
    Faces* faces) {
  absl::StatusOr<std::unique_ptr<ModelHost>> host =
      absl::UnknownError("not loaded");
  std::thread loader([&] {
    host = ModelHost::Load(options, logger);
    stop->Wake();
  });
  if (stop->Wait()) {
    logger->Info("stopped", {{"while", "loading"}});
    faces->BeginDrain();
    faces->Close(absl::ZeroDuration());
    // Loading cannot be interrupted, and nothing is lost with it.
    std::_Exit(0);
  }
  loader.join();
  return host;
}

int Serve(const ServerOptions& options, StopSignal* stop) {
  Logger logger(
      options.log_format == "json" ? LogFormat::kJson : LogFormat::kText,
      STDERR_FILENO);
  std::unique_ptr<ModelHost> host;  // outlives the faces
  Faces faces(options, &logger);
  if (const absl::Status status = faces.Open(); !status.ok()) {
    faces.Close(absl::ZeroDuration());
    return Fail(status);
  }
  auto loaded = LoadUnlessStopped(options, &logger, stop, &faces);
  if (!loaded.ok()) {
    faces.Close(absl::ZeroDuration());
    return Fail(loaded.status());
  }
  host = *std::move(loaded);
  faces.Serve(host.get());
  logger.Info("ready", {{"model", host->served().name},
                        {"grpc", faces.grpc_address()},
                        {"http", faces.http_address()}});
  std::cout << "listening grpc=" << faces.grpc_address()
            << " http=" << faces.http_address() << std::endl;

  stop->Wait();
  if (options.shutdown_delay > absl::ZeroDuration()) {
    logger.Info("leaving", {{"delay_seconds",
                             absl::ToDoubleSeconds(options.shutdown_delay)}});
    faces.BeginLeaving();
    absl::SleepFor(options.shutdown_delay);
  }
  const LoadReport load = host->engine()->GetLoad();
  logger.Info("drain", {{"running", load.running},
                        {"waiting", load.waiting},
                        {"timeout_seconds",
                         absl::ToDoubleSeconds(options.drain_timeout)}});
  faces.BeginDrain();
  host->engine()->Drain(options.drain_timeout);
  logger.Info("drained", {});
  faces.Close(kFlushLimit);
  logger.Info("stopped", {});
  return 0;
}

// Each connection is an open file, and gRPC closes a port for good when it may
// open no more.  The default limit of 1,024 is for programs that use select.
void RaiseOpenFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(std::vector<char*> argv) {
  // Before any thread is started.
  StopSignal stop;
  if (WantsHelp(argv)) {
    std::cout << HelpText();
    return 0;
  }
  const absl::StatusOr<ServerOptions> options = OptionsFromFlags(argv);
  if (!options.ok()) return Fail(options.status());
  RaiseOpenFileLimit();
  return Serve(*options, &stop);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::Main(std::vector<char*>(argv, argv + argc));
}
