#include "server/native/inference_service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/native/service_fixture.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

constexpr int kPageTokens = 4;
constexpr int kLayers = 8;

TEST(InferenceServiceTest, StreamsTheGoldenTokensOfEveryStrategy) {
  TinyServer server;
  const Golden golden("llama-tied");
  for (const auto& [spec, plan] : golden.plans()) {
    if (!plan.IsClear()) continue;  // a tie in f32
    const std::vector<int32_t>& want = plan.greedy;
    std::vector<Generated> got;
    const grpc::Status status = server.Generate(
        TinyServer::Greedy(golden.prompt(), spec, want.size()), &got);
    ASSERT_TRUE(status.ok()) << spec << status.error_message();
    EXPECT_EQ(got[0].tokens, want) << spec;
    ASSERT_TRUE(got[0].done.has_value());
    EXPECT_EQ(got[0].done->reason(), v1::LENGTH);
    const v1::Usage& usage = got[0].done->usage();
    const int positions = golden.prompt().size() + want.size() - 1;
    const int64_t pages = (positions + kPageTokens - 1) / kPageTokens;
    EXPECT_EQ(usage.prompt_tokens(), golden.prompt().size());
    EXPECT_EQ(usage.generated_tokens(), want.size());
    EXPECT_EQ(usage.kv_bytes(),
              plan.num_leaders * pages * server.served.tiny.page_bytes);
    EXPECT_EQ(usage.kv_bytes_full(),
              kLayers * pages * server.served.tiny.page_bytes);
    EXPECT_EQ(usage.strategy(), server.served.tiny.Strategy(spec).canonical());
  }
}

TEST(InferenceServiceTest, SampleZeroOfManyIsTheSingleOne) {
  TinyServer server;
  v1::GenerateRequest request = TinyServer::Greedy({3, 4}, "every=2", 20);
  request.mutable_sampling()->set_temperature(1);
  request.mutable_sampling()->set_seed(17);
  request.set_top_logprobs(2);
  std::vector<Generated> one, three;
  ASSERT_TRUE(server.Generate(request, &one).ok());
  request.set_num_sequences(3);
  ASSERT_TRUE(server.Generate(request, &three).ok());
  EXPECT_EQ(one[0].tokens, three[0].tokens);
  EXPECT_NE(three[0].tokens, three[1].tokens);
  EXPECT_NE(three[1].tokens, three[2].tokens);
  for (const Generated& sample : three) {
    ASSERT_EQ(sample.tokens.size(), 20u);
    ASSERT_EQ(sample.logprobs.size(), 20u);
    EXPECT_TRUE(sample.done.has_value());
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      const v1::Logprobs& logprobs = sample.logprobs[i];
      EXPECT_EQ(static_cast<int>(logprobs.chosen().token_id()),
                sample.tokens[i]);
      ASSERT_EQ(logprobs.top_size(), 2);
      EXPECT_GE(logprobs.top(0).logprob(), logprobs.top(1).logprob());
      EXPECT_LE(logprobs.chosen().logprob(), logprobs.top(0).logprob());
    }
  }
}

TEST(InferenceServiceTest, CancelFreesTheRequest) {
  TinyServer server;
  grpc::ClientContext context;
  auto reader = server.inference->Generate(&context, Endless("x"));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.WaitUntilIdle();
  const RequestLog log = server.Logs(1).at(0);
  EXPECT_TRUE(absl::IsCancelled(log.status)) << log.status;
  EXPECT_EQ(log.num_sequences, 1);
  EXPECT_GT(log.generated_tokens, 0);
  EXPECT_LT(log.generated_tokens, 250);
  EXPECT_EQ(log.num_ended, 0);
  EXPECT_FALSE(log.queue_seconds.has_value());
  EXPECT_EQ(Finished(server, "cancelled"), 1);
}

TEST(InferenceServiceTest, ADeadlineFreesTheRequest) {
  TinyServer server;
  for (int microseconds : {100, 3000, 10000}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::microseconds(microseconds));
    v1::GenerateRequest request = Endless("x");
    request.set_num_sequences(32);
    std::vector<Generated> generated;
    EXPECT_EQ(server.Generate(request, &generated, &context).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    server.WaitUntilIdle();
  }
}

// gRPC, too, looks at the deadline, and cancels.
TEST(InferenceServiceTest, ADeadlineIsNoCancel) {
  TinyServer server;
  constexpr int kNumCalls = 30;
  // On a busy machine some do not reach it before.
  while (Finished(server, "deadline") + Finished(server, "cancelled") <
         kNumCalls) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(20));
    v1::GenerateRequest request = Endless("x");
    request.set_num_sequences(32);
    std::vector<Generated> generated;
    EXPECT_EQ(server.Generate(request, &generated, &context).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    server.WaitUntilIdle();
  }
  for (const RequestLog& log : server.Logs(kNumCalls)) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(log.status)) << log.status;
  }
  EXPECT_EQ(Finished(server, "cancelled"), 0);
}

TEST(InferenceServiceTest, AbortEndsTheStreamWell) {
  TinyServer server;
  grpc::ClientContext context;
  auto reader = server.inference->Generate(&context, Endless("mine"));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));

  const auto abort = [&](const std::string& label) {
    grpc::ClientContext abort_context;
    v1::AbortRequest request;
    request.set_request_id(label);
    v1::AbortResponse aborted;
    const grpc::Status status =
        server.inference->Abort(&abort_context, request, &aborted);
    return status.ok() ? static_cast<int>(aborted.aborted())
                       : -static_cast<int>(status.error_code());
  };
  EXPECT_EQ(abort("other"), 0);
  EXPECT_EQ(abort(""), -static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  const int num_aborted = abort("mine");
  int num_tokens = 1;
  while (reader->Read(&response)) num_tokens += response.token_ids_size();
  EXPECT_TRUE(reader->Finish().ok());
  ASSERT_TRUE(response.has_done());
  EXPECT_EQ(static_cast<int>(response.done().usage().generated_tokens()),
            num_tokens);
  // It may have come to its end before.
  EXPECT_EQ(response.done().reason(),
            num_aborted == 1 ? v1::ABORTED : v1::LENGTH);
  EXPECT_EQ(abort("mine"), 0);
  server.WaitUntilIdle();
}

TEST(InferenceServiceTest, ScoreGivesTheGoldenLogprobs) {
  TinyServer server;
  const Golden golden("llama-tied");
  v1::ScoreRequest request;
  for (int32_t id : golden.prompt()) request.mutable_tokens()->add_ids(id);
  request.mutable_strategy()->set_spec("every=3");
  request.set_top_logprobs(1);
  grpc::ClientContext context;
  v1::ScoreResponse response;
  const grpc::Status status =
      server.inference->Score(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const int n = golden.prompt().size();
  ASSERT_EQ(response.token_ids_size(), n);
  ASSERT_EQ(response.logprobs_size(), n - 1);
  double sum = 0;
  for (int i = 0; i + 1 < n; ++i) {
    const std::vector<double> want = golden.Logprobs("logits/every=3", i);
    const int32_t next = golden.prompt()[i + 1];
    EXPECT_EQ(static_cast<int32_t>(response.token_ids(i + 1)), next);
    EXPECT_EQ(static_cast<int32_t>(response.logprobs(i).chosen().token_id()),
              next);
    EXPECT_NEAR(response.logprobs(i).chosen().logprob(), want[next],
                1e-3 * std::abs(want[next]) + 1e-6);
    EXPECT_EQ(response.logprobs(i).top_size(), 1);
    sum += want[next];
  }
  EXPECT_NEAR(response.sum_logprob(), sum, 1e-3 * std::abs(sum));
  EXPECT_EQ(response.usage().strategy(), "every=3");
  EXPECT_EQ(static_cast<int>(response.usage().prompt_tokens()), n);
}

TEST(InferenceServiceTest, ScoreOfOneTokenHasNoLogprobs) {
  TinyServer server;
  v1::ScoreRequest request;
  request.mutable_tokens()->add_ids(5);
  grpc::ClientContext context;
  v1::ScoreResponse response;
  const grpc::Status status =
      server.inference->Score(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.token_ids_size(), 1);
  EXPECT_EQ(response.logprobs_size(), 0);
  EXPECT_EQ(response.sum_logprob(), 0);
  EXPECT_EQ(response.usage().strategy(), "full");
}

TEST(InferenceServiceTest, DescribesTheModel) {
  TinyServer server;
  ASSERT_TRUE(
      server.served.tiny.strategies->Register("third", "leaders=0,2,5").ok());
  grpc::ClientContext context, other_context;
  v1::GetModelRequest request;
  request.set_model("tiny");
  v1::GetModelResponse model;
  ASSERT_TRUE(server.inference->GetModel(&context, request, &model).ok());
  EXPECT_EQ(model.name(), "tiny");
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(static_cast<int>(model.num_layers()), kLayers);
  EXPECT_EQ(model.num_heads(), 4u);
  EXPECT_EQ(model.num_kv_heads(), 2u);
  EXPECT_EQ(model.head_dim(), 16u);
  EXPECT_EQ(model.hidden_size(), 64u);
  EXPECT_EQ(model.vocab_size(), 384u);
  EXPECT_EQ(static_cast<int>(model.max_model_len()), kContext);
  EXPECT_EQ(model.backend(), "cpu");
  EXPECT_EQ(model.kv_format(), "f32");
  EXPECT_EQ(static_cast<int>(model.page_tokens()), kPageTokens);
  EXPECT_EQ(model.page_bytes(), 2u * 2 * 16 * kPageTokens * sizeof(float));
  ASSERT_EQ(model.strategies_size(), 2);
  EXPECT_EQ(model.strategies(0).name(), "default");
  EXPECT_EQ(model.strategies(0).canonical(), "full");
  const v1::StrategyInfo& third = model.strategies(1);
  EXPECT_EQ(third.name(), "third");
  EXPECT_EQ(third.canonical(), "leaders=0,2,5");
  EXPECT_EQ(std::vector<int>(third.sources().begin(), third.sources().end()),
            (std::vector<int>{0, 0, 2, 2, 2, 5, 5, 5}));
  EXPECT_EQ(third.kv_bytes_per_token(), 3 * model.page_bytes() / kPageTokens);
  EXPECT_EQ(third.max_resident_tokens(), 4096u / 3 * kPageTokens);

  request.set_model("other");
  EXPECT_EQ(
      server.inference->GetModel(&other_context, request, &model).error_code(),
      grpc::StatusCode::NOT_FOUND);
}

TEST(InferenceServiceTest, TokenizesAndBack) {
  TinyServer server;
  grpc::ClientContext context, back_context, bad_context;
  v1::TokenizeRequest tokenize;
  tokenize.set_text("\u20ac<end>");
  tokenize.set_parse_special(true);
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(server.inference->Tokenize(&context, tokenize, &tokens).ok());
  ASSERT_EQ(tokens.token_ids_size(), 5);
  EXPECT_EQ(static_cast<int>(tokens.token_ids(4)), kByteEnd);

  v1::DetokenizeRequest detokenize;
  *detokenize.mutable_token_ids() = tokens.token_ids();
  detokenize.add_token_ids(0xE2);  // half a character
  detokenize.set_skip_special(true);
  v1::DetokenizeResponse text;
  ASSERT_TRUE(
      server.inference->Detokenize(&back_context, detokenize, &text).ok());
  EXPECT_EQ(text.text(), "\u20ac\ufffd");
  detokenize.add_token_ids(384);
  EXPECT_EQ(server.inference->Detokenize(&bad_context, detokenize, &text)
                .error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(InferenceServiceTest, LogsEveryCallOnce) {
  TinyServer server;
  v1::GenerateRequest request = TinyServer::Greedy({3, 4, 5}, "every=4", 6);
  request.set_request_id("label");
  request.set_num_sequences(2);
  ASSERT_TRUE(server.Generate(request).ok());
  const RequestLog served = server.Logs(1).at(0);
  EXPECT_EQ(served.method, "Generate");
  EXPECT_GT(served.id, 0u);
  EXPECT_EQ(served.label, "label");
  EXPECT_EQ(served.strategy, "every=4");
  EXPECT_EQ(served.num_sequences, 2);
  EXPECT_EQ(served.prompt_tokens, 3);
  EXPECT_EQ(served.generated_tokens, 12);
  EXPECT_TRUE(served.status.ok());
  EXPECT_EQ(served.num_ended, 2);
  EXPECT_GT(served.kv_bytes_of_ended, 0);
  EXPECT_GE(absl::ToDoubleSeconds(served.total),
            *served.queue_seconds + *served.prefill_seconds);
  request.set_top_logprobs(99);
  ASSERT_FALSE(server.Generate(request).ok());
  const RequestLog refused = server.Logs(2).at(1);
  EXPECT_EQ(refused.id, 0u);
  EXPECT_EQ(refused.label, "label");
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status));
}

TEST(InferenceServiceTest, AStormWithCancelsLeavesNoPageBehind) {
  TinyEngine::Options options;
  options.num_pages = 600;
  options.max_sequences = 8;
  options.max_batched_tokens = 24;
  TinyServer server(options);
  constexpr int kNumThreads = 6;
  constexpr int kCallsPerThread = 20;
  const char* const kSpecs[] = {"full", "every=2", "prefix=3", "leaders=0"};
  std::vector<std::thread> clients;
  for (int seed = 0; seed < kNumThreads; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int call = 0; call < kCallsPerThread; ++call) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " call " << call);
        std::vector<int32_t> prompt(1 + random() % 40);
        for (int32_t& id : prompt) id = random() % 384;
        v1::GenerateRequest request =
            TinyServer::Greedy(prompt, kSpecs[random() % 4], 1 + random() % 30);
        request.set_num_sequences(random() % 4);
        grpc::ClientContext context;
        auto reader = server.inference->Generate(&context, request);
        int reads_left = random() % 3 == 0 ? random() % 8 : 1000000;
        const bool cancels = reads_left < 8;
        v1::GenerateResponse response;
        while (reads_left-- > 0 && reader->Read(&response)) {
        }
        if (cancels) context.TryCancel();
        const grpc::Status status = reader->Finish();
        EXPECT_TRUE(cancels || status.ok()) << status.error_message();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  server.WaitUntilIdle();
  const v1::GetLoadResponse load = server.Load();
  EXPECT_EQ(load.kv_cached_bytes() + load.kv_free_bytes(),
            load.kv_pool_bytes());
  EXPECT_EQ(static_cast<int64_t>(load.kv_pool_bytes()),
            600 * server.served.tiny.page_bytes);
}

}  // namespace
}  // namespace strata
