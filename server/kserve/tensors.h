#ifndef SERVER_KSERVE_TENSORS_H_
#define SERVER_KSERVE_TENSORS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace strata::kserve {

// The tensors of the served model: names and shapes are those of Triton's vLLM
// backend, kv_strategy and kv_floor are Strata's.
struct Tensor {
  const char* name;
  const char* datatype;  // "BYTES", "BOOL", ...
  int64_t dim = 1;       // of one dimension; -1: one for each sequence
  bool is_optional = true;
};

inline constexpr char kTextInput[] = "text_input";
inline constexpr char kStream[] = "stream";
inline constexpr char kSamplingParameters[] = "sampling_parameters";
inline constexpr char kExcludeInput[] = "exclude_input_in_output";
inline constexpr char kKvStrategy[] = "kv_strategy";
inline constexpr char kKvFloor[] = "kv_floor";

inline constexpr char kTextOutput[] = "text_output";

// What a client may ask for besides the text: each by an input of its own.
struct ExtraOutput {
  const char* input;  // BOOL
  Tensor output;
};
enum Extra {
  kFinishReason,
  kCumulativeLogprob,
  kLogprobs,
  kNumInputTokens,
  kNumOutputTokens,
  kNumExtras,
};
inline constexpr ExtraOutput kExtras[kNumExtras] = {
    {"return_finish_reason", {"finish_reason", "BYTES", -1}},
    {"return_cumulative_logprob", {"cumulative_logprob", "FP32", -1}},
    {"return_logprobs", {"logprobs", "BYTES", -1}},
    {"return_num_input_tokens", {"num_input_tokens", "UINT32", 1}},
    {"return_num_output_tokens", {"num_output_tokens", "UINT32", -1}},
};

inline constexpr Tensor kInputs[] = {
    {kTextInput, "BYTES", 1, false},
    {kStream, "BOOL"},
    {kSamplingParameters, "BYTES"},
    {kExcludeInput, "BOOL"},
    {kExtras[kFinishReason].input, "BOOL"},
    {kExtras[kCumulativeLogprob].input, "BOOL"},
    {kExtras[kLogprobs].input, "BOOL"},
    {kExtras[kNumInputTokens].input, "BOOL"},
    {kExtras[kNumOutputTokens].input, "BOOL"},
    {kKvStrategy, "BYTES"},
    {kKvFloor, "BYTES"},
};

inline constexpr Tensor kOutputs[] = {
    {kTextOutput, "BYTES", -1},         kExtras[kFinishReason].output,
    kExtras[kCumulativeLogprob].output, kExtras[kLogprobs].output,
    kExtras[kNumInputTokens].output,    kExtras[kNumOutputTokens].output,
};

// The one with this name, or null.
inline const Tensor* Find(std::span<const Tensor> tensors,
                          std::string_view name) {
  for (const Tensor& tensor : tensors) {
    if (name == tensor.name) return &tensor;
  }
  return nullptr;
}

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_TENSORS_H_
