#include "server/native/token_stream.h"

#include <algorithm>
#include <utility>

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
  stream->LiveUntilDone(stream);
  return stream;
}

TokenStream::TokenStream(grpc::CallbackServerContext* context,
                         const Options& options, RequestLog log)
    : ResponseStream(context, options.stall_limit, options.logger,
                     std::move(log)),
      max_queued_(options.max_queued) {}

void TokenStream::Admit(const Request& request) {
  absl::MutexLock lock(&mu_);
  Describe(request, &log_);
}

bool TokenStream::TakeNext(v1::GenerateResponse*) {
  if (is_broken_) queue_.clear();
  if (queue_.empty()) return false;
  taken_ = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

absl::Status TokenStream::Complete(v1::GenerateResponse* response) {
  *response = ToResponse(taken_);
  return absl::OkStatus();
}

void TokenStream::Queue(SequenceDelta delta) {
  log_.generated_tokens += static_cast<int>(delta.tokens.size());
  if (delta.end.has_value()) AddUsage(delta.end->usage, &log_);
  if (is_broken_) return;
  if (queue_.size() >= max_queued_) {
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

}  // namespace strata
