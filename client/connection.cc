#include "client/connection.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace strata {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  return std::move(content).str();
}

// Keys stand one a line; # begins a comment line.
absl::StatusOr<std::string> FirstKey(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  for (std::string line; std::getline(file, line);) {
    const absl::string_view key = absl::StripAsciiWhitespace(line);
    if (key.empty() || key[0] == '#') continue;
    // gRPC ends the process for what metadata cannot carry.
    if (!std::all_of(key.begin(), key.end(), absl::ascii_isgraph)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": a key is printable ASCII without spaces"));
    }
    return std::string(key);
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds no key"));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const ConnectionOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty() ||
      (options.tls_ca.empty() && !options.tls_cert.empty())) {
    return absl::InvalidArgumentError(
        "--tls_cert and --tls_key go together, and with --tls_ca");
  }
  if (options.tls_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  for (const auto& [path, content] :
       {std::pair(&options.tls_ca, &ssl.pem_root_certs),
        std::pair(&options.tls_cert, &ssl.pem_cert_chain),
        std::pair(&options.tls_key, &ssl.pem_private_key)}) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.status();
    *content = *std::move(read);
  }
  return grpc::SslCredentials(ssl);
}

// Whether no Strata answered, as opposed to one that is loading or draining:
// gRPC's own connection errors have these texts.
bool NobodyThere(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return false;
  const std::string& text = status.error_message();
  return absl::StrContains(text, "failed to connect") ||
         absl::StrContains(text, "Connection refused") ||
         absl::StrContains(text, "DNS resolution failed");
}

// Whether somebody is there, but does not speak as we do.
bool BreaksOff(const grpc::Status& status) {
  const std::string& text = status.error_message();
  return NobodyThere(status) && (absl::StrContains(text, "Socket closed") ||
                                 absl::StrContains(text, "Connection reset") ||
                                 absl::StrContains(text, "andshake") ||
                                 absl::StrContains(text, "SSL_ERROR"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const ConnectionOptions& options) {
  std::string key;
  if (!options.api_key_file.empty()) {
    absl::StatusOr<std::string> read = FirstKey(options.api_key_file);
    if (!read.ok()) return read.status();
    key = *std::move(read);
  }
  auto credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();
  return std::unique_ptr<Connection>(
      new Connection(options, std::move(key), *std::move(credentials)));
}

Connection::Connection(const ConnectionOptions& options, std::string key,
                       std::shared_ptr<grpc::ChannelCredentials> credentials)
    : address_(options.address),
      uses_tls_(!options.tls_ca.empty()),
      key_(std::move(key)),
      channel_(grpc::CreateChannel(address_, credentials)),
      stub_(v1::Inference::NewStub(channel_)),
      admin_(v1::Admin::NewStub(channel_)) {}

void Connection::Authorize(grpc::ClientContext* context) const {
  if (!key_.empty()) context->AddMetadata("authorization", "Bearer " + key_);
}

std::string Connection::ErrorLine(const grpc::Status& status) const {
  if (BreaksOff(status)) {
    return absl::StrCat(
        "UNAVAILABLE: ",
        uses_tls_ ? "no handshake with " : "no gRPC connection to ", address_,
        " (", absl::StrReplaceAll(status.error_message(), {{"\n", " "}}),
        uses_tls_ ? "); does it speak TLS, is its certificate one of --tls_ca, "
                    "does it want one (--tls_cert, --tls_key)?"
                  : "); does it want TLS (--tls_ca)?");
  }
  if (NobodyThere(status)) {
    return absl::StrCat(
        "UNAVAILABLE: no gRPC server answers at ", address_, " (",
        absl::StrReplaceAll(status.error_message(), {{"\n", " "}}),
        "); is it running? ./strata serve --model=FILE.gguf starts one, "
        "./strata up a demo");
  }
  const bool lacks_key =
      status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
      status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  return absl::StrCat(
      CodeName(status.error_code()), ": ",
      absl::StrReplaceAll(status.error_message(), {{"\n", " "}}),
      lacks_key ? " (--api_key_file)" : "");
}

std::string CodeName(grpc::StatusCode code) {
  // The two enumerations have equal values by definition.
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

}  // namespace strata
