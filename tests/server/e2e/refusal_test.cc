// Every refusal has its code, names what was wrong and changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

using grpc::StatusCode;

class RefusalTest : public testing::Test {
 protected:
  RefusalTest()
      : golden_("llama-tied"),
        server_({"--model=" + golden_.directory(), "--precision=f32",
                 // 64 pages: 128 positions under `full`, 1024 under one leader.
                 "--kv_memory=256KiB", "--max_message_mib=1"}) {}
  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilListening()) << server_.Log();
    client_ = std::make_unique<Client>(server_.grpc_address());
  }

  v1::GenerateRequest Good() const {
    return GreedyRequest(golden_.prompt(), "full", 4);
  }

  Golden golden_;
  ServerProcess server_;
  std::unique_ptr<Client> client_;
};

struct BadGenerate {
  const char* name;
  std::function<void(v1::GenerateRequest*)> spoil;
  StatusCode code;
};

const std::vector<BadGenerate>& BadGenerates() {
  static const auto* const kBad = new std::vector<BadGenerate>{
      {"no prompt", [](auto* r) { r->clear_prompt(); },
       StatusCode::INVALID_ARGUMENT},
      {"empty prompt", [](auto* r) { r->mutable_tokens()->clear_ids(); },
       StatusCode::INVALID_ARGUMENT},
      {"token id", [](auto* r) { r->mutable_tokens()->add_ids(1u << 31); },
       StatusCode::INVALID_ARGUMENT},
      {"text", [](auto* r) { r->set_text("hello"); },
       StatusCode::FAILED_PRECONDITION},
      {"stop string", [](auto* r) { r->mutable_stopping()->add_stop("a"); },
       StatusCode::FAILED_PRECONDITION},
      {"model", [](auto* r) { r->set_model("another"); },
       StatusCode::NOT_FOUND},
      {"every=0", [](auto* r) { r->mutable_strategy()->set_spec("every=0"); },
       StatusCode::INVALID_ARGUMENT},
      {"leaders without 0",
       [](auto* r) { r->mutable_strategy()->set_spec("leaders=1,2"); },
       StatusCode::INVALID_ARGUMENT},
      {"sources ahead",
       [](auto* r) {
         r->mutable_strategy()->set_spec("sources=0,2,2,3,4,5,6,7");
       },
       StatusCode::INVALID_ARGUMENT},
      {"unknown name", [](auto* r) { r->mutable_strategy()->set_spec("half"); },
       StatusCode::INVALID_ARGUMENT},
      {"max_tokens 0",
       [](auto* r) { r->mutable_stopping()->set_max_tokens(0); },
       StatusCode::INVALID_ARGUMENT},
      {"min over max",
       [](auto* r) { r->mutable_stopping()->set_min_tokens(5); },
       StatusCode::INVALID_ARGUMENT},
      {"temperature",
       [](auto* r) { r->mutable_sampling()->set_temperature(-1); },
       StatusCode::INVALID_ARGUMENT},
      {"NaN", [](auto* r) { r->mutable_sampling()->set_temperature(NAN); },
       StatusCode::INVALID_ARGUMENT},
      {"top_p", [](auto* r) { r->mutable_sampling()->set_top_p(0); },
       StatusCode::INVALID_ARGUMENT},
      {"min_p", [](auto* r) { r->mutable_sampling()->set_min_p(1.5); },
       StatusCode::INVALID_ARGUMENT},
      {"repetition",
       [](auto* r) { r->mutable_sampling()->set_repetition_penalty(0); },
       StatusCode::INVALID_ARGUMENT},
      {"n", [](auto* r) { r->set_num_sequences(129); },
       StatusCode::INVALID_ARGUMENT},
      {"top_logprobs", [](auto* r) { r->set_top_logprobs(21); },
       StatusCode::INVALID_ARGUMENT},
      {"longer than the context",
       [](auto* r) {
         for (int i = 0; i < 300; ++i) r->mutable_tokens()->add_ids(7);
       },
       StatusCode::INVALID_ARGUMENT},
      {"never fits under full",
       [](auto* r) { r->mutable_stopping()->set_max_tokens(120); },
       StatusCode::INVALID_ARGUMENT},
  };
  return *kBad;
}

TEST_F(RefusalTest, EachHasItsCode) {
  for (const BadGenerate& bad : BadGenerates()) {
    v1::GenerateRequest request = Good();
    bad.spoil(&request);
    const Generated got = client_->Generate(request);
    EXPECT_EQ(got.status.error_code(), bad.code)
        << bad.name << ": " << got.status.error_message();
    EXPECT_THAT(got.status.error_message(), testing::Not(testing::IsEmpty()))
        << bad.name;
    EXPECT_LE(got.status.error_message().size(), 512u) << bad.name;
    EXPECT_EQ(got.num_responses, 0) << bad.name;
  }
  // Nothing of it counts as a request.
  const ScrapedMetrics metrics = Scrape(server_);
  EXPECT_EQ(metrics.Sum("strata_request_rejected_total"),
            BadGenerates().size());
  EXPECT_EQ(
      metrics.Sum("strata_request_rejected_total", {"reason=\"never_fits\""}),
      2);
  EXPECT_EQ(metrics.Sum("strata_request_finished_total"), 0);
  EXPECT_EQ(metrics.Sum("vllm:request_success_total"), 0);
  EXPECT_EQ(metrics.Sum("strata_prompt_tokens_total"), 0);
  EXPECT_TRUE(client_->Generate(Good()).status.ok());
}

TEST_F(RefusalTest, WhatNeverFitsUnderFullMayFitUnderLess) {
  v1::GenerateRequest request = Good();
  request.mutable_stopping()->set_max_tokens(120);
  EXPECT_EQ(client_->Generate(request).status.error_code(),
            StatusCode::INVALID_ARGUMENT);
  request.mutable_strategy()->set_spec("every=2");
  const Generated got = client_->Generate(request);
  EXPECT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.tokens.at(0).size(), 120u);
}

TEST_F(RefusalTest, MessageOverTheLimitIsTheTransports) {
  v1::GenerateRequest request = Good();
  request.set_request_id(std::string(2 << 20, 'x'));
  EXPECT_EQ(client_->Generate(request).status.error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RefusalTest, OtherMethods) {
  {
    grpc::ClientContext context;
    v1::TokenizeRequest request;
    request.set_text("hello");
    v1::TokenizeResponse response;
    EXPECT_EQ(client_->inference()
                  .Tokenize(&context, request, &response)
                  .error_code(),
              StatusCode::FAILED_PRECONDITION);
  }
  {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model("another");
    v1::GetModelResponse response;
    EXPECT_EQ(client_->inference()
                  .GetModel(&context, request, &response)
                  .error_code(),
              StatusCode::NOT_FOUND);
  }
  {
    grpc::ClientContext context;
    v1::AbortRequest request;
    request.set_request_id("nobody");
    v1::AbortResponse response;
    EXPECT_TRUE(client_->inference().Abort(&context, request, &response).ok());
    EXPECT_EQ(response.aborted(), 0u);
  }
  {
    grpc::ClientContext context;
    v1::SwitchStrategyRequest request;
    request.set_spec("every=0");
    v1::SwitchStrategyResponse response;
    EXPECT_EQ(client_->admin()
                  .SwitchStrategy(&context, request, &response)
                  .error_code(),
              StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(RefusalTest, TheDefaultStrategyIsSwitchedForRequestsToCome) {
  grpc::ClientContext context;
  v1::SwitchStrategyRequest request;
  request.set_spec("every=4");
  v1::SwitchStrategyResponse response;
  const grpc::Status status =
      client_->admin().SwitchStrategy(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.canonical(), "every=4");
  v1::GenerateRequest generate = Good();
  generate.clear_strategy();
  const Generated got = client_->Generate(generate);
  ASSERT_TRUE(got.status.ok());
  EXPECT_EQ(got.done.at(0).usage().strategy(), "every=4");
  EXPECT_EQ(Scrape(server_).Sum("strata_generation_tokens_total",
                                {"kv_strategy=\"every=4\""}),
            4);
}

}  // namespace
}  // namespace strata
