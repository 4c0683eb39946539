// From GenerateRequest and metadata to a request of the native face.
#include "server/vllm/generate_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/strategy_registry.h"
#include "server/vllm/request_metadata.h"
#include "tests/server/vllm/messages.h"

namespace strata::vllm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using ::vllm::grpc::engine::GenerateRequest;
using ::vllm::grpc::engine::SamplingParams;

using Change = std::function<void(SamplingParams*)>;

EngineRequest Parse(const GenerateRequest& message,
                    const RequestMetadata& metadata = {}) {
  auto request = ToEngineRequest(message, metadata);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? *std::move(request) : EngineRequest();
}

EngineRequest Parse(const Change& change) {
  GenerateRequest message = TokensMessage({3, 4});
  change(message.mutable_sampling_params());
  return Parse(message);
}

void ExpectRefused(const GenerateRequest& message, absl::StatusCode code,
                   const std::string& words) {
  const absl::Status status = ToEngineRequest(message, {}).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(VllmRequestTest, TakesEverySamplingParameter) {
  const EngineRequest request = Parse([](SamplingParams* params) {
    params->set_temperature(0.5f);
    params->set_top_p(0.75f);
    params->set_top_k(7);
    params->set_min_p(0.25f);
    params->set_frequency_penalty(2);
    params->set_presence_penalty(-1);
    params->set_repetition_penalty(1.5f);
    params->set_max_tokens(20);
    params->set_min_tokens(2);
    params->add_stop("a");
    params->add_stop("b");
    params->add_stop_token_ids(5);
    params->set_ignore_eos(true);
    params->set_n(2);
    params->set_logprobs(3);
    params->set_prompt_logprobs(0);
    params->set_seed(-7);
    params->set_include_stop_str_in_output(true);
    (*params->mutable_logit_bias())[3] = -1.5f;
  });
  const v1::GenerateRequest& generate = request.generate;
  const v1::Sampling& sampling = generate.sampling();
  EXPECT_EQ(sampling.temperature(), 0.5f);
  EXPECT_EQ(sampling.top_p(), 0.75f);
  EXPECT_EQ(sampling.top_k(), 7u);
  EXPECT_EQ(sampling.min_p(), 0.25f);
  EXPECT_EQ(sampling.frequency_penalty(), 2.0f);
  EXPECT_EQ(sampling.presence_penalty(), -1.0f);
  EXPECT_EQ(sampling.repetition_penalty(), 1.5f);
  EXPECT_EQ(sampling.seed(), static_cast<uint64_t>(-7));
  EXPECT_EQ(sampling.logit_bias().at(3), -1.5f);
  const v1::Stopping& stopping = generate.stopping();
  EXPECT_EQ(stopping.max_tokens(), 20u);
  EXPECT_EQ(stopping.min_tokens(), 2u);
  EXPECT_THAT(stopping.stop(), ElementsAre("a", "b"));
  EXPECT_THAT(stopping.stop_token_ids(), ElementsAre(5));
  EXPECT_TRUE(stopping.ignore_eos());
  EXPECT_TRUE(stopping.include_stop());
  EXPECT_EQ(generate.num_sequences(), 2u);
  EXPECT_EQ(generate.top_logprobs(), 3u);
  EXPECT_EQ(request.num_prompt_logprobs, 0u);
  EXPECT_THAT(generate.tokens().ids(), ElementsAre(3, 4));
  EXPECT_TRUE(generate.tokens_only());
}

TEST(VllmRequestTest, ZeroIsUnsetWhereTheContractSaysSo) {
  for (const EngineRequest& request :
       {Parse(TokensMessage({3})), Parse([](SamplingParams* params) {
          params->set_top_p(0);
          params->set_top_k(0);
          params->set_repetition_penalty(0);
          params->set_n(0);
          params->set_seed(-1);
        })}) {
    const v1::Sampling& sampling = request.generate.sampling();
    EXPECT_FALSE(sampling.has_temperature());
    EXPECT_FALSE(sampling.has_top_p());
    EXPECT_FALSE(sampling.has_repetition_penalty());
    EXPECT_FALSE(sampling.has_seed());
    EXPECT_EQ(sampling.top_k(), 0u);
    EXPECT_EQ(request.generate.num_sequences(), 0u);
    EXPECT_FALSE(request.generate.stopping().has_max_tokens());
    EXPECT_FALSE(request.generate.has_top_logprobs());
    EXPECT_FALSE(request.num_prompt_logprobs.has_value());
    EXPECT_FALSE(request.is_streamed);
  }
}

// A set zero is one where the field says whether it is set.
TEST(VllmRequestTest, OptionalZerosArePassedOn) {
  const v1::GenerateRequest generate = Parse([](SamplingParams* params) {
                                         params->set_temperature(0);
                                         params->set_max_tokens(0);
                                         params->set_logprobs(0);
                                         params->set_seed(0);
                                       }).generate;
  EXPECT_TRUE(generate.sampling().has_temperature());
  EXPECT_TRUE(generate.sampling().has_seed());
  EXPECT_TRUE(generate.stopping().has_max_tokens());
  EXPECT_TRUE(generate.has_top_logprobs());
}

// Not a number is no zero: the one validator refuses it.
TEST(VllmRequestTest, NanIsPassedOn) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const v1::GenerateRequest generate = Parse([](SamplingParams* params) {
                                         params->set_top_p(kNan);
                                         params->set_repetition_penalty(kNan);
                                       }).generate;
  EXPECT_TRUE(std::isnan(generate.sampling().top_p()));
  EXPECT_TRUE(std::isnan(generate.sampling().repetition_penalty()));
}

TEST(VllmRequestTest, TakesTextAndStream) {
  GenerateRequest message;
  message.set_text("hi");
  message.set_stream(true);
  message.set_data_parallel_rank(0);
  const EngineRequest request = Parse(message);
  EXPECT_EQ(request.generate.text(), "hi");
  EXPECT_FALSE(request.generate.parse_special());
  EXPECT_TRUE(request.is_streamed);
}

TEST(VllmRequestTest, TakesMetadata) {
  GenerateRequest message = TokensMessage({3});
  const RequestMetadata metadata = {
      .strategy = "every=2", .floor = "prefix=1", .request_id = "other"};
  EXPECT_EQ(Parse(message, metadata).generate.request_id(), "other");
  message.set_request_id("mine");
  const v1::GenerateRequest generate = Parse(message, metadata).generate;
  EXPECT_EQ(generate.request_id(), "mine");
  EXPECT_EQ(generate.strategy().spec(), "every=2");
  EXPECT_EQ(generate.strategy().floor(), "prefix=1");
}

TEST(VllmRequestTest, RefusesByNameWhatIsNotServed) {
  const auto unimplemented = absl::StatusCode::kUnimplemented;
  for (const auto& [words, change] :
       std::vector<std::pair<std::string, Change>>{
           {"json_schema", [](auto* p) { p->set_json_schema("{}"); }},
           {"regex", [](auto* p) { p->set_regex("a"); }},
           {"grammar", [](auto* p) { p->set_grammar("a"); }},
           {"structural_tag", [](auto* p) { p->set_structural_tag("a"); }},
           {"json_object", [](auto* p) { p->set_json_object(false); }},
           {"choice", [](auto* p) { p->mutable_choice(); }},
           {"grammar_from_first_token",
            [](auto* p) { p->set_grammar_from_first_token(true); }},
           {"truncate_prompt_tokens",
            [](auto* p) { p->set_truncate_prompt_tokens(4); }}}) {
    GenerateRequest message = TokensMessage({3});
    change(message.mutable_sampling_params());
    ExpectRefused(message, unimplemented, words + " is not served");
  }
  using ChangeMessage = std::function<void(GenerateRequest*)>;
  for (const auto& [words, change] :
       std::vector<std::pair<std::string, ChangeMessage>>{
           {"kv_transfer_params",
            [](auto* m) { m->mutable_kv_transfer_params(); }},
           {"kv_transfer_params_json",
            [](auto* m) { m->set_kv_transfer_params_json("{}"); }},
           {"mm_inputs", [](auto* m) { m->mutable_mm_inputs(); }},
           {"extra_mm_inputs", [](auto* m) { m->add_extra_mm_inputs(); }},
           {"media_refs", [](auto* m) { m->mutable_media_refs(); }}}) {
    GenerateRequest message = TokensMessage({3});
    change(&message);
    ExpectRefused(message, unimplemented, words + " is not served");
  }
}

TEST(VllmRequestTest, RefusesWhatTheNativeMessagesCannotHold) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectRefused(GenerateRequest(), invalid, "tokenized and text");
  for (const auto& [words, change] :
       std::vector<std::pair<std::string, Change>>{
           {"logprobs is -1, must be from 0 to 20",
            [](auto* p) { p->set_logprobs(-1); }},
           {"logprobs is 21", [](auto* p) { p->set_logprobs(21); }},
           {"prompt_logprobs is -1",
            [](auto* p) { p->set_prompt_logprobs(-1); }},
           {"prompt_logprobs is 21",
            [](auto* p) { p->set_prompt_logprobs(21); }},
           {"logit_bias: token id -2",
            [](auto* p) { (*p->mutable_logit_bias())[-2] = 1; }}}) {
    GenerateRequest message = TokensMessage({3});
    change(message.mutable_sampling_params());
    ExpectRefused(message, invalid, words);
  }
  GenerateRequest message = TokensMessage({3});
  message.set_data_parallel_rank(1);
  ExpectRefused(message, invalid, "data_parallel_rank is 1");
}

TEST(VllmRequestTest, StrategyErrorsNameTheMetadata) {
  const StrategyRegistry registry(6, SharingStrategy::Full(6));
  const auto error = [&](const std::string& spec, const std::string& floor) {
    v1::Strategy strategy;
    strategy.set_spec(spec);
    strategy.set_floor(floor);
    return std::string(CheckStrategy(registry, strategy).message());
  };
  EXPECT_EQ(error("", ""), "");
  EXPECT_EQ(error("every=2", "prefix=1"), "");
  EXPECT_THAT(error("evry=2", ""), HasSubstr("metadata x-kv-strategy: "));
  EXPECT_THAT(error("full", "half"), HasSubstr("metadata x-kv-floor: "));
  const std::string both = error("every=2", "full");
  EXPECT_THAT(both, HasSubstr("metadata x-kv-floor: "));
  EXPECT_THAT(both, HasSubstr("leaders of metadata x-kv-strategy"));
}

TEST(VllmMetadataTest, ReadsItsKeys) {
  const auto read = ReadMetadata({{"user-agent", "test"},
                                  {"x-kv-floor", "prefix=1"},
                                  {"x-kv-strategy", "every=2"},
                                  {"x-request-id", "a"},
                                  {"x-request-id", "b"}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->strategy, "every=2");
  EXPECT_EQ(read->floor, "prefix=1");
  EXPECT_EQ(read->request_id, "a");
  ASSERT_TRUE(ReadMetadata({}).ok());
  EXPECT_EQ(ReadMetadata({})->strategy, "");
}

TEST(VllmMetadataTest, RefusesTwoStrategies) {
  for (const char* key : {"x-kv-strategy", "x-kv-floor"}) {
    const auto read = ReadMetadata({{key, "full"}, {key, "full"}});
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(key));
  }
}

}  // namespace
}  // namespace strata::vllm
