#ifndef TESTS_TESTING_COLLECTING_SINK_H_
#define TESTS_TESTING_COLLECTING_SINK_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/token_sink.h"

namespace strata {

// Keeps all that a request was given.  Thread-safe.
class CollectingSink final : public TokenSink {
 public:
  CollectingSink() = default;
  // Calls `on_tokens` on the engine thread with the tokens that index 0 has,
  // after each: what it asks of the engine is done before the next step.
  explicit CollectingSink(std::function<void(int)> on_tokens)
      : on_tokens_(std::move(on_tokens)) {}

  struct Sequence {
    std::string text;
    std::vector<int32_t> tokens;
    std::vector<SampledToken> logprobs;
    std::optional<SequenceEnd> end;
  };

  void OnDelta(SequenceDelta delta) override {
    std::unique_lock lock(mu_);
    after_end_ = after_end_ || status_.has_value() ||
                 sequences_[delta.index].end.has_value();
    Sequence& sequence = sequences_[delta.index];
    sequence.text += delta.text;
    sequence.tokens.insert(sequence.tokens.end(), delta.tokens.begin(),
                           delta.tokens.end());
    sequence.logprobs.insert(sequence.logprobs.end(), delta.logprobs.begin(),
                             delta.logprobs.end());
    if (delta.end.has_value()) sequence.end = std::move(delta.end);
    changed_.notify_all();
    const int num_tokens = static_cast<int>(sequences_[0].tokens.size());
    lock.unlock();
    if (on_tokens_ && delta.index == 0) on_tokens_(num_tokens);
  }

  void OnEnd(absl::Status status) override {
    std::unique_lock lock(mu_);
    after_end_ = after_end_ || status_.has_value();
    status_ = std::move(status);
    changed_.notify_all();
  }

  absl::Status Wait() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return status_.has_value(); });
    return *status_;
  }

  // Returns once `index` has `count` tokens or the request has ended.
  void WaitForTokens(int index, size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] {
      return status_.has_value() || sequences_[index].tokens.size() >= count;
    });
  }

  // After Wait.
  Sequence Get(int index) {
    std::unique_lock lock(mu_);
    return sequences_[index];
  }
  size_t num_sequences() {
    std::unique_lock lock(mu_);
    return sequences_.size();
  }
  // Whether anything came after the end, or two ends.
  bool called_after_end() {
    std::unique_lock lock(mu_);
    return after_end_;
  }

 private:
  const std::function<void(int)> on_tokens_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::map<int, Sequence> sequences_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mu_);
  bool after_end_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // TESTS_TESTING_COLLECTING_SINK_H_
