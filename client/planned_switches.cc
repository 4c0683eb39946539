#include "client/planned_switches.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata {

absl::Status AddPlannedSwitches(absl::string_view list,
                                v1::Strategy* strategy) {
  if (list.empty()) return absl::OkStatus();
  for (const absl::string_view item : absl::StrSplit(list, ';')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    const absl::string_view spec = absl::StripAsciiWhitespace(parts.second);
    uint32_t after_generated = 0;
    if (!absl::SimpleAtoi(parts.first, &after_generated) || spec.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item,
                       "' is no TOKENS:STRATEGY; several are separated by ';' "
                       "(5:every=4;32:leaders=0,4)"));
    }
    v1::PlannedSwitch* planned = strategy->add_switches();
    planned->set_after_generated(after_generated);
    planned->set_spec(std::string(spec));
  }
  return absl::OkStatus();
}

}  // namespace strata
