#ifndef CORE_MODEL_MODULE_PATTERN_H_
#define CORE_MODEL_MODULE_PATTERN_H_

#include <string>

#include "absl/status/statusor.h"

namespace strata {

// Whether `pattern`, a regular expression, fits all of `module` or what follows
// one of its dots: PEFT's get_pattern_key, which asks Python's re for
// (.*\.)?(PATTERN)$ at the beginning of the name; here PCRE2 is asked.
// INVALID_ARGUMENT for what is no pattern or takes too long to match.
absl::StatusOr<bool> PatternFits(const std::string& pattern,
                                 const std::string& module);

// Whether `pattern` fits all of `module`: Python's re.fullmatch, which PEFT
// asks about target_modules and exclude_modules.  Errors as above.
absl::StatusOr<bool> PatternFitsAll(const std::string& pattern,
                                    const std::string& module);

}  // namespace strata

#endif  // CORE_MODEL_MODULE_PATTERN_H_
