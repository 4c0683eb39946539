#ifndef TESTS_SERVER_E2E_CERTIFICATES_H_
#define TESTS_SERVER_E2E_CERTIFICATES_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace strata {

// Paths of PEM files.
struct Identity {
  std::string cert;
  std::string key;
};

// A certificate authority, made by openssl in the test's folder.
class Authority {
 public:
  // `name` is one of its own in the test.
  explicit Authority(const std::string& name);

  // Of 127.0.0.1, for servers and clients.
  Identity Issue(const std::string& name) const;
  const std::string& cert() const { return own_.cert; }

 private:
  const std::string name_;
  Identity own_;
};

std::string ReadText(const std::string& path);
void WriteText(const std::string& path, const std::string& text);

// Of a client that trusts `authority`, and shows `own` if it is there.
std::shared_ptr<grpc::ChannelCredentials> TlsCredentials(
    const Authority& authority, const Identity* own = nullptr);

}  // namespace strata

#endif  // TESTS_SERVER_E2E_CERTIFICATES_H_
