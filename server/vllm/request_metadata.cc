#include "server/vllm/request_metadata.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata::vllm {
namespace {

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

std::string Text(grpc::string_ref text) {
  return std::string(text.data(), text.size());
}

absl::StatusOr<std::string> OnlyValue(const Metadata& metadata,
                                      const char* key) {
  const auto [begin, end] = metadata.equal_range(key);
  if (begin == end) return std::string();
  if (std::next(begin) != end) {
    return absl::InvalidArgumentError(
        absl::StrCat("metadata ", key, " is there more than once"));
  }
  return Text(begin->second);
}

}  // namespace

absl::StatusOr<RequestMetadata> ReadMetadata(const Metadata& metadata) {
  RequestMetadata read;
  STRATA_ASSIGN_OR_RETURN(read.strategy, OnlyValue(metadata, kStrategyKey));
  STRATA_ASSIGN_OR_RETURN(read.floor, OnlyValue(metadata, kFloorKey));
  // Proxies may add one of their own.
  const auto id = metadata.find(kRequestIdKey);
  if (id != metadata.end()) read.request_id = Text(id->second);
  return read;
}

}  // namespace strata::vllm
