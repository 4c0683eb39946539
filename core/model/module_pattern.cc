#include "core/model/module_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/quote.h"

namespace strata {
namespace {

// Names are short: what takes more steps than this is a hostile pattern.
constexpr uint32_t kMaxSteps = 100'000;

absl::Status Bad(const std::string& pattern, int error) {
  PCRE2_UCHAR message[128] = "";
  pcre2_get_error_message(error, message, sizeof(message));
  return absl::InvalidArgumentError(
      absl::StrCat("pattern ", Quote(pattern), ": ",
                   reinterpret_cast<const char*>(message)));
}

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};

PCRE2_SPTR Units(const std::string& text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// Whether `prefix` and then `pattern` fit all of `module`.
absl::StatusOr<bool> Fits(const char* prefix, const std::string& pattern,
                          const std::string& module) {
  const std::string whole = absl::StrCat(prefix, "(", pattern, ")$");
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_code, Free> code(
      pcre2_compile(Units(whole), whole.size(), PCRE2_ANCHORED | PCRE2_UTF,
                    &error, &offset, nullptr));
  if (code == nullptr) return Bad(pattern, error);
  const std::unique_ptr<pcre2_match_data, Free> data(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(
      pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kMaxSteps);
  const int matched = pcre2_match(code.get(), Units(module), module.size(), 0,
                                  0, data.get(), context.get());
  if (matched == PCRE2_ERROR_NOMATCH) return false;
  if (matched < 0) return Bad(pattern, matched);
  return true;
}

}  // namespace

absl::StatusOr<bool> PatternFits(const std::string& pattern,
                                 const std::string& module) {
  return Fits("(.*\\.)?", pattern, module);
}

absl::StatusOr<bool> PatternFitsAll(const std::string& pattern,
                                    const std::string& module) {
  return Fits("", pattern, module);
}

}  // namespace strata
