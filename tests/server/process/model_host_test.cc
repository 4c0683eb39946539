// What a model needs that is not there ends its loading with what to change.
#include "server/process/model_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/server/hosted_model.h"
#include "tests/testing/faulty_backend.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

ServerOptions TinyOptions() {
  ServerOptions options;
  options.model = "tests/golden/llama-tied";
  options.kv_memory = {.bytes = 1 << 20};
  return options;
}

class ModelHostTest : public testing::Test {
 protected:
  absl::Status Load(const ServerOptions& options, Faults faults) {
    return LoadHost(options,
                    std::make_unique<FaultyBackend>(
                        std::make_unique<cpu::CpuBackend>(cpu::CpuOptions{}),
                        std::move(faults)),
                    &log_)
        .status();
  }
  int64_t Logged(const std::string& key) const {
    return log_.Number("memory", key);
  }

  FileLogger log_;
};

constexpr int64_t kFree = int64_t{1} << 30;

TEST_F(ModelHostTest, TheLogSaysWhereTheMemoryGoes) {
  ASSERT_TRUE(Load(TinyOptions(), {.free_bytes = kFree}).ok());
  EXPECT_GT(Logged("weight_bytes"), 0);
  EXPECT_EQ(Logged("logit_bytes"), 64 * 384 * 4);
  EXPECT_GT(Logged("workspace_bytes"), Logged("logit_bytes"));
  EXPECT_EQ(Logged("kv_bytes"), 1 << 20);
  EXPECT_EQ(Logged("kv_pages"), (1 << 20) / 2048);
  EXPECT_EQ(Logged("left_bytes"), kFree - (1 << 20));
}

TEST_F(ModelHostTest, APartOfWhatIsFreeBecomesPages) {
  ServerOptions options = TinyOptions();
  options.kv_memory = {.percent = 30};
  ASSERT_TRUE(Load(options, {.free_bytes = 100000 * 2048 + 2047}).ok());
  EXPECT_EQ(Logged("kv_pages"), 30000);
  EXPECT_EQ(Logged("kv_bytes"), 30000 * 2048);
  EXPECT_EQ(Logged("left_bytes"), 70000 * 2048 + 2047);
}

// From too little for the weights to enough, the first that does not fit.
TEST_F(ModelHostTest, WhatDoesNotFitIsNamed) {
  ServerOptions options = TinyOptions();
  ASSERT_TRUE(Load(options, {.free_bytes = kFree}).ok());
  const int64_t weights = Logged("weight_bytes");
  struct Case {
    int64_t free_bytes;
    std::string what;
    std::string remedy;
  };
  for (const Case& c :
       {Case{0, "the weights", "(--model: take a smaller one)"},
        {weights - 1, "the weights", "(--model: take a smaller one)"},
        {weights, "the workspace", "(lower --max_batched_tokens=512)"},
        {weights + (16 << 20), "the KV cache", "(lower --kv_memory=1GiB)"}}) {
    options.kv_memory = {.bytes = kFree};
    const absl::Status status = Load(options, {.free_bytes = c.free_bytes});
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(absl::StrCat("out of memory for ", c.what)),
                      HasSubstr(c.remedy)));
  }
}

// What the backend finds out only when it allocates.
TEST_F(ModelHostTest, ABackendThatRunsOutOfMemorySaysForWhat) {
  const absl::Status none = absl::ResourceExhaustedError("no memory today");
  const auto message = [&](Faults faults) {
    faults.free_bytes = kFree;
    const absl::Status status = Load(TinyOptions(), std::move(faults));
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message({.packing = none}),
              AllOf(StartsWith("out of memory for the weights: "),
                    HasSubstr("(no memory today; --model: ")));
  EXPECT_THAT(message({.reserving = none}),
              AllOf(StartsWith("out of memory for the workspace: "),
                    HasSubstr("; lower --max_batched_tokens=512)")));
  EXPECT_THAT(message({.creating_pages = none}),
              AllOf(StartsWith("out of memory for the KV cache: 1.0 MiB "
                               "wanted, 1.0 GiB free"),
                    HasSubstr("; lower --kv_memory=1MiB)")));
}

TEST_F(ModelHostTest, OtherErrorsOfABackendStay) {
  const absl::Status broken = absl::InternalError("broken");
  EXPECT_EQ(Load(TinyOptions(), {.packing = broken}), broken);
  EXPECT_EQ(Load(TinyOptions(), {.creating_pages = broken}), broken);
  const absl::Status status =
      Load(TinyOptions(), {.reserving = absl::UnimplementedError("heads")});
  EXPECT_EQ(status, absl::UnimplementedError("tests/golden/llama-tied: heads"));
}

}  // namespace
}  // namespace strata
