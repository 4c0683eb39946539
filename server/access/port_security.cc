#include "server/access/port_security.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

constexpr absl::Duration kLookPeriod = absl::Milliseconds(500);

absl::StatusOr<std::shared_ptr<const Keys>> ParseKeys(const char* flag,
                                                      const std::string& text) {
  auto keys = Keys::Parse(text);
  if (keys.ok()) return std::make_shared<const Keys>(*std::move(keys));
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", keys.status().message()));
}

WatchedFiles::Report LogTo(Logger* logger, const char* what) {
  return [=](const absl::Status& status) {
    if (status.ok()) {
      logger->Info("reloaded", {{"what", what}});
    } else {
      logger->Error(
          "kept the old",
          {{"what", what}, {"message", std::string(status.message())}});
    }
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<PortSecurity>> PortSecurity::Open(
    const ServerOptions& options, Logger* logger,
    std::function<void()> on_refusal) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<PortSecurity> made(
      new PortSecurity(options, std::move(on_refusal)));
  STRATA_RETURN_IF_ERROR(made->OpenKeys(options, logger));
  STRATA_RETURN_IF_ERROR(made->OpenTls(options, logger));
  if (made->keys_ != nullptr || made->tls_ != nullptr) {
    made->ticker_ =
        std::make_unique<Ticker>(kLookPeriod, [security = made.get()] {
          if (security->keys_ != nullptr) security->keys_->Look();
          if (security->tls_ != nullptr) security->tls_->Look();
        });
  }
  return made;
}

PortSecurity::PortSecurity(const ServerOptions& options,
                           std::function<void()> on_refusal)
    : on_refusal_(std::move(on_refusal)) {
  PortCredentials::Check check;
  if (!options.api_key_file.empty() || !options.admin_key_file.empty()) {
    check = [this](const auto& metadata) { return CheckCall(metadata); };
  }
  credentials_ = std::make_shared<PortCredentials>(std::move(check));
}

absl::Status PortSecurity::OpenKeys(const ServerOptions& options,
                                    Logger* logger) {
  const bool has_api = !options.api_key_file.empty();
  const bool has_admin = !options.admin_key_file.empty();
  std::vector<std::string> paths;
  if (has_api) paths.push_back(options.api_key_file);
  if (has_admin) paths.push_back(options.admin_key_file);
  if (paths.empty()) return absl::OkStatus();
  const auto use = [=, this](const WatchedFiles::Contents& texts) {
    std::shared_ptr<const Keys> api_keys, admin_keys;
    if (has_api) {
      STRATA_ASSIGN_OR_RETURN(api_keys,
                              ParseKeys("api_key_file", texts.front()));
    }
    if (has_admin) {
      STRATA_ASSIGN_OR_RETURN(admin_keys,
                              ParseKeys("admin_key_file", texts.back()));
    }
    access_.SetKeys(std::move(api_keys), std::move(admin_keys));
    return absl::OkStatus();
  };
  STRATA_ASSIGN_OR_RETURN(
      keys_, WatchedFiles::Open(std::move(paths), use, LogTo(logger, "keys")));
  return absl::OkStatus();
}

absl::Status PortSecurity::OpenTls(const ServerOptions& options,
                                   Logger* logger) {
  if (options.tls_cert.empty()) return absl::OkStatus();
  std::vector<std::string> paths = {options.tls_cert, options.tls_key};
  const bool has_client_ca = !options.tls_client_ca.empty();
  if (has_client_ca) paths.push_back(options.tls_client_ca);
  const auto use = [=, this](const WatchedFiles::Contents& texts) {
    TlsFiles files = {.cert = texts[0], .key = texts[1], .client_ca = {}};
    if (has_client_ca) files.client_ca = texts[2];
    STRATA_RETURN_IF_ERROR(CheckTlsFiles(files));
    credentials_->SetTls(std::move(files));
    return absl::OkStatus();
  };
  STRATA_ASSIGN_OR_RETURN(
      tls_,
      WatchedFiles::Open(std::move(paths), use, LogTo(logger, "certificates")));
  return absl::OkStatus();
}

absl::Status PortSecurity::CheckCall(
    const PortCredentials::Metadata& metadata) const {
  std::string_view method;
  ShownKeys shown;
  for (const auto& [name, value] : metadata) {
    if (name == ":path") method = value;
    shown.AddFrom(name, value);
  }
  const absl::Status status = access_.CheckCall(method, shown);
  if (!status.ok()) on_refusal_();
  return status;
}

}  // namespace strata
