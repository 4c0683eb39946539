#include "server/transport/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;

// OpenSSL's latest reason, if it has one.
absl::Status Refuse(const char* flag, const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, ": ", what, reason == nullptr ? "" : " (",
      reason == nullptr ? "" : reason, reason == nullptr ? "" : ")"));
}

Bio Read(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Without this OpenSSL would ask the terminal for the password.
int NoPassword(char*, int, int, void*) { return -1; }

// The first certificate of `pem`; all that follow must be whole too.
absl::Status ReadCertificates(const char* flag, const std::string& pem,
                              Certificate* first) {
  const Bio bio = Read(pem);
  int count = 0;
  for (;;) {
    Certificate next(
        PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (next == nullptr) break;
    if (count++ == 0) *first = std::move(next);
  }
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (count > 0 && at_end) {
    ERR_clear_error();
    return absl::OkStatus();
  }
  return Refuse(flag, count == 0 ? "holds no certificate in PEM form"
                                 : absl::StrCat("certificate ", count + 1,
                                                " of it is broken"));
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  ERR_clear_error();
  Certificate certificate;
  STRATA_RETURN_IF_ERROR(
      ReadCertificates("tls_cert", files.cert, &certificate));
  const Bio bio = Read(files.key);
  const PrivateKey key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Refuse("tls_key",
                  "holds no private key in PEM form without a password");
  }
  const Context context(SSL_CTX_new(TLS_server_method()));
  STRATA_CHECK(context != nullptr);
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) != 1) {
    return Refuse("tls_cert", "OpenSSL does not take it");
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Refuse("tls_key",
                  "does not belong to the certificate of --tls_cert");
  }
  if (!files.client_ca.has_value()) return absl::OkStatus();
  Certificate issuer;
  return ReadCertificates("tls_client_ca", *files.client_ca, &issuer);
}

}  // namespace strata
