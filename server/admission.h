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

struct AdmissionLimits {
  // Live at once, of all connections and faces.  The engine bounds those that
  // it has; others have ended there and wait for their readers.
  int max_calls = 1024;
  size_t max_answer_bytes = 64 << 20;  // one message to a client
};

// The one way of requests from every face to the engine: refuses them while the
// server does not serve or has too many, validates, counts refusals, submits;
// encodes long texts on threads of its own.
//
// Thread-safe.
class Admission {
 public:
  // `state` outlives this; `logger` may be null.
  Admission(const ServingState* state, RequestLogger logger,
            const AdmissionLimits& limits = {});

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

  // OUT_OF_RANGE: gRPC would not send an answer of this size.
  absl::Status CheckAnswerSize(size_t bytes) const;

  // Counts and logs a message that cannot be parsed.
  absl::Status RefuseMalformed(const char* method) const;

  // Returns when no call that began lives; false if one does after `limit`.
  bool WaitForCalls(absl::Duration limit) { return live_.WaitForNone(limit); }

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

  // RESOURCE_EXHAUSTED, counted, if a call that has just come is one too many.
  absl::Status CheckRoom(int num_live) const;
  void CountInvalid() const;

  const ServingState* const state_;
  const RequestLogger log_only_;  // may be null
  const RequestLogger logger_;    // counts too
  const AdmissionLimits limits_;
  LiveCalls live_;
  TextWorkers workers_;  // last: uses the others
};

// When the client wants the call to be over.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context);

}  // namespace strata

#endif  // SERVER_ADMISSION_H_
