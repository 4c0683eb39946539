#ifndef PLANNER_PLANNED_MODEL_H_
#define PLANNER_PLANNED_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/checkpoint.h"
#include "core/model/model_description.h"
#include "kernels/dtype.h"

namespace strata {

// A model to plan for: the shapes and types of its weights, which may lie
// nowhere.
struct PlannedModel {
  std::string name;
  // Where has_files is false, the views have no data: rows > 0 says that a
  // weight is there.
  Checkpoint checkpoint;
  bool has_files = false;
};

// The model of a .gguf file or a Hugging Face directory; its files are mapped,
// not read.  A directory may hold nothing but config.json: its matrices are of
// `weight_type` then, bf16 if absent.  INVALID_ARGUMENT if there are weights,
// which have types of their own, and a weight_type; other errors are those of
// LoadCheckpoint.
absl::StatusOr<PlannedModel> ReadModel(const std::string& path,
                                       std::optional<DType> weight_type);

// The weights that a model described so has, of no file.  INVALID_ARGUMENT if
// the rows of some matrix are no whole blocks of `weight_type`.
absl::StatusOr<PlannedModel> ModelOfShape(const std::string& name,
                                          const ModelDescription& description,
                                          DType weight_type);

// Elements of all weights, each once.
int64_t NumParameters(const PlannedModel& model);

}  // namespace strata

#endif  // PLANNER_PLANNED_MODEL_H_
