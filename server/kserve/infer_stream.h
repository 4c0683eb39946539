#ifndef SERVER_KSERVE_INFER_STREAM_H_
#define SERVER_KSERVE_INFER_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission.h"
#include "server/kserve/infer_answer.h"
#include "server/kserve/infer_statistics.h"
#include "server/kserve/proto/grpc_service.pb.h"
#include "server/live_streams.h"
#include "server/received.h"

namespace strata::kserve {

// One ModelStreamInfer call: any number of requests at once, of which each has
// responses of its own, and ends with one that is final or an error.
//
// One write is in flight; requests with news take turns.  A slow reader never
// holds the engine up: what a request was given since its last response is in
// its next one, so memory is bounded by what was generated.  A reader that
// takes nothing for `stall_limit` is cancelled, and while `max_live` requests
// live no more are read.  A client's cancel asks the engine to end them all.
//
// Owned by gRPC until OnDone, and by its requests.  Thread-safe.
class InferStream final
    : public grpc::ServerBidiReactor<Received<inference::ModelInferRequest>,
                                     inference::ModelStreamInferResponse>,
      public LiveStream {
 public:
  struct Options {
    absl::Duration stall_limit = absl::Seconds(60);
    size_t max_live = 1024;
  };
  // What it works with, all of which outlive it.
  struct Parts {
    Admission* admission;
    InferStatistics* statistics;
  };
  static std::shared_ptr<InferStream> Create(
      grpc::CallbackServerContext* context, const Options& options,
      const Parts& parts);

  // Reads the first request.
  void Begin();

  void CancelIfStalled(absl::Time now) override;

 private:
  class Infer;  // one of the requests
  struct News;

  InferStream(grpc::CallbackServerContext* context, const Options& options,
              const Parts& parts);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Changes the state under the lock, then starts what the state allows outside
  // of it.
  template <typename Change>
  void Advance(Change change);
  void Unpin();
  // Its response cannot be sent: an error ends the request in its place.
  void EndTooLarge(const std::shared_ptr<Infer>& infer,
                   const absl::Status& status);
  // The request has changed: queues it, or forgets it if it is over.
  void Update(const std::shared_ptr<Infer>& infer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<News> NextNews() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the whole call with the error of one request.
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CancelAll();

  grpc::CallbackServerContext* const context_;  // valid until OnDone
  const Options options_;
  const Parts parts_;
  // The client wants an error of a request to be that of the call.
  const bool fails_as_a_whole_;
  std::shared_ptr<InferStream> grpc_reference_;  // until OnDone

  absl::Mutex mu_;
  std::set<std::shared_ptr<Infer>> live_ ABSL_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Infer>> with_news_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Infer> writing_ ABSL_GUARDED_BY(mu_);  // null: no write
  absl::Time write_began_ ABSL_GUARDED_BY(mu_);
  bool is_reading_ ABSL_GUARDED_BY(mu_) = false;
  bool has_all_read_ ABSL_GUARDED_BY(mu_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mu_) = false;  // nothing is written any more
  bool is_pinned_ ABSL_GUARDED_BY(mu_) = false;  // context_ is in use
  bool is_finished_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> failure_ ABSL_GUARDED_BY(mu_);
  Received<inference::ModelInferRequest> received_;  // gRPC's while is_reading_
  inference::ModelStreamInferResponse response_;     // gRPC's while writing_
};

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_INFER_STREAM_H_
