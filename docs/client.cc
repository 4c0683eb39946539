// Streams an answer under a KV-sharing strategy; docs/clients.md.
//
//   client HOST:PORT STRATEGY "prompt"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <iostream>

#include "proto/strata.grpc.pb.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: client HOST:PORT STRATEGY \"prompt\"\n";
    return 2;
  }
  const auto stub = strata::v1::Inference::NewStub(
      grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));

  strata::v1::GenerateRequest request;
  request.mutable_strategy()->set_spec(argv[2]);
  request.set_text(argv[3]);
  request.mutable_stopping()->set_max_tokens(32);

  grpc::ClientContext context;  // of one call; context.TryCancel() ends it
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::minutes(1));
  // With keys: context.AddMetadata("authorization", "Bearer KEY");
  const auto reader = stub->Generate(&context, request);
  strata::v1::GenerateResponse response;
  while (reader->Read(&response)) {
    std::cout << response.text() << std::flush;
    if (response.has_done()) {
      const strata::v1::Usage& usage = response.done().usage();
      std::cerr << '\n'
                << usage.generated_tokens() << " tokens under "
                << usage.strategy() << ", KV cache of " << usage.kv_bytes()
                << " bytes (" << usage.kv_bytes_full() << " under full)\n";
    }
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) {
    std::cerr << "client: " << status.error_message() << '\n';
    return 1;
  }
  return 0;
}
