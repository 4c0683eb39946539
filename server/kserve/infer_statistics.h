#ifndef SERVER_KSERVE_INFER_STATISTICS_H_
#define SERVER_KSERVE_INFER_STATISTICS_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/kserve/proto/grpc_service.pb.h"
#include "server/request_log.h"

namespace strata::kserve {

// What ModelStatistics tells: of the requests of this face, since the start.
//
// Thread-safe.
class InferStatistics {
 public:
  // One request is over.
  void Record(const RequestLog& log);
  // All but the names.
  inference::ModelStatistics Get() const;

 private:
  mutable absl::Mutex mu_;
  inference::ModelStatistics statistics_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_INFER_STATISTICS_H_
