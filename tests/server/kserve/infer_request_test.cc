// From ModelInferRequest to a request of the native face.
#include "server/kserve/infer_request.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/server/kserve/messages.h"

namespace strata::kserve {
namespace {

using inference::ModelInferRequest;

ModelInferRequest With(const std::string& sampling) {
  ModelInferRequest message = TextMessage("hi");
  AddRaw("sampling_parameters", "BYTES", Framed(sampling), &message);
  return message;
}

InferRequest Parse(const ModelInferRequest& message) {
  auto request = ToInferRequest(message);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? *std::move(request) : InferRequest();
}

std::string ErrorOf(const ModelInferRequest& message) {
  const auto request = ToInferRequest(message);
  EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << request.status();
  return std::string(request.status().message());
}

inference::InferParameter& Parameter(const std::string& name,
                                     ModelInferRequest* message) {
  return (*message->mutable_parameters())[name];
}

TEST(InferRequestTest, TakesEverySamplingParameter) {
  const v1::GenerateRequest generate =
      Parse(With(R"({"temperature": 0.5, "top_p": 0.75, "top_k": 7,
          "min_p": 0.25, "repetition_penalty": 1.5, "presence_penalty": -1,
          "frequency_penalty": 2, "seed": 9007199254740993,
          "logit_bias": {"3": -1.5}, "allowed_token_ids": [3, 4],
          "max_tokens": 20, "min_tokens": 2, "stop": ["a", "b"],
          "stop_token_ids": [5], "ignore_eos": true,
          "include_stop_str_in_output": true, "logprobs": 3, "n": 2})"))
          .generate;
  const v1::Sampling& sampling = generate.sampling();
  EXPECT_EQ(sampling.temperature(), 0.5f);
  EXPECT_EQ(sampling.top_p(), 0.75f);
  EXPECT_EQ(sampling.top_k(), 7u);
  EXPECT_EQ(sampling.min_p(), 0.25f);
  EXPECT_EQ(sampling.repetition_penalty(), 1.5f);
  EXPECT_EQ(sampling.presence_penalty(), -1.0f);
  EXPECT_EQ(sampling.frequency_penalty(), 2.0f);
  EXPECT_EQ(sampling.seed(), 9007199254740993u);
  EXPECT_EQ(sampling.logit_bias().at(3), -1.5f);
  ASSERT_EQ(sampling.allowed_token_ids_size(), 2);
  EXPECT_EQ(sampling.allowed_token_ids(1), 4u);
  const v1::Stopping& stopping = generate.stopping();
  EXPECT_EQ(stopping.max_tokens(), 20u);
  EXPECT_EQ(stopping.min_tokens(), 2u);
  ASSERT_EQ(stopping.stop_size(), 2);
  EXPECT_EQ(stopping.stop(1), "b");
  ASSERT_EQ(stopping.stop_token_ids_size(), 1);
  EXPECT_TRUE(stopping.ignore_eos());
  EXPECT_TRUE(stopping.include_stop());
  EXPECT_EQ(generate.top_logprobs(), 3u);
  EXPECT_EQ(generate.num_sequences(), 2u);
}

// As Triton's own sample client writes them.
TEST(InferRequestTest, TakesNumbersInStringsAndNull) {
  const v1::GenerateRequest generate =
      Parse(With(R"({"temperature": "0.5", "max_tokens": "7", "top_k": -1,
                     "ignore_eos": "True", "stop": "x", "seed": null})"))
          .generate;
  EXPECT_EQ(generate.sampling().temperature(), 0.5f);
  EXPECT_EQ(generate.stopping().max_tokens(), 7u);
  EXPECT_EQ(generate.sampling().top_k(), 0u);
  EXPECT_TRUE(generate.stopping().ignore_eos());
  ASSERT_EQ(generate.stopping().stop_size(), 1);
  EXPECT_FALSE(generate.sampling().has_seed());
}

TEST(InferRequestTest, UnsetIsAsInTheVllmBackend) {
  const InferRequest request = Parse(TextMessage("hi"));
  EXPECT_EQ(request.generate.text(), "hi");
  EXPECT_EQ(request.generate.stopping().max_tokens(), 16u);
  EXPECT_FALSE(request.generate.sampling().has_temperature());
  EXPECT_FALSE(request.generate.has_top_logprobs());
  EXPECT_FALSE(request.is_streamed);
  EXPECT_TRUE(request.echoes_input);
  EXPECT_TRUE(request.has_text);
  EXPECT_FALSE(request.has_empty_final);
  for (const bool extra : request.extras) EXPECT_FALSE(extra);
}

TEST(InferRequestTest, RefusesOtherSamplingParametersByName) {
  EXPECT_EQ(
      ErrorOf(With(R"({"best_of": 3})"))
          .find("sampling parameter \"best_of\" is unknown, allowed are temp"),
      0u);
  EXPECT_EQ(ErrorOf(With(R"({"temperature": "hot"})")),
            "temperature is \"\\\"hot\\\"\", must be a number");
  for (const char* sampling :
       {R"({"max_tokens": -1})", R"({"max_tokens": 4294967296})",
        R"({"max_tokens": 1.5})", R"({"max_tokens": 18446744073709551615})",
        R"({"max_tokens": true})", R"({"max_tokens": []})"}) {
    EXPECT_NE(
        ErrorOf(With(sampling)).find("must be an integer from 0 to 4294967295"),
        std::string::npos)
        << sampling;
  }
  for (const char* sampling :
       {R"({"seed": -1})", R"({"n": 0})", R"({"top_k": -2})", R"({"stop": 7})",
        R"({"stop": [7]})", R"({"stop_token_ids": 7})",
        R"({"stop_token_ids": ["x"]})", R"({"logit_bias": [1]})",
        R"({"logit_bias": {"x": 1}})", R"({"ignore_eos": 1})",
        R"({"logprobs": true})"}) {
    EXPECT_NE(ErrorOf(With(sampling)).find("must be"), std::string::npos)
        << sampling;
  }
}

TEST(InferRequestTest, RefusesWhatIsNoObject) {
  for (const std::string& sampling :
       {std::string(), std::string("[]"), std::string("{"), std::string("7"),
        std::string("{\"n\": 1} x"), std::string("[")}) {
    EXPECT_EQ(ErrorOf(With(sampling)), "sampling_parameters is no JSON object");
  }
  EXPECT_EQ(ErrorOf(With(std::string((8 << 20) + 1, ' '))),
            "sampling_parameters has 8388609 bytes, at most 8388608 are "
            "allowed");
}

// What prints or copies such a value by recursion would run out of stack.
TEST(InferRequestTest, RefusesWhatNestsDeep) {
  constexpr int kDepth = 1'000'000;
  const std::string opened(kDepth, '[');
  const std::string list = opened + std::string(kDepth, ']');
  for (const std::string& sampling :
       {opened, "{\"temperature\": " + list + "}", "{\"stop\": " + list + "}",
        "{\"unknown\": " + list + "}", std::string("{\"stop\": [[]]}"),
        std::string("{\"logit_bias\": {\"1\": {}}}")}) {
    EXPECT_EQ(
        ErrorOf(With(sampling)),
        "sampling_parameters nests lists or objects deeper than any parameter");
  }
}

TEST(InferRequestTest, TheStrategyIsAParameterOrAnInput) {
  ModelInferRequest message = TextMessage("hi");
  Parameter("kv_strategy", &message).set_string_param("every=2");
  Parameter("kv_floor", &message).set_string_param("every=4");
  EXPECT_EQ(Parse(message).generate.strategy().spec(), "every=2");
  EXPECT_EQ(Parse(message).generate.strategy().floor(), "every=4");
  AddRaw("kv_strategy", "BYTES", Framed("full"), &message);
  EXPECT_EQ(ErrorOf(message), "parameter \"kv_strategy\": is also an input");
  message.clear_parameters();
  EXPECT_EQ(Parse(message).generate.strategy().spec(), "full");
  Parameter("kv_floor", &message).set_int64_param(4);
  EXPECT_EQ(ErrorOf(message), "parameter \"kv_floor\": must be a string");
}

TEST(InferRequestTest, TakesParametersOfTheProtocol) {
  ModelInferRequest message = TextMessage("hi");
  message.set_model_name("m");
  message.set_model_version("1");
  message.set_id("mine");
  Parameter("priority", &message).set_uint64_param(3);
  Parameter("timeout", &message).set_int64_param(2'000'000);
  Parameter("triton_enable_empty_final_response", &message)
      .set_bool_param(true);
  Parameter("temperature", &message).set_double_param(0.5);
  Parameter("max_tokens", &message).set_int64_param(5);
  const InferRequest request = Parse(message);
  EXPECT_EQ(request.generate.model(), "m");
  EXPECT_EQ(request.generate.request_id(), "mine");
  EXPECT_EQ(request.generate.priority(), 3);
  EXPECT_EQ(request.timeout, absl::Seconds(2));
  EXPECT_TRUE(request.has_empty_final);
  EXPECT_EQ(request.generate.sampling().temperature(), 0.5f);
  EXPECT_EQ(request.generate.stopping().max_tokens(), 5u);

  Parameter("sequence_id", &message).set_int64_param(1);
  EXPECT_EQ(ErrorOf(message).find("sampling parameter \"sequence_id\""), 0u);
  message.clear_parameters();
  // The second would be -1, if it were taken for signed.
  for (const uint64_t priority : {uint64_t{1} << 63, ~uint64_t{0}}) {
    Parameter("priority", &message).set_uint64_param(priority);
    EXPECT_EQ(ErrorOf(message).find("parameter \"priority\": must be an int"),
              0u);
  }
  message.clear_parameters();
  Parameter("priority", &message);
  EXPECT_EQ(ErrorOf(message), "parameter \"priority\": has no value");
}

TEST(InferRequestTest, AParameterIsNotSetTwice) {
  ModelInferRequest message = With(R"({"max_tokens": 3})");
  Parameter("max_tokens", &message).set_int64_param(4);
  EXPECT_EQ(ErrorOf(message),
            "parameter \"max_tokens\": is also in sampling_parameters");
}

TEST(InferRequestTest, OutputsAreThoseAskedForAndListed) {
  ModelInferRequest message = TextMessage("hi");
  AddRaw("return_finish_reason", "BOOL", "\1", &message);
  AddRaw("return_num_output_tokens", "BOOL", "\1", &message);
  AddRaw("return_num_input_tokens", "BOOL", std::string(1, '\0'), &message);
  InferRequest request = Parse(message);
  EXPECT_TRUE(request.extras[kFinishReason]);
  EXPECT_TRUE(request.extras[kNumOutputTokens]);
  EXPECT_FALSE(request.extras[kNumInputTokens]);
  message.add_outputs()->set_name("finish_reason");
  message.add_outputs()->set_name("logprobs");
  request = Parse(message);
  EXPECT_FALSE(request.has_text);
  EXPECT_TRUE(request.extras[kFinishReason]);
  EXPECT_FALSE(request.extras[kLogprobs]);
  EXPECT_FALSE(request.extras[kNumOutputTokens]);
  message.add_outputs()->set_name("text");
  EXPECT_EQ(ErrorOf(message).find("output \"text\" is unknown"), 0u);
}

TEST(InferRequestTest, TheSumOfLogprobsNeedsThem) {
  ModelInferRequest message = TextMessage("hi");
  AddRaw("return_cumulative_logprob", "BOOL", "\1", &message);
  const InferRequest request = Parse(message);
  EXPECT_TRUE(request.generate.has_top_logprobs());
  EXPECT_EQ(request.generate.top_logprobs(), 0u);
}

TEST(InferRequestTest, AStreamEchoesNothing) {
  ModelInferRequest message = TextMessage("hi");
  AddRaw("stream", "BOOL", "\1", &message);
  EXPECT_TRUE(Parse(message).is_streamed);
  EXPECT_FALSE(Parse(message).echoes_input);
  AddRaw("exclude_input_in_output", "BOOL", std::string(1, '\0'), &message);
  EXPECT_EQ(ErrorOf(message).find("exclude_input_in_output is false"), 0u);
  message = TextMessage("hi");
  AddRaw("exclude_input_in_output", "BOOL", "\1", &message);
  EXPECT_FALSE(Parse(message).echoes_input);
}

TEST(InferRequestTest, OtherVersionsAreNotFound) {
  ModelInferRequest message = TextMessage("hi");
  message.set_model_version("2");
  EXPECT_TRUE(absl::IsNotFound(ToInferRequest(message).status()));
}

}  // namespace
}  // namespace strata::kserve
