#include "server/access/access_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace strata {
namespace {

constexpr std::string_view kHealth = "/grpc.health.v1.Health/";
constexpr std::string_view kAdmin = "/strata.v1.Admin/";
constexpr std::string_view kBearer = "bearer ";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

absl::Status Unauthenticated(const ShownKeys& shown) {
  return absl::UnauthenticatedError(
      shown.keys.empty()
          ? "a key is needed, in metadata `authorization: Bearer KEY` or "
            "`x-api-key: KEY`"
          : "the key is unknown");
}

}  // namespace

void ShownKeys::AddFrom(std::string_view name, std::string_view value) {
  if (name == "x-api-key") {
    keys.push_back(value);
  } else if (name == "authorization" && value.size() > kBearer.size() &&
             absl::EqualsIgnoreCase(
                 absl::string_view(value.data(), kBearer.size()),
                 absl::string_view(kBearer.data(), kBearer.size()))) {
    keys.push_back(value.substr(kBearer.size()));
  }
}

void AccessControl::SetKeys(std::shared_ptr<const Keys> api_keys,
                            std::shared_ptr<const Keys> admin_keys) {
  absl::MutexLock lock(&mu_);
  api_keys_ = std::move(api_keys);
  admin_keys_ = std::move(admin_keys);
}

AccessControl::Role AccessControl::RoleOf(const ShownKeys& shown) const {
  Role role = Role::kNobody;
  for (const std::string_view key : shown.keys) {
    if (api_keys_ != nullptr && api_keys_->Contains(key)) {
      role = std::max(role, Role::kCaller);
    }
    if (admin_keys_ != nullptr && admin_keys_->Contains(key)) {
      role = Role::kAdmin;
    }
  }
  return role;
}

absl::Status AccessControl::CheckCall(std::string_view method,
                                      const ShownKeys& shown) const {
  if (StartsWith(method, kHealth)) return absl::OkStatus();
  absl::ReaderMutexLock lock(&mu_);
  if (StartsWith(method, kAdmin) && admin_keys_ != nullptr) {
    switch (RoleOf(shown)) {
      case Role::kAdmin:
        return absl::OkStatus();
      case Role::kCaller:
        return absl::PermissionDeniedError(
            "strata.v1.Admin needs an admin key");
      case Role::kNobody:
        return Unauthenticated(shown);
    }
  }
  if (api_keys_ == nullptr || RoleOf(shown) != Role::kNobody) {
    return absl::OkStatus();
  }
  return Unauthenticated(shown);
}

absl::Status AccessControl::CheckKey(const ShownKeys& shown) const {
  absl::ReaderMutexLock lock(&mu_);
  if (RoleOf(shown) != Role::kNobody) return absl::OkStatus();
  return Unauthenticated(shown);
}

bool IsLocalPeer(std::string_view peer) {
  for (const std::string_view local :
       {"unix:", "ipv4:127.", "ipv6:[::1]:", "ipv6:%5B::1%5D:",
        "ipv6:[::ffff:127.", "ipv6:%5B::ffff:127."}) {
    if (StartsWith(peer, local)) return true;
  }
  return false;
}

}  // namespace strata
