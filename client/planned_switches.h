#ifndef CLIENT_PLANNED_SWITCHES_H_
#define CLIENT_PLANNED_SWITCHES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/strata.pb.h"

namespace strata {

// Adds the switches of "5:every=4;32:leaders=0,4" to `*strategy`: after so many
// generated tokens, that strategy.  "": none.  INVALID_ARGUMENT for what is no
// N:SPEC; whether a switch is allowed is for the server to say.
absl::Status AddPlannedSwitches(absl::string_view list, v1::Strategy* strategy);

}  // namespace strata

#endif  // CLIENT_PLANNED_SWITCHES_H_
