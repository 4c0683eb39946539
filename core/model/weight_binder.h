#ifndef CORE_MODEL_WEIGHT_BINDER_H_
#define CORE_MODEL_WEIGHT_BINDER_H_

#include "absl/status/status.h"
#include "core/model/checkpoint.h"
#include "core/model/model_description.h"
#include "core/model/stored_tensor.h"

namespace strata {

// Whose names the tensors have.
enum class TensorNaming {
  kHuggingFace,  // model.layers.0.self_attn.q_proj.weight
  kGguf,         // blk.0.attn_q.weight
};

// Points the views of `checkpoint` at the tensors of a model: each has the
// shape that description.config demands, and a type that Strata computes with.
// `source` (a file or a directory) begins the message where a tensor is
// missing.  Sets weight_format and weight_bytes too.
absl::Status BindWeights(std::string_view source, const TensorMap& tensors,
                         TensorNaming naming,
                         const ModelDescription& description,
                         Checkpoint* checkpoint);

}  // namespace strata

#endif  // CORE_MODEL_WEIGHT_BINDER_H_
