#ifndef SERVER_LIVE_STREAMS_H_
#define SERVER_LIVE_STREAMS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/ticker.h"

namespace strata {

// A call that streams to its client.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  // Cancels the call if its reader has taken nothing for too long.
  virtual void CancelIfStalled(absl::Time now) = 0;
};

// Looks once a second whether the reader of a stream has stalled.  Does not own
// the streams.  Thread-safe.
class LiveStreams {
 public:
  void Add(const std::shared_ptr<LiveStream>& stream) {
    absl::MutexLock lock(&mu_);
    streams_.push_back(stream);
  }

 private:
  void Look() {
    const absl::Time now = absl::Now();
    for (const std::shared_ptr<LiveStream>& stream : Living()) {
      stream->CancelIfStalled(now);
    }
  }

  // Forgets those that are gone.
  std::vector<std::shared_ptr<LiveStream>> Living() {
    std::vector<std::shared_ptr<LiveStream>> living;
    absl::MutexLock lock(&mu_);
    std::erase_if(streams_, [&](const std::weak_ptr<LiveStream>& stream) {
      std::shared_ptr<LiveStream> lives = stream.lock();
      if (lives == nullptr) return true;
      living.push_back(std::move(lives));
      return false;
    });
    return living;
  }

  absl::Mutex mu_;
  std::vector<std::weak_ptr<LiveStream>> streams_ ABSL_GUARDED_BY(mu_);
  Ticker ticker_{absl::Seconds(1),
                 [this] { Look(); }};  // last: uses the others
};

}  // namespace strata

#endif  // SERVER_LIVE_STREAMS_H_
