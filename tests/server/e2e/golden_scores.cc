#include "tests/server/e2e/golden_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strata {

void ExpectGoldenScores(const Golden& golden, Client* client) {
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

}  // namespace strata
