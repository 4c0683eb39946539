// A server with --adapter answers as PyTorch with PEFT does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kModel[] = "--model=tests/golden/llama-tied";
constexpr char kAdapter[] = "tests/golden/adapters/llama-tied";

void ExpectGoldenScores(Client* client) {
  const Golden golden("adapters/llama-tied");
  for (const auto& [spec, plan] : golden.plans()) {
    v1::ScoreRequest request;
    for (const int32_t id : golden.prompt()) {
      request.mutable_tokens()->add_ids(id);
    }
    request.mutable_strategy()->set_spec(spec);
    v1::ScoreResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        client->inference().Score(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.logprobs_size(), request.tokens().ids_size() - 1);
    for (int i = 0; i < response.logprobs_size(); ++i) {
      const v1::TokenLogprob& got = response.logprobs(i).chosen();
      const double want = golden.Logprobs("logits/" + spec, i)[got.token_id()];
      EXPECT_NEAR(got.logprob(), want, 1e-3 * (1 + std::abs(want)))
          << spec << ", position " << i;
    }
  }
}

TEST(AdapterTest, ScoresAreThoseOfTheAdaptedModel) {
  ServerProcess server(
      {kModel, absl::StrCat("--adapter=", kAdapter), "--precision=f32"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_THAT(server.Log(), HasSubstr(absl::StrCat("path=", kAdapter)));
  EXPECT_THAT(server.Log(), HasSubstr("r=7 matrices_merged=57 kept_as=F32"));
  Client client(server.grpc_address());
  EXPECT_EQ(client.GetModel().name(), "llama-tied+llama-tied");
  ExpectGoldenScores(&client);
}

TEST(AdapterTest, IsAKeyOfTheConfiguration) {
  const std::string path = absl::StrCat(testing::TempDir(), "/adapter.yaml");
  std::ofstream(path) << "adapter: " << kAdapter << "\nprecision: f32\n";
  ServerProcess server({kModel, "--config=" + path});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  ExpectGoldenScores(&client);
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
