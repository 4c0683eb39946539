// A server whose model is split over ranks answers as PyTorch does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
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

struct Case {
  std::string model;
  int num_ranks;
};

TEST(ParallelServerTest, ScoresAreThoseOfPyTorch) {
  for (const Case& c : {Case{"llama-tied", 2}, {"mistral", 5}}) {
    SCOPED_TRACE(c.model);
    ServerProcess server({"--model=tests/golden/" + c.model, "--backend=cpu",
                          "--precision=f32",
                          absl::StrCat("--tensor_parallel=", c.num_ranks)});
    ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
    EXPECT_THAT(server.Log(), HasSubstr(absl::StrCat(c.num_ranks, " ranks")));
    Client client(server.grpc_address());
    const Golden golden(c.model);
    for (const auto& [spec, plan] : golden.plans()) {
      v1::ScoreRequest request;
      for (const int32_t id : golden.prompt()) {
        request.mutable_tokens()->add_ids(id);
      }
      request.mutable_strategy()->set_spec(spec);
      v1::ScoreResponse response;
      grpc::ClientContext context;
      const grpc::Status status =
          client.inference().Score(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(response.logprobs_size(), request.tokens().ids_size() - 1);
      for (int i = 0; i < response.logprobs_size(); ++i) {
        const v1::TokenLogprob& got = response.logprobs(i).chosen();
        const double want =
            golden.Logprobs("logits/" + spec, i)[got.token_id()];
        EXPECT_NEAR(got.logprob(), want, 1e-3 * (1 + std::abs(want)))
            << spec << ", position " << i;
      }
    }
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0) << server.Log();
  }
}

TEST(ParallelServerTest, WhatDoesNotDivideEndsTheServerWithOneLine) {
  for (const auto& [flag, says] :
       std::vector<std::pair<std::string, std::string>>{
           {"--tensor_parallel=3",
            "--tensor_parallel=3: the model has 2 KV heads, and each device "
            "takes as many: allowed are 1, 2"},
           {"--tensor_parallel=0", "--tensor_parallel=0: allowed are 1 to 64"},
       }) {
    ServerProcess server({"--model=tests/golden/llama-tied", flag});
    EXPECT_EQ(server.Wait(), 1);
    const std::string log = server.Log();
    EXPECT_THAT(log, AllOf(StartsWith("strata_server: "), HasSubstr(says)));
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  }
}

}  // namespace
}  // namespace strata
