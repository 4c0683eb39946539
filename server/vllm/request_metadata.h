#ifndef SERVER_VLLM_REQUEST_METADATA_H_
#define SERVER_VLLM_REQUEST_METADATA_H_

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace strata::vllm {

// What a client of this face says in the metadata of a call, as the messages
// have no fields for it.  Empty where it is not there.
struct RequestMetadata {
  std::string strategy;    // x-kv-strategy
  std::string floor;       // x-kv-floor
  std::string request_id;  // x-request-id
};

inline constexpr char kStrategyKey[] = "x-kv-strategy";
inline constexpr char kFloorKey[] = "x-kv-floor";
inline constexpr char kRequestIdKey[] = "x-request-id";

// INVALID_ARGUMENT for a strategy or a floor that is there more than once.
absl::StatusOr<RequestMetadata> ReadMetadata(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

}  // namespace strata::vllm

#endif  // SERVER_VLLM_REQUEST_METADATA_H_
