// A server whose model is split over ranks answers as PyTorch does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
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
    ExpectGoldenScores(Golden(c.model), &client);
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
