#include "server/admission.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/fit_request.h"
#include "proto/strata.pb.h"
#include "server/received.h"
#include "server/request.h"

namespace strata {
namespace {

// Texts of more bytes, or ids, take longer than a switch of threads costs.
constexpr size_t kMaxInlineSize = 8 << 10;
constexpr int kNumTextThreads = 2;
constexpr size_t kMaxWaitingTexts = 256;

absl::Status CheckInTime(const grpc::CallbackServerContext& context) {
  if (DeadlineOf(context) <= absl::Now()) {
    return absl::DeadlineExceededError("the deadline of the call has passed");
  }
  return context.IsCancelled() ? absl::CancelledError("the client cancelled")
                               : absl::OkStatus();
}

}  // namespace

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  return deadline == std::chrono::system_clock::time_point::max()
             ? absl::InfiniteFuture()
             : absl::FromChrono(deadline);
}

Admission::Admission(const ServingState* state, RequestLogger logger,
                     const AdmissionLimits& limits)
    : state_(state),
      log_only_(std::move(logger)),
      // What was counted is over once it was logged.
      logger_([this](const RequestLog& log) {
        if (log_only_) log_only_(log);
        live_.Remove();
      }),
      limits_(limits),
      workers_(kNumTextThreads, kMaxWaitingTexts) {}

void Admission::CountInvalid() const {
  if (const ServedModel* model = state_->model()) {
    model->metrics->RecordRejection(Metrics::Rejection::kInvalid);
  }
}

absl::Status Admission::CheckRoom(int num_live) const {
  if (num_live <= limits_.max_calls) return absl::OkStatus();
  if (const ServedModel* model = state_->model()) {
    model->metrics->RecordRejection(Metrics::Rejection::kQueueFull);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(limits_.max_calls,
                   " calls are live (--max_live_calls), perhaps for readers "
                   "that are slow; try again later"));
}

// Not RESOURCE_EXHAUSTED, as gRPC has it: trying again does not help.
absl::Status Admission::CheckAnswerSize(size_t bytes) const {
  if (bytes <= limits_.max_answer_bytes) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "the answer has ", bytes, " bytes, a message at most ",
      limits_.max_answer_bytes, " (--max_message_mib): ask for less at once"));
}

void Admission::Refuse(const absl::Status& invalid,
                       const std::shared_ptr<EngineCall>& call) {
  live_.Add();
  CountInvalid();
  call->OnEnd(invalid);
  call->OnceSubmitted(0, [] {});
}

absl::Status Admission::RefuseMalformed(const char* method) const {
  CountInvalid();
  RequestLog log = StartLog(method, "");
  log.status = MalformedMessage();
  if (log_only_) log_only_(log);
  return log.status;
}

template <typename Message>
absl::StatusOr<Admission::Admitted> Admission::Admit(
    const Message& message, absl::Time deadline) const {
  const auto serving = state_->Serving();
  if (!serving.ok()) {
    if (const ServedModel* model = state_->model()) {
      model->metrics->RecordRejection(Metrics::Rejection::kDraining);
    }
    return serving.status();
  }
  const ServedModel& model = **serving;
  auto request = ToRequest(model, message, deadline);
  if (!request.ok()) {
    CountInvalid();
    return request.status();
  }
  const absl::Status fits =
      FitRequest(model.engine->limits(), MaxTokensOf(message), &*request);
  if (!fits.ok()) {
    model.metrics->RecordRejection(Metrics::Rejection::kNeverFits);
    return fits;
  }
  return Admitted{&model, *std::move(request)};
}

void Admission::RunText(const grpc::CallbackServerContext* context, size_t size,
                        std::function<void(const absl::Status&)> work) {
  if (size <= kMaxInlineSize) {
    work(absl::OkStatus());
    return;
  }
  if (workers_.Post([context, work] { work(CheckInTime(*context)); })) return;
  if (const ServedModel* model = state_->model()) {
    model->metrics->RecordRejection(Metrics::Rejection::kQueueFull);
  }
  work(absl::ResourceExhaustedError(absl::StrCat(
      kMaxWaitingTexts, " long texts are waiting; try again later")));
}

template <typename Message>
void Admission::Begin(const grpc::CallbackServerContext* context,
                      absl::Time deadline, const Message* message,
                      const std::shared_ptr<EngineCall>& call) {
  const absl::Status room = CheckRoom(live_.Add());
  if (!room.ok()) {
    call->OnEnd(room);
    call->OnceSubmitted(0, [] {});
    return;
  }
  RunText(context, TextBytes(*message),
          [this, deadline, message, call](const absl::Status& in_time) {
            auto admitted = in_time.ok() ? Admit(*message, deadline) : in_time;
            if (!admitted.ok()) {
              call->OnEnd(admitted.status());
              call->OnceSubmitted(0, [] {});
              return;
            }
            call->Admit(admitted->request);
            Engine* engine = admitted->model->engine;
            const RequestId id =
                engine->Submit(std::move(admitted->request), call);
            call->OnceSubmitted(id, [engine, id] { engine->Cancel(id); });
          });
}

template void Admission::Begin(const grpc::CallbackServerContext*, absl::Time,
                               const v1::GenerateRequest*,
                               const std::shared_ptr<EngineCall>&);
template void Admission::Begin(const grpc::CallbackServerContext*, absl::Time,
                               const v1::ScoreRequest*,
                               const std::shared_ptr<EngineCall>&);

}  // namespace strata
