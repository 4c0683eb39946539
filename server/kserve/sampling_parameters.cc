#include "server/kserve/sampling_parameters.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/quote.h"

namespace strata::kserve {
namespace {

using nlohmann::json;

// Longer ones are refused before they are parsed.  All ids of a vocabulary of
// 256 K fit as a logit_bias.
constexpr size_t kMaxTextBytes = 8 << 20;

// What a parameter is at most: a list or an object of simple values.  Deeper
// ones would be written into errors, and copied, by recursion.
constexpr int kMaxDepth = 1;

// A parameter's value, with its name for errors.
struct Value {
  const char* name;
  const json& value;

  absl::Status Invalid(const std::string& allowed) const {
    const std::string is = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                      json::error_handler_t::replace);
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", Quote(is), ", must be ", allowed));
  }

  absl::StatusOr<double> Number() const {
    double number = 0;
    if (value.is_number()) return value.get<double>();
    if (value.is_string() &&
        absl::SimpleAtod(value.get_ref<const std::string&>(), &number)) {
      return number;
    }
    return Invalid("a number");
  }

  // Of [lowest, highest].
  absl::StatusOr<int64_t> Integer(int64_t lowest, int64_t highest) const {
    int64_t integer = 0;
    bool is_one = false;
    if (value.is_number_unsigned()) {
      const auto u = value.get<uint64_t>();
      is_one = u <= static_cast<uint64_t>(highest);
      integer = static_cast<int64_t>(u);
    } else if (value.is_number_integer()) {
      integer = value.get<int64_t>();
      is_one = true;
    } else if (value.is_string()) {
      is_one = absl::SimpleAtoi(value.get_ref<const std::string&>(), &integer);
    }
    if (is_one && integer >= lowest && integer <= highest) return integer;
    return Invalid(absl::StrCat("an integer from ", lowest, " to ", highest));
  }

  absl::StatusOr<uint32_t> Uint32() const {
    STRATA_ASSIGN_OR_RETURN(const int64_t integer,
                            Integer(0, std::numeric_limits<uint32_t>::max()));
    return static_cast<uint32_t>(integer);
  }

  absl::StatusOr<bool> Bool() const {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      if (absl::EqualsIgnoreCase(text, "true")) return true;
      if (absl::EqualsIgnoreCase(text, "false")) return false;
    }
    return Invalid("true or false");
  }
};

template <void (v1::Sampling::*kSet)(float)>
absl::Status SetFloat(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(const double number, value.Number());
  (request->mutable_sampling()->*kSet)(static_cast<float>(number));
  return absl::OkStatus();
}

template <void (v1::Stopping::*kSet)(uint32_t)>
absl::Status SetCount(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(const uint32_t count, value.Uint32());
  (request->mutable_stopping()->*kSet)(count);
  return absl::OkStatus();
}

template <void (v1::Stopping::*kSet)(bool)>
absl::Status SetBool(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(const bool set, value.Bool());
  (request->mutable_stopping()->*kSet)(set);
  return absl::OkStatus();
}

// -1 is vLLM's word for all.
absl::Status SetTopK(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(
      const int64_t top_k,
      value.Integer(-1, std::numeric_limits<uint32_t>::max()));
  request->mutable_sampling()->set_top_k(top_k < 0 ? 0 : top_k);
  return absl::OkStatus();
}

absl::Status SetSeed(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(
      const int64_t seed,
      value.Integer(0, std::numeric_limits<int64_t>::max()));
  request->mutable_sampling()->set_seed(seed);
  return absl::OkStatus();
}

absl::Status SetLogprobs(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(const uint32_t count, value.Uint32());
  request->set_top_logprobs(count);
  return absl::OkStatus();
}

absl::Status SetN(const Value& value, v1::GenerateRequest* request) {
  STRATA_ASSIGN_OR_RETURN(
      const int64_t n, value.Integer(1, std::numeric_limits<int32_t>::max()));
  request->set_num_sequences(static_cast<uint32_t>(n));
  return absl::OkStatus();
}

absl::Status SetStop(const Value& value, v1::GenerateRequest* request) {
  const json list =
      value.value.is_string() ? json::array({value.value}) : value.value;
  if (!list.is_array()) return value.Invalid("a string or a list of strings");
  for (const json& text : list) {
    if (!text.is_string())
      return value.Invalid("a string or a list of strings");
    request->mutable_stopping()->add_stop(text.get<std::string>());
  }
  return absl::OkStatus();
}

template <typename Add>
absl::Status ForEachId(const Value& value, Add add) {
  if (!value.value.is_array()) return value.Invalid("a list of token ids");
  for (const json& element : value.value) {
    STRATA_ASSIGN_OR_RETURN(const uint32_t id,
                            (Value{value.name, element}.Uint32()));
    add(id);
  }
  return absl::OkStatus();
}

absl::Status SetStopTokenIds(const Value& value, v1::GenerateRequest* request) {
  return ForEachId(value, [request](uint32_t id) {
    request->mutable_stopping()->add_stop_token_ids(id);
  });
}

absl::Status SetAllowedTokenIds(const Value& value,
                                v1::GenerateRequest* request) {
  return ForEachId(value, [request](uint32_t id) {
    request->mutable_sampling()->add_allowed_token_ids(id);
  });
}

// Ids are names here, as JSON has no other.
absl::Status SetLogitBias(const Value& value, v1::GenerateRequest* request) {
  if (!value.value.is_object()) return value.Invalid("an object of token ids");
  for (const auto& [key, element] : value.value.items()) {
    const json name = key;
    STRATA_ASSIGN_OR_RETURN(const uint32_t id,
                            (Value{value.name, name}.Uint32()));
    STRATA_ASSIGN_OR_RETURN(const double bias,
                            (Value{value.name, element}.Number()));
    (*request->mutable_sampling()->mutable_logit_bias())[id] =
        static_cast<float>(bias);
  }
  return absl::OkStatus();
}

struct Parameter {
  const char* name;
  absl::Status (*set)(const Value& value, v1::GenerateRequest* request);
};

constexpr Parameter kParameters[] = {
    {"temperature", SetFloat<&v1::Sampling::set_temperature>},
    {"top_p", SetFloat<&v1::Sampling::set_top_p>},
    {"top_k", SetTopK},
    {"min_p", SetFloat<&v1::Sampling::set_min_p>},
    {"repetition_penalty", SetFloat<&v1::Sampling::set_repetition_penalty>},
    {"presence_penalty", SetFloat<&v1::Sampling::set_presence_penalty>},
    {"frequency_penalty", SetFloat<&v1::Sampling::set_frequency_penalty>},
    {"seed", SetSeed},
    {"logit_bias", SetLogitBias},
    {"allowed_token_ids", SetAllowedTokenIds},
    {"max_tokens", SetCount<&v1::Stopping::set_max_tokens>},
    {"min_tokens", SetCount<&v1::Stopping::set_min_tokens>},
    {"stop", SetStop},
    {"stop_token_ids", SetStopTokenIds},
    {"ignore_eos", SetBool<&v1::Stopping::set_ignore_eos>},
    {"include_stop_str_in_output", SetBool<&v1::Stopping::set_include_stop>},
    {"logprobs", SetLogprobs},
    {"n", SetN},
};

const Parameter* FindParameter(const std::string& name) {
  for (const Parameter& parameter : kParameters) {
    if (name == parameter.name) return &parameter;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<json> ParseSamplingParameters(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling_parameters has ", text.size(),
                     " bytes, at most ", kMaxTextBytes, " are allowed"));
  }
  bool is_deep = false;
  const auto keep = [&is_deep](int depth, json::parse_event_t event, json&) {
    const bool begins = event == json::parse_event_t::array_start ||
                        event == json::parse_event_t::object_start;
    if (begins && depth > kMaxDepth) is_deep = true;
    return !is_deep;
  };
  json parameters = json::parse(text.begin(), text.end(), keep,
                                /*allow_exceptions=*/false);
  if (is_deep) {
    return absl::InvalidArgumentError(
        "sampling_parameters nests lists or objects deeper than any parameter");
  }
  if (!parameters.is_object()) {
    return absl::InvalidArgumentError("sampling_parameters is no JSON object");
  }
  return parameters;
}

absl::Status SetSamplingParameters(const json& parameters,
                                   v1::GenerateRequest* request) {
  for (const auto& [name, value] : parameters.items()) {
    const Parameter* parameter = FindParameter(name);
    if (parameter == nullptr) {
      const auto name_of = [](std::string* out, const Parameter& p) {
        out->append(p.name);
      };
      return absl::InvalidArgumentError(absl::StrCat(
          "sampling parameter ", Quote(name), " is unknown, allowed are ",
          absl::StrJoin(kParameters, ", ", name_of)));
    }
    if (value.is_null()) continue;
    STRATA_RETURN_IF_ERROR(parameter->set({parameter->name, value}, request));
  }
  return absl::OkStatus();
}

}  // namespace strata::kserve
