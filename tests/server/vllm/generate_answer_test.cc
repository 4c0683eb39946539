// From what the engine gives to chunks and completes.
#include "server/vllm/generate_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/server/vllm/messages.h"

namespace strata::vllm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using ::vllm::grpc::engine::GenerateComplete;
using ::vllm::grpc::engine::GenerateResponse;
using ::vllm::grpc::engine::GenerateStreamChunk;

constexpr GenerateAnswer::Options kWhole = {};
constexpr GenerateAnswer::Options kStreamed = {.is_streamed = true};

Request MakeRequest() {
  Request request(SharingStrategy::Full(4));
  request.prompt = {11, 12, 13};
  return request;
}

GenerateAnswer Admitted(const GenerateAnswer::Options& options,
                        const Request& request) {
  GenerateAnswer answer(options);
  answer.Admit(request, /*eos_ids=*/{2, 3});
  return answer;
}

GenerateResponse Take(GenerateAnswer* answer) {
  GenerateResponse response;
  EXPECT_TRUE(answer->HasNews());
  if (answer->HasNews()) answer->Take(&response);
  return response;
}
GenerateStreamChunk TakeChunk(GenerateAnswer* answer) {
  const GenerateResponse response = Take(answer);
  EXPECT_TRUE(response.has_chunk());
  return response.chunk();
}
GenerateComplete TakeComplete(GenerateAnswer* answer) {
  const GenerateResponse response = Take(answer);
  EXPECT_TRUE(response.has_complete());
  return response.complete();
}

TEST(VllmAnswerTest, WithoutStreamOneComplete) {
  GenerateAnswer answer = Admitted(kWhole, MakeRequest());
  answer.Add(Delta(0, {5}));
  EXPECT_FALSE(answer.HasNews());
  answer.Add(End(Delta(0, {6, 7}), FinishReason::kLength));
  const GenerateComplete complete = TakeComplete(&answer);
  EXPECT_THAT(complete.output_ids(), ElementsAre(5, 6, 7));
  EXPECT_EQ(complete.finish_reason(), "length");
  EXPECT_EQ(complete.prompt_tokens(), 3u);
  EXPECT_EQ(complete.completion_tokens(), 3u);
  EXPECT_EQ(complete.cached_tokens(), 7u);
  EXPECT_FALSE(complete.has_output_logprobs());
  EXPECT_FALSE(complete.has_input_logprobs());
  EXPECT_FALSE(answer.HasNews());
}

TEST(VllmAnswerTest, ChunksThenAComplete) {
  GenerateAnswer answer = Admitted(kStreamed, MakeRequest());
  answer.Add(Delta(0, {5}));
  GenerateStreamChunk chunk = TakeChunk(&answer);
  EXPECT_THAT(chunk.token_ids(), ElementsAre(5));
  EXPECT_EQ(chunk.prompt_tokens(), 3u);
  EXPECT_EQ(chunk.completion_tokens(), 1u);
  EXPECT_FALSE(answer.HasNews());
  // Two steps while nothing could be written.
  answer.Add(Delta(0, {6}));
  answer.Add(End(Delta(0, {7}), FinishReason::kStop));
  chunk = TakeChunk(&answer);
  EXPECT_THAT(chunk.token_ids(), ElementsAre(6, 7));
  EXPECT_EQ(chunk.completion_tokens(), 2u);
  const GenerateComplete complete = TakeComplete(&answer);
  EXPECT_THAT(complete.output_ids(), ElementsAre(5, 6, 7));
  EXPECT_EQ(complete.completion_tokens(), 3u);
  EXPECT_EQ(complete.finish_reason(), "stop");
  EXPECT_FALSE(answer.HasNews());
}

TEST(VllmAnswerTest, SlowReadersGetLongChunksOfBoundedSize) {
  Request request = MakeRequest();
  request.num_top_logprobs = 1;
  GenerateAnswer answer = Admitted(kStreamed, request);
  for (int i = 0; i < 2500; ++i) answer.Add(Delta(0, {i}, 1));
  std::vector<int32_t> tokens;
  std::vector<int> sizes;
  while (answer.HasNews()) {
    const GenerateStreamChunk chunk = TakeChunk(&answer);
    sizes.push_back(chunk.token_ids_size());
    EXPECT_EQ(chunk.output_logprobs().token_ids_size(), sizes.back());
    EXPECT_EQ(chunk.output_logprobs().top_logprobs_size(), sizes.back());
    tokens.insert(tokens.end(), chunk.token_ids().begin(),
                  chunk.token_ids().end());
  }
  EXPECT_THAT(sizes, ElementsAre(1024, 1024, 452));
  ASSERT_EQ(tokens.size(), 2500u);
  EXPECT_EQ(tokens[1024], 1024);
  EXPECT_EQ(tokens.back(), 2499);
}

TEST(VllmAnswerTest, IndicesTakeTurns) {
  Request request = MakeRequest();
  request.num_sequences = 2;
  GenerateAnswer answer = Admitted(kStreamed, request);
  for (int i = 0; i < 1030; ++i) answer.Add(Delta(0, {i}));
  answer.Add(End(Delta(1, {9}), FinishReason::kLength));
  EXPECT_EQ(TakeChunk(&answer).index(), 0u);
  EXPECT_EQ(TakeChunk(&answer).index(), 1u);
  EXPECT_EQ(TakeChunk(&answer).index(), 0u);
  const GenerateComplete complete = TakeComplete(&answer);
  EXPECT_EQ(complete.index(), 1u);
  EXPECT_THAT(complete.output_ids(), ElementsAre(9));
  EXPECT_FALSE(answer.HasNews());
}

TEST(VllmAnswerTest, LogprobsStandByTheirTokens) {
  Request request = MakeRequest();
  request.num_top_logprobs = 2;
  GenerateAnswer answer = Admitted(kStreamed, request);
  answer.Add(Delta(0, {5}, 2));
  EXPECT_THAT(TakeChunk(&answer).output_logprobs().token_logprobs(),
              ElementsAre(-5.0f));
  answer.Add(End(Delta(0, {6}, 2), FinishReason::kLength));
  const auto logprobs = TakeChunk(&answer).output_logprobs();
  EXPECT_THAT(logprobs.token_ids(), ElementsAre(6));
  EXPECT_THAT(logprobs.token_logprobs(), ElementsAre(-6.0f));
  ASSERT_EQ(logprobs.top_logprobs_size(), 1);
  EXPECT_THAT(logprobs.top_logprobs(0).token_ids(), ElementsAre(101, 102));
  EXPECT_THAT(logprobs.top_logprobs(0).values(), ElementsAre(-1.0f, -2.0f));
  // They were told.
  EXPECT_FALSE(TakeComplete(&answer).has_output_logprobs());
}

TEST(VllmAnswerTest, LogprobsOfTheChosenAlone) {
  Request request = MakeRequest();
  request.num_top_logprobs = 0;
  GenerateAnswer answer = Admitted(kWhole, request);
  answer.Add(End(Delta(0, {5, 6}, 0), FinishReason::kLength));
  const auto logprobs = TakeComplete(&answer).output_logprobs();
  EXPECT_THAT(logprobs.token_logprobs(), ElementsAre(-5.0f, -6.0f));
  EXPECT_THAT(logprobs.top_logprobs(), IsEmpty());
}

TEST(VllmAnswerTest, PromptLogprobsComeFirstAndOnce) {
  GenerateAnswer answer = Admitted(
      {.is_streamed = true, .has_prompt_logprobs = true}, MakeRequest());
  answer.Add(Delta(0, {5}));
  EXPECT_FALSE(answer.HasNews());
  answer.SetPromptLogprobs(Delta(0, {12, 13}, 1).logprobs);
  const auto logprobs = TakeChunk(&answer).input_logprobs();
  EXPECT_THAT(logprobs.token_ids(), ElementsAre(11, 12, 13));
  ASSERT_EQ(logprobs.token_logprobs_size(), 3);
  EXPECT_FALSE(logprobs.token_logprobs(0).has_value());
  EXPECT_EQ(logprobs.token_logprobs(1).value(), -12.0f);
  EXPECT_EQ(logprobs.token_logprobs(2).value(), -13.0f);
  ASSERT_EQ(logprobs.top_logprobs_size(), 3);
  EXPECT_THAT(logprobs.top_logprobs(0).token_ids(), IsEmpty());
  EXPECT_THAT(logprobs.top_logprobs(2).token_ids(), ElementsAre(101));
  answer.Add(End(Delta(0, {6}), FinishReason::kLength));
  EXPECT_FALSE(TakeChunk(&answer).has_input_logprobs());
  EXPECT_FALSE(TakeComplete(&answer).has_input_logprobs());
}

TEST(VllmAnswerTest, PromptLogprobsInTheComplete) {
  Request request = MakeRequest();
  request.num_sequences = 2;
  GenerateAnswer answer = Admitted({.has_prompt_logprobs = true}, request);
  answer.SetPromptLogprobs(Delta(0, {12, 13}, 0).logprobs);
  for (const int index : {1, 0}) {
    answer.Add(End(Delta(index, {5}), FinishReason::kLength));
    const GenerateComplete complete = TakeComplete(&answer);
    EXPECT_EQ(complete.index(), static_cast<uint32_t>(index));
    EXPECT_EQ(complete.input_logprobs().token_ids_size(), 3);
    EXPECT_EQ(complete.input_logprobs().top_logprobs_size(), 0);
  }
}

TEST(VllmAnswerTest, AbortedWithoutPromptLogprobs) {
  GenerateAnswer answer =
      Admitted({.has_prompt_logprobs = true}, MakeRequest());
  answer.Add(End(Delta(0, {}), FinishReason::kAborted));
  EXPECT_TRUE(answer.is_aborted());
  EXPECT_FALSE(answer.HasNews());
  answer.SetPromptLogprobs(std::nullopt);
  const GenerateComplete complete = TakeComplete(&answer);
  EXPECT_EQ(complete.finish_reason(), "abort");
  EXPECT_THAT(complete.output_ids(), IsEmpty());
  EXPECT_FALSE(complete.has_input_logprobs());
}

TEST(VllmAnswerTest, SaysWhatStoppedIt) {
  struct Case {
    int32_t last;
    FinishReason reason;
    std::string matched;
    bool ignore_eos;
    GenerateComplete::MatchedStopCase stop;
  };
  for (const Case& c :
       std::vector<Case>{{8, FinishReason::kStop, "", false,
                          GenerateComplete::kMatchedTokenId},
                         {8, FinishReason::kLength, "", false,
                          GenerateComplete::MATCHED_STOP_NOT_SET},
                         {2, FinishReason::kStop, "", false,
                          GenerateComplete::MATCHED_STOP_NOT_SET},
                         // Also a stop token, but the end of the text first.
                         {3, FinishReason::kStop, "", false,
                          GenerateComplete::MATCHED_STOP_NOT_SET},
                         {3, FinishReason::kStop, "", true,
                          GenerateComplete::kMatchedTokenId},
                         {9, FinishReason::kStop, "end", false,
                          GenerateComplete::kMatchedStopStr}}) {
    Request request = MakeRequest();
    request.stopping.stop_tokens = {3, 8};
    request.stopping.ignore_eos = c.ignore_eos;
    GenerateAnswer answer = Admitted(kWhole, request);
    answer.Add(End(Delta(0, {1, c.last}), c.reason, c.matched));
    const GenerateComplete complete = TakeComplete(&answer);
    EXPECT_EQ(complete.matched_stop_case(), c.stop) << c.last;
    if (c.stop == GenerateComplete::kMatchedTokenId) {
      EXPECT_EQ(complete.matched_token_id(), static_cast<uint32_t>(c.last));
    }
    EXPECT_EQ(complete.matched_stop_str(), c.matched);
  }
}

}  // namespace
}  // namespace strata::vllm
