#ifndef SERVER_FACES_H_
#define SERVER_FACES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "monitoring/metrics_page.h"
#include "server/access/port_security.h"
#include "server/admission.h"
#include "server/grpc_server.h"
#include "server/health/health_service.h"
#include "server/http/http_server.h"
#include "server/kserve/kserve_service.h"
#include "server/native/admin_service.h"
#include "server/native/inference_service.h"
#include "server/process/logging.h"
#include "server/process/model_host.h"
#include "server/process/options.h"
#include "server/serving_state.h"
#include "server/vllm/vllm_service.h"

namespace strata {

// The faces on their ports, from before the model is loaded until the end.
// Logs each request and each call of Admin.
//
// One thread calls it, main's.
class Faces {
 public:
  // Both outlive this.
  Faces(const ServerOptions& options, Logger* logger);

  // Opens the ports; calls are refused until Serve.
  absl::Status Open();

  // `host` outlives this.
  void Serve(ModelHost* host);

  // Not ready from now on; new calls are still taken.
  void BeginLeaving() { state_.BeginLeaving(); }
  // New calls are refused from now on.
  void BeginDrain() { state_.BeginDrain(); }

  // Waits until answers are written, no longer than `flush_limit`, and closes
  // the gRPC port.
  void Close(absl::Duration flush_limit);

  // HOST:PORT.  After Open.
  std::string grpc_address() const;
  std::string http_address() const;

 private:
  void CountRefusal();

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

}  // namespace strata

#endif  // SERVER_FACES_H_
