#ifndef SERVER_KSERVE_INFER_INPUTS_H_
#define SERVER_KSERVE_INFER_INPUTS_H_

#include <map>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/kserve/proto/grpc_service.pb.h"

namespace strata::kserve {

// The inputs of a ModelInferRequest, each of one element.  Views of the
// message, which outlives this.
class InferInputs {
 public:
  // Takes raw and typed contents.  INVALID_ARGUMENT names the input and what is
  // allowed: one that is not of kInputs or is there twice, another datatype or
  // shape, contents that do not fit it, text that is not UTF-8, a required one
  // that is missing.  UNIMPLEMENTED: contents in shared memory.
  static absl::StatusOr<InferInputs> Parse(
      const inference::ModelInferRequest& message);

  // Of a BYTES input; absent where the client sent none.
  std::optional<std::string_view> Text(std::string_view name) const;
  // Of a BOOL input.
  std::optional<bool> Bool(std::string_view name) const;

 private:
  absl::Status Add(const inference::ModelInferRequest& message, int index);

  std::map<std::string_view, std::string_view> texts_;
  std::map<std::string_view, bool> bools_;
};

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_INFER_INPUTS_H_
