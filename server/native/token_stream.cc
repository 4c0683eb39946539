#include "server/native/token_stream.h"

#include <algorithm>
#include <utility>

#include "server/grpc_status.h"
#include "server/native/response.h"

namespace strata {
namespace {

// Of one response.  With 20 log-probabilities each it has some 300 kB: clients
// receive 4 MB unless they ask for more.
constexpr size_t kMaxMergedTokens = 1024;

}  // namespace

std::shared_ptr<TokenStream> TokenStream::Create(
    grpc::CallbackServerContext* context, const Options& options,
    RequestLog log) {
  std::shared_ptr<TokenStream> stream(
      new TokenStream(context, options, std::move(log)));
  stream->grpc_reference_ = stream;
  return stream;
}

TokenStream::TokenStream(grpc::CallbackServerContext* context,
                         const Options& options, RequestLog log)
    : context_(context),
      options_(options),
      arrival_(absl::Now()),
      log_(std::move(log)) {}

void TokenStream::Admit(const Request& request) {
  absl::MutexLock lock(&mu_);
  Describe(request, &log_);
}

template <typename Change>
void TokenStream::Advance(Change change) {
  mu_.Lock();
  change();
  // OnWriteDone and CancelIfStalled come back here.
  if (is_writing_ || is_pinned_) {
    mu_.Unlock();
    return;
  }
  if (is_broken_) queue_.clear();
  if (!queue_.empty()) {
    is_writing_ = true;
    write_began_ = absl::Now();
    const SequenceDelta delta = std::move(queue_.front());
    queue_.pop_front();
    mu_.Unlock();
    response_ = ToResponse(delta);
    StartWrite(&response_);
    return;
  }
  if (!status_.has_value()) {
    mu_.Unlock();
    return;
  }
  log_.status = *std::move(status_);
  status_.reset();
  const grpc::Status status = ToFinalStatus(log_.status, context_);
  mu_.Unlock();
  Finish(status);
}

void TokenStream::OnceSubmitted(RequestId id,
                                std::function<void()> ask_to_cancel) {
  // First: `this` may be gone after Advance.
  cancel_.Connect(std::move(ask_to_cancel));
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    log_.id = id;
    is_pinned_ = false;
  });
}

void TokenStream::Queue(SequenceDelta delta) {
  log_.generated_tokens += static_cast<int>(delta.tokens.size());
  if (delta.end.has_value()) AddUsage(delta.end->usage, &log_);
  if (is_broken_) return;
  if (queue_.size() >= options_.max_queued) {
    const auto same = std::find_if(
        queue_.rbegin(), queue_.rend(),
        [&](const SequenceDelta& d) { return d.index == delta.index; });
    if (same != queue_.rend() && same->tokens.size() < kMaxMergedTokens) {
      Append(std::move(delta), &*same);
      return;
    }
  }
  queue_.push_back(std::move(delta));
}

void TokenStream::OnDelta(SequenceDelta delta) {
  Advance([&]()
              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { Queue(std::move(delta)); });
}

void TokenStream::OnEnd(absl::Status status) {
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    status_ = std::move(status);
  });
}

void TokenStream::OnWriteDone(bool ok) {
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    is_writing_ = false;
    is_broken_ = is_broken_ || !ok;
  });
}

void TokenStream::CancelIfStalled(absl::Time now) {
  {
    absl::MutexLock lock(&mu_);
    if (!is_writing_ || is_pinned_ ||
        now - write_began_ < options_.stall_limit) {
      return;
    }
    is_pinned_ = true;  // until TryCancel is over
  }
  // May call OnWriteDone and OnCancel on this thread: not under the lock.
  context_->TryCancel();
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { is_pinned_ = false; });
}

void TokenStream::OnDone() {
  const std::shared_ptr<TokenStream> last = std::move(grpc_reference_);
  if (!options_.logger) return;
  RequestLog log;
  {
    absl::MutexLock lock(&mu_);
    log = log_;
  }
  log.total = absl::Now() - arrival_;
  options_.logger(log);
}

}  // namespace strata
