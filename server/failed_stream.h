#ifndef SERVER_FAILED_STREAM_H_
#define SERVER_FAILED_STREAM_H_

#include <grpcpp/grpcpp.h>

namespace strata {

// A stream that was refused: ends at once.  Deletes itself.
template <typename Response>
class FailedStream final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit FailedStream(const grpc::Status& status) { this->Finish(status); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace strata

#endif  // SERVER_FAILED_STREAM_H_
