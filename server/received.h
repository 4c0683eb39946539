#ifndef SERVER_RECEIVED_H_
#define SERVER_RECEIVED_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "server/failed_stream.h"
#include "server/grpc_status.h"
#include "server/unary.h"

namespace strata {

// A message as it came, also where it cannot be parsed, or never came: its
// client ended the call before.  gRPC's handler of a callback method answers
// UNIMPLEMENTED to both and does not call the method.
template <typename Message>
struct Received {
  Message message;
  bool is_there = false;
  bool is_valid = false;
};

}  // namespace strata

namespace grpc {

template <typename Message>
class SerializationTraits<strata::Received<Message>> {
 public:
  static Status Deserialize(ByteBuffer* bytes,
                            strata::Received<Message>* received) {
    received->is_there = bytes->Valid();
    received->is_valid =
        SerializationTraits<Message>::Deserialize(bytes, &received->message)
            .ok();
    return Status::OK;
  }
};

}  // namespace grpc

namespace strata {

// What a call is told that ended before its message was there.  Mostly nobody
// is left to read it, so that it is no refusal: neither counted nor logged.
inline absl::Status MissingMessage() {
  return absl::InvalidArgumentError("the call has no message");
}

// Handlers for grpc::Service::MarkMethodCallback that answer what `refuse` says
// to a message that cannot be parsed, and give all others to `method`.
template <typename Service, typename Message, typename Response>
grpc::internal::MethodHandler* NewHandler(
    Service* service,
    grpc::ServerUnaryReactor* (Service::*method)(grpc::CallbackServerContext*,
                                                 const Message*, Response*),
    std::function<absl::Status()> refuse) {
  return new grpc::internal::CallbackUnaryHandler<Received<Message>, Response>(
      [service, method, refuse = std::move(refuse)](
          grpc::CallbackServerContext* context,
          const Received<Message>* received, Response* response) {
        return received->is_valid
                   ? (service->*method)(context, &received->message, response)
                   : Answer(context,
                            received->is_there ? refuse() : MissingMessage());
      });
}

template <typename Service, typename Message, typename Response>
grpc::internal::MethodHandler* NewHandler(
    Service* service,
    grpc::ServerWriteReactor<Response>* (Service::*method)(
        grpc::CallbackServerContext*, const Message*),
    std::function<absl::Status()> refuse) {
  using Handler =
      grpc::internal::CallbackServerStreamingHandler<Received<Message>,
                                                     Response>;
  return new Handler([service, method, refuse = std::move(refuse)](
                         grpc::CallbackServerContext* context,
                         const Received<Message>* received)
                         -> grpc::ServerWriteReactor<Response>* {
    if (received->is_valid)
      return (service->*method)(context, &received->message);
    return new FailedStream<Response>(ToFinalStatus(
        received->is_there ? refuse() : MissingMessage(), context));
  });
}

// What such a message is refused with.
inline absl::Status MalformedMessage() {
  return absl::InvalidArgumentError(
      "the message cannot be parsed: it is broken, or a string in it is not "
      "UTF-8");
}

}  // namespace strata

#endif  // SERVER_RECEIVED_H_
