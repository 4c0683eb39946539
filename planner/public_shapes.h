#ifndef PLANNER_PUBLIC_SHAPES_H_
#define PLANNER_PUBLIC_SHAPES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "core/model/model_description.h"

namespace strata {

// The dimensions of a public model by name, as its config.json has them, for
// planning before anything is downloaded.  INVALID_ARGUMENT, with the names
// allowed, for others.
absl::StatusOr<ModelDescription> FindPublicShape(std::string_view name);

}  // namespace strata

#endif  // PLANNER_PUBLIC_SHAPES_H_
