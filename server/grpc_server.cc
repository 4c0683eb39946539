#include "server/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/transport/listen_address.h"

namespace strata {
namespace {

// Takes back what the reflection library adds to every server.
class NoPlugins final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->clear();
  }
};

// Clients in front of language models ping every 10 to 30 s, also between
// calls; gRPC's defaults would close their connections (too_many_pings).  Our
// own pings find peers that are gone in the middle of a stream.
void SetKeepalive(const GrpcServerOptions& options,
                  grpc::ServerBuilder* builder) {
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Milliseconds(duration));
  };
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                              milliseconds(options.keepalive_time));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              milliseconds(options.keepalive_timeout));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

void SetLimits(const GrpcServerOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(options.max_message_bytes);
  builder->SetMaxSendMessageSize(options.max_message_bytes);
  // gRPC inflates a compressed message before it looks at its size, so that a
  // few MiB could take all memory.  It answers UNIMPLEMENTED to such calls.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              options.max_streams);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 * 1024);
  // Else two servers would share a port and each get half of the calls.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const GrpcServerOptions& options,
    const std::vector<grpc::Service*>& services) {
  STRATA_RETURN_IF_ERROR(CheckCanListen(options.host, options.port));
  // For every builder made from now on; the library does so itself when loaded.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const std::string address = JoinHostPort(options.host, options.port);
  auto server = std::make_unique<GrpcServer>();
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, options.credentials, &server->port_);
  if (!options.reflection) builder.SetOption(std::make_unique<NoPlugins>());
  SetKeepalive(options, &builder);
  SetLimits(options, &builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
  }
  return server;
}

void GrpcServer::Shutdown(absl::Time deadline) {
  server_->Shutdown(absl::ToChronoTime(deadline));
  server_->Wait();
}

}  // namespace strata
