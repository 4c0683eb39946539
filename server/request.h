#ifndef SERVER_REQUEST_H_
#define SERVER_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/request.h"
#include "proto/strata.pb.h"
#include "server/serving_state.h"

namespace strata {

// The one way from messages of strata.v1 to what the engine runs: every rule of
// proto/strata.proto, but for what FitRequest (core/fit_request.h) decides.
// Errors have the codes listed at the top of the proto, and name the field, its
// value and what is allowed.  Thread-safe; may take long for a long text.
absl::StatusOr<Request> ToRequest(const ServedModel& model,
                                  const v1::GenerateRequest& message,
                                  absl::Time deadline);
absl::StatusOr<Request> ToRequest(const ServedModel& model,
                                  const v1::ScoreRequest& message,
                                  absl::Time deadline);

// Of what is to be encoded: 0 where the prompt is ids.
size_t TextBytes(const v1::GenerateRequest& message);
size_t TextBytes(const v1::ScoreRequest& message);
size_t TextBytes(const v1::TokenizeRequest& message);

// What the client set, for FitRequest.
std::optional<uint32_t> MaxTokensOf(const v1::GenerateRequest& message);
std::optional<uint32_t> MaxTokensOf(const v1::ScoreRequest& message);

// Exactly the ids that Generate would run; texts too long for it are refused
// too.
absl::StatusOr<std::vector<int32_t>> ToTokens(
    const ServedModel& model, const v1::TokenizeRequest& message);

// INVALID_ARGUMENT for a label that no request can have: over 256 bytes.
absl::Status CheckRequestId(std::string_view id);

// NOT_FOUND unless `name` is empty or that of the served model.
absl::Status CheckModelName(const ServedModel& model, std::string_view name);

}  // namespace strata

#endif  // SERVER_REQUEST_H_
