#include "tests/server/e2e/certificates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

Identity PathsOf(const std::string& name) {
  const std::string stem = absl::StrCat(testing::TempDir(), "/", name);
  return {stem + ".pem", stem + ".key"};
}

// A new key and its certificate.
Identity Make(const std::string& name, const std::string& more) {
  const Identity made = PathsOf(name);
  const std::string command = absl::StrCat(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
      "-days 2 -subj /CN=",
      name, " -out '", made.cert, "' -keyout '", made.key, "' ", more,
      " 2>/dev/null");
  STRATA_CHECK(std::system(command.c_str()) == 0);
  return made;
}

}  // namespace

Authority::Authority(const std::string& name)
    : name_(name), own_(Make(name, "")) {}

Identity Authority::Issue(const std::string& name) const {
  return Make(absl::StrCat(name_, "_", name),
              absl::StrCat("-CA '", own_.cert, "' -CAkey '", own_.key,
                           "' -addext subjectAltName=IP:127.0.0.1 "
                           "-addext basicConstraints=critical,CA:FALSE"));
}

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials(
    const Authority& authority, const Identity* own) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ReadText(authority.cert());
  if (own != nullptr) {
    options.pem_cert_chain = ReadText(own->cert);
    options.pem_private_key = ReadText(own->key);
  }
  return grpc::SslCredentials(options);
}

}  // namespace strata
