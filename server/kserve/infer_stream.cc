#include "server/kserve/infer_stream.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/grpc_status.h"
#include "server/kserve/infer_request.h"
#include "server/request_log.h"

namespace strata::kserve {
namespace {

// What Triton's clients send where they want it.
bool WantsStatusOfCall(const grpc::CallbackServerContext& context) {
  const auto entry = context.client_metadata().find("triton_grpc_error");
  return entry != context.client_metadata().end() && entry->second == "true";
}

}  // namespace

// The next response of a request.
struct InferStream::News {
  std::shared_ptr<Infer> infer;
  std::vector<InferAnswer::Part> parts;  // empty: no outputs
  absl::Status error;
  bool is_final = false;

  void Write(inference::ModelStreamInferResponse* response) const;
};

// What changes is guarded by the stream's mutex, once it is in live_.
class InferStream::Infer final : public EngineCall,
                                 public std::enable_shared_from_this<Infer> {
 public:
  Infer(std::shared_ptr<InferStream> stream,
        inference::ModelInferRequest message)
      : stream_(std::move(stream)),
        message_(std::move(message)),
        log_(StartLog("ModelStreamInfer", message_.id())) {}

  // After it is in live_.
  void Begin(bool is_valid);
  void Cancel() { cancel_.Cancel(); }

  void Admit(const Request& request) override;
  void OnceSubmitted(RequestId id,
                     std::function<void()> ask_to_cancel) override;
  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  friend class InferStream;
  friend struct InferStream::News;

  absl::Status Parse(bool is_valid);
  bool HasOutputs() const {
    return answer_.has_news() && !is_too_large_ &&
           (request_.is_streamed || (is_ended_ && log_.status.ok()));
  }
  bool WantsEnd() const {
    return is_ended_ && is_submitted_ && !is_final_told_;
  }
  bool HasNews() const { return HasOutputs() || WantsEnd(); }
  News Take();
  // What was taken cannot be sent: tells this instead, whatever the engine says
  // later.
  void Overflow(const absl::Status& status);
  void Log(RequestLog log) const;

  const std::shared_ptr<InferStream> stream_;
  const inference::ModelInferRequest message_;
  const absl::Time arrival_ = absl::Now();
  CancelRelay cancel_;
  InferRequest request_;  // not changed once it is parsed

  InferAnswer answer_;
  RequestLog log_;
  bool is_submitted_ = false;
  bool is_ended_ = false;
  bool is_queued_ = false;
  bool is_too_large_ = false;
  bool is_final_told_ = false;  // a response was, or is, written as the last
};

absl::Status InferStream::Infer::Parse(bool is_valid) {
  if (!is_valid) return MalformedMessage();
  STRATA_ASSIGN_OR_RETURN(request_, ToInferRequest(message_));
  return absl::OkStatus();
}

void InferStream::Infer::Begin(bool is_valid) {
  Admission* admission = stream_->parts_.admission;
  const absl::Status parsed = Parse(is_valid);
  if (!parsed.ok()) {
    admission->Refuse(parsed, shared_from_this());
    return;
  }
  const absl::Time deadline =
      std::min(DeadlineOf(*stream_->context_), arrival_ + request_.timeout);
  admission->Begin(stream_->context_, deadline, &request_.generate,
                   shared_from_this());
}

void InferStream::Infer::Admit(const Request& request) {
  absl::MutexLock lock(&stream_->mu_);
  Describe(request, &log_);
  answer_ = InferAnswer(request);
}

void InferStream::Infer::OnceSubmitted(RequestId id,
                                       std::function<void()> ask_to_cancel) {
  cancel_.Connect(std::move(ask_to_cancel));
  stream_->Advance([&] {
    log_.id = id;
    is_submitted_ = true;
    stream_->Update(shared_from_this());
  });
}

void InferStream::Infer::OnDelta(SequenceDelta delta) {
  stream_->Advance([&] {
    log_.generated_tokens += static_cast<int>(delta.tokens.size());
    if (delta.end.has_value()) AddUsage(delta.end->usage, &log_);
    answer_.Add(std::move(delta));
    stream_->Update(shared_from_this());
  });
}

void InferStream::Infer::OnEnd(absl::Status status) {
  stream_->Advance([&] {
    if (!is_too_large_) log_.status = std::move(status);
    is_ended_ = true;
    stream_->Update(shared_from_this());
  });
}

void InferStream::Infer::Overflow(const absl::Status& status) {
  log_.status = status;
  is_too_large_ = true;
  is_final_told_ = false;
}

InferStream::News InferStream::Infer::Take() {
  News news;
  news.infer = shared_from_this();
  if (HasOutputs()) {
    const bool is_last = answer_.is_whole() && !request_.has_empty_final;
    news.parts = answer_.Take();
    news.is_final = is_final_told_ = is_last;
  } else {
    news.error = log_.status;
    news.is_final = is_final_told_ = true;
  }
  return news;
}

void InferStream::Infer::Log(RequestLog log) const {
  log.total = absl::Now() - arrival_;
  stream_->parts_.statistics->Record(log);
  stream_->parts_.admission->logger()(log);
}

void InferStream::News::Write(
    inference::ModelStreamInferResponse* response) const {
  response->Clear();
  inference::ModelInferResponse* answer = response->mutable_infer_response();
  const ServedModel* model = infer->stream_->parts_.admission->state().model();
  NameResponse(model != nullptr && error.ok() ? model->name
                                              : infer->message_.model_name(),
               infer->message_.id(), answer);
  if (!error.ok()) {
    // Clients take an empty one for none.
    const std::string message = ToGrpcStatus(error).error_message();
    response->set_error_message(message.empty() ? "unknown error" : message);
    return;
  }
  (*answer->mutable_parameters())["triton_final_response"].set_bool_param(
      is_final);
  if (parts.empty()) return;
  const InferRequest& request = infer->request_;
  AddOutputs(request, parts, infer->answer_.num_input_tokens(),
             request.echoes_input ? request.generate.text() : "",
             model->tokenizer, answer);
}

std::shared_ptr<InferStream> InferStream::Create(
    grpc::CallbackServerContext* context, const Options& options,
    const Parts& parts) {
  std::shared_ptr<InferStream> stream(new InferStream(context, options, parts));
  stream->grpc_reference_ = stream;
  return stream;
}

InferStream::InferStream(grpc::CallbackServerContext* context,
                         const Options& options, const Parts& parts)
    : context_(context),
      options_(options),
      parts_(parts),
      fails_as_a_whole_(WantsStatusOfCall(*context)) {}

void InferStream::Begin() {
  Advance([] {});
}

void InferStream::Update(const std::shared_ptr<Infer>& infer) {
  if (infer->HasNews() && !is_broken_) {
    if (!infer->is_queued_) with_news_.push_back(infer);
    infer->is_queued_ = true;
    return;
  }
  const bool is_over = infer->is_ended_ && infer->is_submitted_;
  if (is_over && writing_ != infer && live_.erase(infer) > 0) {
    infer->Log(infer->log_);  // comes back to nothing of the stream
  }
}

std::optional<InferStream::News> InferStream::NextNews() {
  while (!with_news_.empty()) {
    const std::shared_ptr<Infer> infer = std::move(with_news_.front());
    with_news_.pop_front();
    infer->is_queued_ = false;
    if (is_broken_) {
      Update(infer);
      continue;
    }
    News news = infer->Take();
    if (fails_as_a_whole_ && !news.error.ok()) {
      Fail(news.error);
      Update(infer);
      continue;
    }
    writing_ = infer;
    write_began_ = absl::Now();
    return news;
  }
  return std::nullopt;
}

void InferStream::Fail(const absl::Status& status) {
  failure_ = status;
  is_broken_ = true;
}

template <typename Change>
void InferStream::Advance(Change change) {
  std::optional<News> news;
  bool fails = false;
  bool finishes = false;
  grpc::Status status;
  mu_.Lock();
  change();
  // OnWriteDone and CancelIfStalled come back here.
  const bool had_failed = failure_.has_value();
  if (writing_ == nullptr && !is_pinned_) news = NextNews();
  fails = failure_.has_value() && !had_failed;
  const bool reads = !is_reading_ && !has_all_read_ && !failure_.has_value() &&
                     live_.size() < options_.max_live;
  if (reads) is_reading_ = true;
  if (fails) is_pinned_ = true;  // until the others were cancelled
  if (writing_ == nullptr && !is_pinned_ && !is_finished_ && live_.empty() &&
      (has_all_read_ || failure_.has_value())) {
    finishes = is_finished_ = true;
    if (failure_.has_value()) {
      status = ToFinalStatus(*failure_, context_);
    } else if (is_cancelled_) {
      status = grpc::Status::CANCELLED;
    }
  }
  mu_.Unlock();
  if (reads) StartRead(&received_);
  if (news.has_value()) {
    news->Write(&response_);
    const absl::Status fits =
        parts_.admission->CheckAnswerSize(response_.ByteSizeLong());
    if (fits.ok()) {
      StartWrite(&response_);
    } else {
      EndTooLarge(news->infer, fits);
    }
  } else if (fails) {
    CancelAll();
    Unpin();
  } else if (finishes) {
    Finish(status);
  }
}

// No lambda of Advance itself: it would instantiate Advance without end.
void InferStream::Unpin() {
  Advance([this] { is_pinned_ = false; });
}

void InferStream::EndTooLarge(const std::shared_ptr<Infer>& infer,
                              const absl::Status& status) {
  infer->Cancel();
  Advance([&] {
    infer->Overflow(status);
    writing_ = nullptr;
    Update(infer);
  });
}

void InferStream::OnReadDone(bool ok) {
  if (!ok) {
    Advance([&] {
      is_reading_ = false;
      has_all_read_ = true;
    });
    return;
  }
  // What was read of a broken message may not be UTF-8.
  if (!received_.is_valid) received_.message.Clear();
  const auto infer =
      std::make_shared<Infer>(grpc_reference_, std::move(received_.message));
  bool is_late = false;
  {
    absl::MutexLock lock(&mu_);
    live_.insert(infer);
    is_late = is_cancelled_ || failure_.has_value();
  }
  if (is_late) infer->Cancel();
  infer->Begin(received_.is_valid);
  Advance([&] { is_reading_ = false; });
}

void InferStream::OnWriteDone(bool ok) {
  Advance([&] {
    is_broken_ = is_broken_ || !ok;
    Update(std::exchange(writing_, nullptr));
  });
}

void InferStream::OnCancel() {
  {
    absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
  }
  CancelAll();
}

void InferStream::CancelAll() {
  std::vector<std::shared_ptr<Infer>> all;
  {
    absl::MutexLock lock(&mu_);
    all.assign(live_.begin(), live_.end());
  }
  for (const std::shared_ptr<Infer>& infer : all) infer->Cancel();
}

void InferStream::CancelIfStalled(absl::Time now) {
  {
    absl::MutexLock lock(&mu_);
    if (writing_ == nullptr || is_pinned_ || is_finished_ ||
        now - write_began_ < options_.stall_limit) {
      return;
    }
    is_pinned_ = true;  // until TryCancel is over
  }
  // May call OnWriteDone and OnCancel on this thread: not under the lock.
  context_->TryCancel();
  Unpin();
}

void InferStream::OnDone() {
  const std::shared_ptr<InferStream> last = std::move(grpc_reference_);
}

}  // namespace strata::kserve
