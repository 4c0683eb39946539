#include "core/model/module_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

constexpr char kModule[] = "model.layers.11.self_attn.q_proj";

bool Fits(const std::string& pattern) {
  const absl::StatusOr<bool> fits = PatternFits(pattern, kModule);
  EXPECT_TRUE(fits.ok()) << pattern << ": " << fits.status();
  return fits.value_or(false);
}

// What Python's re.match(rf"(.*\.)?({pattern})$", module) says.
TEST(ModulePatternTest, FitsAsPythonDoes) {
  for (const char* pattern :
       {"q_proj", "self_attn.q_proj", "model.layers.11.self_attn.q_proj",
        "^model.layers.11.self_attn.q_proj", ".*", "q_.*",
        "layers\\.(1|11)\\.self_attn\\.q_proj", "q_proj|k_proj",
        "k_proj|q_proj", "[qk]_proj", "11.self_attn.q_proj", "q.proj",
        "layers.\\d+.self_attn.q_proj"}) {
    EXPECT_TRUE(Fits(pattern)) << pattern;
  }
  for (const char* pattern :
       {"proj", "k_proj", "q_pro", "q_proj.", "1.self_attn.q_proj",
        "^layers.11.self_attn.q_proj", "^q_proj", "Q_PROJ", "",
        "layers\\.(1|2)\\.self_attn\\.q_proj", "self_attn"}) {
    EXPECT_FALSE(Fits(pattern)) << pattern;
  }
}

// What Python's re.fullmatch(pattern, module) says.
TEST(ModulePatternTest, FitsAllAsPythonDoes) {
  for (const char* pattern :
       {".*q_proj", "model.layers.11.self_attn.q_proj", ".*k_proj|.*q_proj",
        "(?i).*Q_PROJ", "^model.*$", "(?P<a>model).*"}) {
    EXPECT_TRUE(*PatternFitsAll(pattern, kModule)) << pattern;
  }
  for (const char* pattern :
       {"q_proj", "self_attn.q_proj", "q_proj|.*k_proj", "model", ""}) {
    EXPECT_FALSE(*PatternFitsAll(pattern, kModule)) << pattern;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PatternFitsAll("(", kModule).status()));
}

TEST(ModulePatternTest, WhatIsNoPatternIsAnError) {
  for (const char* pattern : {"(", "[a", "*", "\xff", "(?P<"}) {
    const absl::Status status = PatternFits(pattern, kModule).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << pattern;
  }
}

TEST(ModulePatternTest, APatternThatTakesTooLongIsAnError) {
  const absl::Status status =
      PatternFits("(\\w+)+[0-9]", std::string(200, 'a')).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace strata
