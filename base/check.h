#ifndef BASE_CHECK_H_
#define BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace strata {

[[noreturn]] inline void CheckFailed(const char* file, int line,
                                     const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace strata

// For Strata's own invariants, in every build: ends the process with the place
// and the condition.  Input errors are absl::Status instead.
#define STRATA_CHECK(condition)       \
  (__builtin_expect(!!(condition), 1) \
       ? (void)0                      \
       : ::strata::CheckFailed(__FILE__, __LINE__, #condition))

// For a function that returns absl::Status or absl::StatusOr: returns the error
// of `expression`, if it is one.
#define STRATA_RETURN_IF_ERROR(expression)            \
  do {                                                \
    if (auto status_ = (expression); !status_.ok()) { \
      return status_;                                 \
    }                                                 \
  } while (false)

// `declaration` = the value of `expression`, a StatusOr; returns its error if
// it is one.
#define STRATA_ASSIGN_OR_RETURN(declaration, expression) \
  STRATA_ASSIGN_OR_RETURN_(declaration, expression,      \
                           STRATA_CONCAT_(statusor_, __LINE__))
#define STRATA_ASSIGN_OR_RETURN_(declaration, expression, name) \
  auto name = (expression);                                     \
  if (!name.ok()) return std::move(name).status();              \
  declaration = *std::move(name)
#define STRATA_CONCAT_(a, b) STRATA_CONCAT2_(a, b)
#define STRATA_CONCAT2_(a, b) a##b

#endif  // BASE_CHECK_H_
