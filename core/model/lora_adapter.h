#ifndef CORE_MODEL_LORA_ADAPTER_H_
#define CORE_MODEL_LORA_ADAPTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/model/checkpoint.h"

namespace strata {

// What an adapter did to a checkpoint.
struct AdapterSummary {
  int rank = 0;          // the largest
  int num_merged = 0;    // matrices with an update
  int num_replaced = 0;  // tensors that the adapter holds as a whole
  std::string kept_as;   // types of the merged matrices: "Q8_0", "F32, BF16"
};

// Binds a LoRA adapter as PEFT's save_pretrained writes it
// (adapter_config.json, adapter_model.safetensors) to the model that it was
// trained for: the checkpoint's views point to the tensors that the adapter
// replaces, and its updates to the pairs lora_A and lora_B, which PackModel
// merges.  The checkpoint owns the adapter's file from then on.
//
// Merged matrices are kept in F32 if `exact`; else in the type of the
// checkpoint, but Q8_0 where that has four bits: the update is smaller than
// their steps.
//
// Every tensor of the file is used, or else the adapter is refused.  Errors:
// NOT_FOUND, INVALID_ARGUMENT (malformed, or of another model), UNIMPLEMENTED
// (a variant of LoRA, by name); one line that begins with the file's path.  The
// checkpoint is of no use after an error.
absl::StatusOr<AdapterSummary> ApplyLoraAdapter(const std::string& directory,
                                                bool exact,
                                                Checkpoint* checkpoint);

}  // namespace strata

#endif  // CORE_MODEL_LORA_ADAPTER_H_
