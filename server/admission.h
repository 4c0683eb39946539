#ifndef SERVER_ADMISSION_H_
#define SERVER_ADMISSION_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/request.h"
#include "server/engine_call.h"
#include "server/live_calls.h"
#include "server/request_log.h"
#include "server/serving_state.h"
#include "server/text_workers.h"

namespace strata {

// The one way of requests from every face to the engine: refuses them while the
// server does not serve, validates, counts refusals, submits; encodes long
// texts on threads of its own.
//
// Thread-safe.
class Admission {
 public:
  // `state` outlives this; `logger` may be null.
  Admission(const ServingState* state, RequestLogger logger);

  const ServingState& state() const { return *state_; }

  // What every call that began must be told, once, when it is over.
  const RequestLogger& logger() const { return logger_; }

  // Submits a request, or refuses it; at once or, where its text is long,
  // later.  `context` lives until the call is over, `message` as long as
  // `call`.  Message: v1::GenerateRequest, v1::ScoreRequest.
  template <typename Message>
  void Begin(const grpc::CallbackServerContext* context, absl::Time deadline,
             const Message* message, const std::shared_ptr<EngineCall>& call);

  // The same for a request that the face itself refuses.
  void Refuse(const absl::Status& invalid,
              const std::shared_ptr<EngineCall>& call);

  // Calls `work` once, with an error if it is too late for it: at once for
  // texts of few bytes (or ids), else on another thread.
  void RunText(const grpc::CallbackServerContext* context, size_t size,
               std::function<void(const absl::Status&)> work);

  // Counts and logs a message that cannot be parsed.
  absl::Status RefuseMalformed(const char* method) const;

  // Returns when no call that began lives, or after `limit`.
  void WaitForCalls(absl::Duration limit) { live_.WaitForNone(limit); }

 private:
  // A request that may be served, with what serves it.
  struct Admitted {
    const ServedModel* model;
    Request request;
  };
  // Validates and counts a refusal.
  template <typename Message>
  absl::StatusOr<Admitted> Admit(const Message& message,
                                 absl::Time deadline) const;

  void CountInvalid() const;

  const ServingState* const state_;
  const RequestLogger log_only_;  // may be null
  const RequestLogger logger_;    // counts too
  LiveCalls live_;
  TextWorkers workers_;  // last: uses the others
};

// When the client wants the call to be over.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context);

}  // namespace strata

#endif  // SERVER_ADMISSION_H_
