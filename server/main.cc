// strata_server: opens its ports, loads a model, serves it until SIGTERM.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "base/flags.h"
#include "server/faces.h"
#include "server/process/flags.h"
#include "server/process/library_log.h"
#include "server/process/logging.h"
#include "server/process/model_host.h"
#include "server/process/open_backend.h"
#include "server/process/options.h"
#include "server/process/stop_signal.h"
#include "server/version.h"

namespace strata {
namespace {

// After the drain: for what streams have not yet written.
constexpr absl::Duration kFlushLimit = absl::Seconds(5);

int Fail(const absl::Status& status) {
  std::cerr << "strata_server: " << std::string(status.message()) << std::endl;
  return 1;
}

// Loads the model, unless a signal comes first.
absl::StatusOr<std::unique_ptr<ModelHost>> LoadUnlessStopped(
    const ServerOptions& options, Logger* logger, StopSignal* stop,
    Faces* faces) {
  absl::StatusOr<std::unique_ptr<ModelHost>> host =
      absl::UnknownError("not loaded");
  std::thread loader([&] {
    host = ModelHost::Load(options, OpenBackend, logger);
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
  const LibraryLog library_log(&logger);
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

int Main(const std::vector<std::string>& args) {
  // Before any thread is started.
  StopSignal stop;
  if (WantsHelp(args)) {
    std::cout << HelpText();
    return 0;
  }
  if (std::ranges::count(args, "--version") > 0) {
    std::cout << "strata_server " << kVersion << std::endl;
    return 0;
  }
  const absl::StatusOr<ServerOptions> options = OptionsFromFlags(args);
  if (!options.ok()) return Fail(options.status());
  RaiseOpenFileLimit();
  return Serve(*options, &stop);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  return strata::Main({argv + 1, argv + argc});
}
