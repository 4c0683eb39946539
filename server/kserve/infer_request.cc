#include "server/kserve/infer_request.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/quote.h"
#include "server/kserve/infer_inputs.h"
#include "server/kserve/sampling_parameters.h"
#include "server/kserve/unsupported.h"

namespace strata::kserve {
namespace {

using inference::InferParameter;
using nlohmann::json;

// That of vLLM, which clients of its backend count on.
constexpr uint32_t kDefaultMaxTokens = 16;

absl::Status InvalidParameter(const std::string& name,
                              const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", Quote(name), ": ", what));
}

absl::StatusOr<json> ToJson(const std::string& name,
                            const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return json(parameter.bool_param());
    case InferParameter::kInt64Param:
      return json(parameter.int64_param());
    case InferParameter::kUint64Param:
      return json(parameter.uint64_param());
    case InferParameter::kDoubleParam:
      return json(parameter.double_param());
    case InferParameter::kStringParam:
      return json(parameter.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return InvalidParameter(name, "has no value");
}

absl::StatusOr<int64_t> ToInteger(const std::string& name, const json& value,
                                  int64_t lowest, int64_t highest) {
  const bool is_too_large =
      value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(highest);
  if (value.is_number_integer() && !is_too_large) {
    const auto integer = value.get<int64_t>();
    if (integer >= lowest && integer <= highest) return integer;
  }
  return InvalidParameter(
      name, absl::StrCat("must be an integer from ", lowest, " to ", highest));
}

absl::Status SetText(const std::string& name, const json& value,
                     std::string* text) {
  if (!value.is_string()) return InvalidParameter(name, "must be a string");
  if (!text->empty()) return InvalidParameter(name, "is also an input");
  *text = value.get<std::string>();
  return absl::OkStatus();
}

// A parameter of the protocol or of Strata; false: of sampling.
absl::StatusOr<bool> TakeParameter(const std::string& name, const json& value,
                                   InferRequest* request) {
  v1::GenerateRequest& generate = request->generate;
  if (name == kKvStrategy) {
    STRATA_RETURN_IF_ERROR(
        SetText(name, value, generate.mutable_strategy()->mutable_spec()));
  } else if (name == kKvFloor) {
    STRATA_RETURN_IF_ERROR(
        SetText(name, value, generate.mutable_strategy()->mutable_floor()));
  } else if (name == "priority") {
    STRATA_ASSIGN_OR_RETURN(
        const int64_t priority,
        ToInteger(name, value, std::numeric_limits<int32_t>::min(),
                  std::numeric_limits<int32_t>::max()));
    generate.set_priority(static_cast<int32_t>(priority));
  } else if (name == "timeout") {
    STRATA_ASSIGN_OR_RETURN(
        const int64_t microseconds,
        ToInteger(name, value, 0, std::numeric_limits<int64_t>::max()));
    if (microseconds > 0) request->timeout = absl::Microseconds(microseconds);
  } else if (name == "triton_enable_empty_final_response") {
    if (!value.is_boolean()) return InvalidParameter(name, "must be a bool");
    request->has_empty_final = value.get<bool>();
  } else {
    return false;
  }
  return true;
}

// Parameters that are not those of TakeParameter are of sampling, as without
// the input sampling_parameters they are with Triton.
absl::Status AddParameters(const inference::ModelInferRequest& message,
                           const InferInputs& inputs, InferRequest* request) {
  json sampling = json::object();
  if (const auto text = inputs.Text(kSamplingParameters)) {
    STRATA_ASSIGN_OR_RETURN(sampling, ParseSamplingParameters(*text));
  }
  for (const auto& [name, parameter] : message.parameters()) {
    STRATA_ASSIGN_OR_RETURN(const json value, ToJson(name, parameter));
    STRATA_ASSIGN_OR_RETURN(const bool is_taken,
                            TakeParameter(name, value, request));
    if (is_taken) continue;
    if (sampling.contains(name)) {
      return InvalidParameter(name, "is also in sampling_parameters");
    }
    sampling[name] = value;
  }
  request->generate.mutable_stopping()->set_max_tokens(kDefaultMaxTokens);
  return SetSamplingParameters(sampling, &request->generate);
}

// Which outputs: those that inputs ask for and, where the client lists some, it
// lists.
absl::Status AddOutputs(const inference::ModelInferRequest& message,
                        const InferInputs& inputs, InferRequest* request) {
  for (const auto& output : message.outputs()) {
    if (Find(kOutputs, output.name()) == nullptr) {
      const auto name = [](std::string* out, const Tensor& t) {
        out->append(t.name);
      };
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", Quote(output.name()), " is unknown, the model has ",
          absl::StrJoin(kOutputs, ", ", name)));
    }
    for (const auto& [key, value] : output.parameters()) {
      if (key.rfind("shared_memory_", 0) == 0) return Unsupported();
      if (key == "binary_data") continue;  // HTTP's, and always so here
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", Quote(output.name()), ": unknown parameter ", Quote(key)));
    }
  }
  const auto is_listed = [&](const char* name) {
    return message.outputs().empty() ||
           std::any_of(
               message.outputs().begin(), message.outputs().end(),
               [&](const auto& output) { return output.name() == name; });
  };
  request->has_text = is_listed(kTextOutput);
  for (int i = 0; i < kNumExtras; ++i) {
    request->extras[i] = inputs.Bool(kExtras[i].input).value_or(false) &&
                         is_listed(kExtras[i].output.name);
  }
  return absl::OkStatus();
}

// As the vLLM backend: the input is echoed unless the answer is streamed.
absl::Status AddEcho(const InferInputs& inputs, InferRequest* request) {
  request->is_streamed = inputs.Bool(kStream).value_or(false);
  request->echoes_input =
      !inputs.Bool(kExcludeInput).value_or(request->is_streamed);
  if (request->is_streamed && request->echoes_input) {
    return absl::InvalidArgumentError(
        "exclude_input_in_output is false, must be true where stream is true");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelVersion(const std::string& version) {
  if (version.empty() || version == kModelVersion) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("version ", Quote(version),
                                          " of the model is not served, ",
                                          Quote(kModelVersion), " is"));
}

absl::StatusOr<InferRequest> ToInferRequest(
    const inference::ModelInferRequest& message) {
  STRATA_RETURN_IF_ERROR(CheckModelVersion(message.model_version()));
  STRATA_ASSIGN_OR_RETURN(const InferInputs inputs,
                          InferInputs::Parse(message));
  InferRequest request;
  v1::GenerateRequest& generate = request.generate;
  generate.set_model(message.model_name());
  generate.set_request_id(message.id());
  generate.set_text(std::string(*inputs.Text(kTextInput)));
  v1::Strategy* strategy = generate.mutable_strategy();
  strategy->set_spec(std::string(inputs.Text(kKvStrategy).value_or("")));
  strategy->set_floor(std::string(inputs.Text(kKvFloor).value_or("")));
  STRATA_RETURN_IF_ERROR(AddParameters(message, inputs, &request));
  STRATA_RETURN_IF_ERROR(AddOutputs(message, inputs, &request));
  STRATA_RETURN_IF_ERROR(AddEcho(inputs, &request));
  if (request.extras[kCumulativeLogprob] && !generate.has_top_logprobs()) {
    generate.set_top_logprobs(0);
  }
  return request;
}

}  // namespace strata::kserve
