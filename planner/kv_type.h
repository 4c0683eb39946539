#ifndef PLANNER_KV_TYPE_H_
#define PLANNER_KV_TYPE_H_

namespace strata {

// Elements of the planned KV cache, one of what the backends have: f32 is the
// CPU's, fp8 the GPU's.
enum class PlannedKvType { kF32, kBF16, kFp8 };

inline const char* NameOf(PlannedKvType type) {
  switch (type) {
    case PlannedKvType::kF32:
      return "f32";
    case PlannedKvType::kBF16:
      return "bf16";
    case PlannedKvType::kFp8:
      return "fp8";
  }
  return "";
}

}  // namespace strata

#endif  // PLANNER_KV_TYPE_H_
