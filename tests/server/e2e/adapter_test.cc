// A server with --adapter answers as PyTorch with PEFT does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/golden_scores.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kModel[] = "--model=tests/golden/llama-tied";
constexpr char kAdapter[] = "tests/golden/adapters/llama-tied";

TEST(AdapterTest, ScoresAreThoseOfTheAdaptedModel) {
  ServerProcess server(
      {kModel, absl::StrCat("--adapter=", kAdapter), "--precision=f32"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_THAT(server.Log(), HasSubstr(absl::StrCat("path=", kAdapter)));
  EXPECT_THAT(server.Log(), HasSubstr("r=7 matrices_merged=57 kept_as=F32"));
  Client client(server.grpc_address());
  EXPECT_EQ(client.GetModel().name(), "llama-tied+llama-tied");
  ExpectGoldenScores(Golden("adapters/llama-tied"), &client);
}

TEST(AdapterTest, IsAKeyOfTheConfiguration) {
  const std::string path = absl::StrCat(testing::TempDir(), "/adapter.yaml");
  std::ofstream(path) << "adapter: " << kAdapter << "\nprecision: f32\n";
  ServerProcess server({kModel, "--config=" + path});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  ExpectGoldenScores(Golden("adapters/llama-tied"), &client);
}

TEST(AdapterTest, WhatDoesNotFitEndsTheServerWithOneLine) {
  struct Case {
    std::string adapter;
    std::string says;
  };
  for (const Case& c :
       {Case{"/nonexistent", "/nonexistent/adapter_config.json: "},
        {"tests/golden/llama-tied", "adapter_config.json: "},
        {"tests/golden/adapters/qwen3-qknorm",
         "tests/golden/adapters/qwen3-qknorm/adapter_model.safetensors: the "
         "model, llama of 8 layers, has nothing for "}}) {
    ServerProcess server({kModel, "--adapter=" + c.adapter});
    EXPECT_EQ(server.Wait(), 1);
    const std::string log = server.Log();
    EXPECT_THAT(log, AllOf(StartsWith("strata_server: "), HasSubstr(c.says)));
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_EQ(server.out(), "");
  }
}

}  // namespace
}  // namespace strata
