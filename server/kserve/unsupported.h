#ifndef SERVER_KSERVE_UNSUPPORTED_H_
#define SERVER_KSERVE_UNSUPPORTED_H_

#include "absl/status/status.h"

namespace strata::kserve {

// For what the protocol has and Strata has not.
inline absl::Status Unsupported() {
  return absl::UnimplementedError(
      "Strata serves one model, over the network alone: it does not load or "
      "unload models, share memory, or change trace and log settings");
}

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_UNSUPPORTED_H_
