#ifndef CLIENT_GENERATE_FLAGS_H_
#define CLIENT_GENERATE_FLAGS_H_

#include "absl/status/statusor.h"
#include "proto/strata.pb.h"

namespace strata {

// What --strategy, --temperature, --stop and the like of ./strata generate ask
// for; all of a request but its prompt.  INVALID_ARGUMENT, in one line, for
// what cannot be read; whether it is allowed is for the server to say.
// REQUIRES: flags are set.
absl::StatusOr<v1::GenerateRequest> GenerateRequestFromFlags();

}  // namespace strata

#endif  // CLIENT_GENERATE_FLAGS_H_
