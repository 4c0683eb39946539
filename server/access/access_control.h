#ifndef SERVER_ACCESS_ACCESS_CONTROL_H_
#define SERVER_ACCESS_ACCESS_CONTROL_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/access/keys.h"

namespace strata {

// The keys that a caller shows.  Views of what the caller sent.
struct ShownKeys {
  // Adds the one in a header or metadata entry `authorization: Bearer KEY` or
  // `x-api-key: KEY`; other entries have none.  `name` is lower-case.
  void AddFrom(std::string_view name, std::string_view value);

  std::vector<std::string_view> keys;
};

// Who may call what.  With API keys every call needs one of them or an admin
// key; with admin keys those of strata.v1.Admin need one of these.
// grpc.health.v1 is for everybody: probes send no metadata.
//
// Thread-safe.
class AccessControl {
 public:
  // For calls from now on.  Null: there are none.
  void SetKeys(std::shared_ptr<const Keys> api_keys,
               std::shared_ptr<const Keys> admin_keys);

  // OK, UNAUTHENTICATED (no key, or an unknown one) or PERMISSION_DENIED (a
  // known one that is not enough).  `method` is /package.Service/Method, also
  // one that is not there.
  absl::Status CheckCall(std::string_view method, const ShownKeys& shown) const;
  // The same for what every key opens.
  absl::Status CheckKey(const ShownKeys& shown) const;

 private:
  enum class Role { kNobody, kCaller, kAdmin };

  Role RoleOf(const ShownKeys& shown) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::shared_ptr<const Keys> api_keys_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const Keys> admin_keys_ ABSL_GUARDED_BY(mu_);
};

// Whether a call comes from this host; `peer` as
// grpc::ServerContextBase::peer() has it.
bool IsLocalPeer(std::string_view peer);

}  // namespace strata

#endif  // SERVER_ACCESS_ACCESS_CONTROL_H_
