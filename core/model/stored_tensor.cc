#include "core/model/stored_tensor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/model/file_error.h"

namespace strata {

std::string ShapeText(std::span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckNoOverlap(const TensorMap& tensors) {
  using Entry = TensorMap::value_type;
  std::vector<const Entry*> by_offset;
  for (const Entry& entry : tensors) {
    if (!entry.second.bytes.empty()) by_offset.push_back(&entry);
  }
  std::ranges::sort(by_offset, std::less<>(), [](const Entry* entry) {
    return entry->second.bytes.data();
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const StoredTensor& previous = by_offset[i - 1]->second;
    const StoredTensor& next = by_offset[i]->second;
    if (previous.bytes.data() + previous.bytes.size() > next.bytes.data()) {
      return Malformed(next.file, "tensors ", Quote(by_offset[i - 1]->first),
                       " and ", Quote(by_offset[i]->first), " overlap");
    }
  }
  return absl::OkStatus();
}

}  // namespace strata
