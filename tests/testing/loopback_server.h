#ifndef TESTS_TESTING_LOOPBACK_SERVER_H_
#define TESTS_TESTING_LOOPBACK_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "base/check.h"

namespace strata {

// A server of `services`, which outlive it, on a free port of the loopback;
// `address` becomes its HOST:PORT.
inline std::unique_ptr<grpc::Server> StartOnLoopback(
    std::initializer_list<grpc::Service*> services, std::string* address) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  STRATA_CHECK(server != nullptr);
  *address = "127.0.0.1:" + std::to_string(port);
  return server;
}

}  // namespace strata

#endif  // TESTS_TESTING_LOOPBACK_SERVER_H_
