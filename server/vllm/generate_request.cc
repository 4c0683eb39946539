#include "server/vllm/generate_request.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "core/request.h"
#include "server/request_strategy.h"

namespace strata::vllm {
namespace {

using ::vllm::grpc::engine::GenerateRequest;
using ::vllm::grpc::engine::SamplingParams;

absl::Status NotServed(const char* field, const char* why) {
  return absl::UnimplementedError(absl::StrCat(field, " is not served: ", why));
}

absl::Status CheckServed(const GenerateRequest& message) {
  constexpr char kNoTransfer[] = "KV caches stay where they are";
  constexpr char kTextOnly[] = "the model reads text alone";
  if (message.has_kv_transfer_params()) {
    return NotServed("kv_transfer_params", kNoTransfer);
  }
  if (message.has_kv_transfer_params_json()) {
    return NotServed("kv_transfer_params_json", kNoTransfer);
  }
  if (message.has_mm_inputs()) return NotServed("mm_inputs", kTextOnly);
  if (message.extra_mm_inputs_size() > 0) {
    return NotServed("extra_mm_inputs", kTextOnly);
  }
  if (message.has_media_refs()) return NotServed("media_refs", kTextOnly);
  if (message.data_parallel_rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_parallel_rank is ", message.data_parallel_rank(),
                     ", must be 0: the server runs one copy of the model"));
  }
  return absl::OkStatus();
}

const char* NameOf(SamplingParams::ConstraintCase constraint) {
  switch (constraint) {
    case SamplingParams::kJsonSchema:
      return "json_schema";
    case SamplingParams::kRegex:
      return "regex";
    case SamplingParams::kGrammar:
      return "grammar";
    case SamplingParams::kStructuralTag:
      return "structural_tag";
    case SamplingParams::kJsonObject:
      return "json_object";
    case SamplingParams::kChoice:
      return "choice";
    case SamplingParams::CONSTRAINT_NOT_SET:
      break;
  }
  return nullptr;
}

absl::Status CheckServed(const SamplingParams& params) {
  constexpr char kUnconstrained[] = "sampling takes no grammar";
  if (const char* name = NameOf(params.constraint_case())) {
    return NotServed(name, kUnconstrained);
  }
  if (params.grammar_from_first_token()) {
    return NotServed("grammar_from_first_token", kUnconstrained);
  }
  if (params.has_truncate_prompt_tokens()) {
    return NotServed("truncate_prompt_tokens",
                     "send the prompt that is to be run");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> NumLogprobs(const char* field, int32_t value) {
  if (value >= 0 && value <= kMaxTopLogprobs) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", value, ", must be from 0 to ", kMaxTopLogprobs));
}

absl::Status SetSampling(const SamplingParams& params, v1::Sampling* sampling) {
  if (params.has_temperature()) sampling->set_temperature(params.temperature());
  if (params.top_p() != 0) sampling->set_top_p(params.top_p());
  sampling->set_top_k(params.top_k());
  sampling->set_min_p(params.min_p());
  sampling->set_frequency_penalty(params.frequency_penalty());
  sampling->set_presence_penalty(params.presence_penalty());
  if (params.repetition_penalty() != 0) {
    sampling->set_repetition_penalty(params.repetition_penalty());
  }
  // vLLM's word for none.
  if (params.has_seed() && params.seed() != -1) {
    sampling->set_seed(static_cast<uint64_t>(int64_t{params.seed()}));
  }
  for (const auto& [token, bias] : params.logit_bias()) {
    if (token < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("logit_bias: token id ", token, " is negative"));
    }
    (*sampling->mutable_logit_bias())[token] = bias;
  }
  return absl::OkStatus();
}

void SetStopping(const SamplingParams& params, v1::Stopping* stopping) {
  if (params.has_max_tokens()) stopping->set_max_tokens(params.max_tokens());
  stopping->set_min_tokens(params.min_tokens());
  *stopping->mutable_stop() = params.stop();
  *stopping->mutable_stop_token_ids() = params.stop_token_ids();
  stopping->set_ignore_eos(params.ignore_eos());
  stopping->set_include_stop(params.include_stop_str_in_output());
}

absl::Status SetPrompt(const GenerateRequest& message,
                       v1::GenerateRequest* generate) {
  switch (message.input_case()) {
    case GenerateRequest::kTokenized:
      *generate->mutable_tokens()->mutable_ids() =
          message.tokenized().input_ids();
      return absl::OkStatus();
    case GenerateRequest::kText:
      generate->set_text(message.text());
      return absl::OkStatus();
    case GenerateRequest::INPUT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "the input is missing: one of tokenized and text must be set");
}

}  // namespace

absl::StatusOr<EngineRequest> ToEngineRequest(const GenerateRequest& message,
                                              const RequestMetadata& metadata) {
  const SamplingParams& params = message.sampling_params();
  STRATA_RETURN_IF_ERROR(CheckServed(message));
  STRATA_RETURN_IF_ERROR(CheckServed(params));
  EngineRequest request;
  v1::GenerateRequest& generate = request.generate;
  if (params.has_logprobs()) {
    STRATA_ASSIGN_OR_RETURN(const uint32_t count,
                            NumLogprobs("logprobs", params.logprobs()));
    generate.set_top_logprobs(count);
  }
  if (params.has_prompt_logprobs()) {
    STRATA_ASSIGN_OR_RETURN(
        request.num_prompt_logprobs,
        NumLogprobs("prompt_logprobs", params.prompt_logprobs()));
  }
  STRATA_RETURN_IF_ERROR(SetSampling(params, generate.mutable_sampling()));
  SetStopping(params, generate.mutable_stopping());
  STRATA_RETURN_IF_ERROR(SetPrompt(message, &generate));
  generate.set_request_id(message.request_id().empty() ? metadata.request_id
                                                       : message.request_id());
  generate.mutable_strategy()->set_spec(metadata.strategy);
  generate.mutable_strategy()->set_floor(metadata.floor);
  generate.set_num_sequences(params.n());
  generate.set_tokens_only(true);
  request.is_streamed = message.stream();
  return request;
}

absl::Status CheckStrategy(const StrategyRegistry& registry,
                           const v1::Strategy& strategy) {
  const absl::Status status = RequestWithStrategy(registry, strategy).status();
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(
          status.message(),
          {{"strategy.spec", absl::StrCat("metadata ", kStrategyKey)},
           {"strategy.floor", absl::StrCat("metadata ", kFloorKey)}}));
}

}  // namespace strata::vllm
