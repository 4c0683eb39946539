// Inputs as clients encode them, and as attackers do.
#include "server/kserve/infer_inputs.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/server/kserve/messages.h"

namespace strata::kserve {
namespace {

using inference::ModelInferRequest;

std::string ErrorOf(const ModelInferRequest& message) {
  const auto inputs = InferInputs::Parse(message);
  if (inputs.ok()) return "";
  return std::string(inputs.status().message());
}

void ExpectInvalid(const ModelInferRequest& message, const std::string& part) {
  const auto inputs = InferInputs::Parse(message);
  ASSERT_FALSE(inputs.ok()) << part;
  EXPECT_TRUE(absl::IsInvalidArgument(inputs.status())) << inputs.status();
  EXPECT_NE(ErrorOf(message).find(part), std::string::npos) << ErrorOf(message);
}

TEST(InferInputsTest, ReadsRawContents) {
  ModelInferRequest message;
  AddRaw("text_input", "BYTES", Framed("Grüße"), &message);
  AddRaw("stream", "BOOL", std::string(1, '\1'), &message);
  AddRaw("kv_strategy", "BYTES", Framed(""), &message);
  message.mutable_inputs(1)->add_shape(1);  // [1, 1]
  const auto inputs = InferInputs::Parse(message);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(inputs->Text("text_input"), "Grüße");
  EXPECT_EQ(inputs->Bool("stream"), true);
  EXPECT_EQ(inputs->Text("kv_strategy"), "");
  EXPECT_EQ(inputs->Text("sampling_parameters"), std::nullopt);
  EXPECT_EQ(inputs->Bool("exclude_input_in_output"), std::nullopt);
}

TEST(InferInputsTest, ReadsTypedContents) {
  ModelInferRequest message;
  AddTyped("text_input", "hi", &message);
  AddTyped("stream", false, &message);
  const auto inputs = InferInputs::Parse(message);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(inputs->Text("text_input"), "hi");
  EXPECT_EQ(inputs->Bool("stream"), false);
}

TEST(InferInputsTest, RefusesLengthsThatLie) {
  const std::string framed = Framed("four");
  std::string huge = framed;
  huge.replace(0, 4, "\xff\xff\xff\xff");
  for (const std::string& raw :
       {std::string(), std::string("\4\0", 2), framed.substr(0, 4),
        framed.substr(0, 7), framed + "!", framed + Framed("five"), huge,
        std::string("four")}) {
    ModelInferRequest message;
    AddRaw("text_input", "BYTES", raw, &message);
    ExpectInvalid(message, "input \"text_input\": raw contents ");
  }
  for (const std::string& raw : {std::string(), std::string(2, '\1')}) {
    ModelInferRequest message = TextMessage("hi");
    AddRaw("stream", "BOOL", raw, &message);
    ExpectInvalid(message, "input \"stream\": raw contents of ");
  }
}

TEST(InferInputsTest, RefusesOtherTypesAndShapes) {
  ModelInferRequest message = TextMessage("hi");
  message.mutable_inputs(0)->set_datatype("INT32");
  ExpectInvalid(message, "datatype \"INT32\", must be BYTES");
  message = TextMessage("hi");
  AddRaw("stream", "BYTES", Framed("true"), &message);
  ExpectInvalid(message, "datatype \"BYTES\", must be BOOL");

  const std::vector<std::vector<int64_t>> shapes = {
      {}, {0}, {2}, {-1}, {1, 2}, {1, 1, 1}, {INT64_MAX, INT64_MAX}};
  for (const auto& shape : shapes) {
    message = TextMessage("hi");
    message.mutable_inputs(0)->clear_shape();
    for (const int64_t dim : shape) message.mutable_inputs(0)->add_shape(dim);
    ExpectInvalid(message, "must be [1] or [1, 1]");
  }
}

TEST(InferInputsTest, RefusesWhatIsNotOneElement) {
  ModelInferRequest message;
  AddTyped("text_input", "hi", &message);
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("ho");
  ExpectInvalid(message, "contents must be one element of bytes_contents");
  message.mutable_inputs(0)->mutable_contents()->clear_bytes_contents();
  ExpectInvalid(message, "contents must be one element of bytes_contents");
  message.mutable_inputs(0)->clear_contents();
  ExpectInvalid(message, "contents must be one element of bytes_contents");
  message.mutable_inputs(0)->mutable_contents()->add_int_contents(7);
  ExpectInvalid(message, "contents must be one element of bytes_contents");
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("hi");
  ExpectInvalid(message, "contents must be one element of bytes_contents");
}

TEST(InferInputsTest, RefusesAMixOfRawAndTyped) {
  ModelInferRequest message = TextMessage("hi");
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("ho");
  ExpectInvalid(message, "not allowed beside raw_input_contents");
  message = TextMessage("hi");
  AddTyped("stream", true, &message);
  ExpectInvalid(message, "raw_input_contents has 1 for 2 inputs");
  message = TextMessage("hi");
  message.add_raw_input_contents(Framed("more"));
  ExpectInvalid(message, "raw_input_contents has 2 for 1 inputs");
}

TEST(InferInputsTest, RefusesUnknownDoubleAndMissing) {
  ExpectInvalid(ModelInferRequest(), "input \"text_input\": is missing");
  ModelInferRequest message = TextMessage("hi");
  AddRaw("text_input", "BYTES", Framed("ho"), &message);
  ExpectInvalid(message, "input \"text_input\": is there twice");
  message = TextMessage("hi");
  AddRaw("image", "BYTES", Framed("png"), &message);
  ExpectInvalid(message, "input \"image\": unknown, the model has text_input,");
  message = TextMessage("hi");
  (*message.mutable_inputs(0)->mutable_parameters())["x"].set_bool_param(true);
  ExpectInvalid(message, "unknown parameter \"x\"");
}

TEST(InferInputsTest, RefusesTextThatIsNotUtf8) {
  ExpectInvalid(TextMessage("a\xff"), "input \"text_input\": not UTF-8");
  ExpectInvalid(TextMessage("\xc3"), "input \"text_input\": not UTF-8");
}

TEST(InferInputsTest, HasNoSharedMemory) {
  ModelInferRequest message = TextMessage("hi");
  (*message.mutable_inputs(0)->mutable_parameters())["shared_memory_region"]
      .set_string_param("r");
  EXPECT_TRUE(absl::IsUnimplemented(InferInputs::Parse(message).status()));
}

}  // namespace
}  // namespace strata::kserve
