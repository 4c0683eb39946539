#include "server/kserve/infer_answer.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/finish_word.h"

namespace strata::kserve {
namespace {

using inference::ModelInferResponse;
using nlohmann::json;

// Raw contents: elements one after the other, the lowest byte first.
void AppendUint32(uint32_t value, std::string* raw) {
  for (int shift = 0; shift < 32; shift += 8) {
    raw->push_back(static_cast<char>(value >> shift));
  }
}

void AppendFloat(float value, std::string* raw) {
  AppendUint32(std::bit_cast<uint32_t>(value), raw);
}

void AppendBytes(const std::string& bytes, std::string* raw) {
  AppendUint32(static_cast<uint32_t>(bytes.size()), raw);
  raw->append(bytes);
}

// Adds an output of `count` elements; returns its raw contents.
std::string* AddOutput(const Tensor& tensor, size_t count,
                       ModelInferResponse* response) {
  ModelInferResponse::InferOutputTensor* output = response->add_outputs();
  output->set_name(tensor.name);
  output->set_datatype(tensor.datatype);
  output->add_shape(static_cast<int64_t>(count));
  return response->add_raw_output_contents();
}

// As the vLLM backend: a list with, for each token, an object from ids to what
// is known of them.  The rank of a token that is not among the best is not.
std::string ToJson(const std::vector<SampledToken>& logprobs,
                   const Tokenizer* tokenizer) {
  json list = json::array();
  for (const SampledToken& token : logprobs) {
    json of_token = json::object();
    const auto add = [&](int32_t id, float logprob, json rank) {
      json& entry = of_token[std::to_string(id)];
      if (entry.is_object()) return;  // the chosen one, among the best
      entry = {{"logprob", logprob},
               {"rank", std::move(rank)},
               {"decoded_token", nullptr}};
      if (tokenizer != nullptr) {
        entry["decoded_token"] =
            std::string(tokenizer->Bytes(id, /*skip_special=*/false));
      }
    };
    for (int i = 0; i < token.num_top; ++i) {
      add(token.top[i].token, token.top[i].logprob, i + 1);
    }
    add(token.token, token.logprob, nullptr);
    list.push_back(std::move(of_token));
  }
  return list.dump(-1, ' ', /*ensure_ascii=*/true,
                   json::error_handler_t::replace);
}

std::string* AddExtra(Extra extra, size_t count, ModelInferResponse* response) {
  return AddOutput(kExtras[extra].output, count, response);
}

}  // namespace

void InferAnswer::Add(SequenceDelta delta) {
  Part& part = parts_[delta.index];
  part.text += delta.text;
  part.num_tokens += delta.tokens.size();
  for (const SampledToken& token : delta.logprobs) {
    part.cumulative_logprob += token.logprob;
  }
  part.logprobs.insert(part.logprobs.end(), delta.logprobs.begin(),
                       delta.logprobs.end());
  if (delta.end.has_value()) {
    part.finish_reason = FinishWord(delta.end->reason);
    ++num_ended_;
  }
  has_news_ = true;
}

std::vector<InferAnswer::Part> InferAnswer::Take() {
  std::vector<Part> taken;
  taken.reserve(parts_.size());
  for (Part& part : parts_) {
    taken.push_back({std::exchange(part.text, {}),
                     std::exchange(part.num_tokens, 0),
                     std::exchange(part.logprobs, {}), part.cumulative_logprob,
                     part.finish_reason});
  }
  has_news_ = false;
  return taken;
}

void NameResponse(const std::string& model, const std::string& request_id,
                  ModelInferResponse* response) {
  response->set_model_name(model);
  response->set_model_version(kModelVersion);
  response->set_id(request_id);
}

void AddOutputs(const InferRequest& request,
                const std::vector<InferAnswer::Part>& parts,
                uint32_t num_input_tokens, const std::string& echo,
                const Tokenizer* tokenizer, ModelInferResponse* response) {
  const size_t n = parts.size();
  if (request.has_text) {
    std::string* raw = AddOutput(*Find(kOutputs, kTextOutput), n, response);
    for (const auto& part : parts) AppendBytes(echo + part.text, raw);
  }
  if (request.extras[kFinishReason]) {
    std::string* raw = AddExtra(kFinishReason, n, response);
    for (const auto& part : parts) AppendBytes(part.finish_reason, raw);
  }
  if (request.extras[kCumulativeLogprob]) {
    std::string* raw = AddExtra(kCumulativeLogprob, n, response);
    for (const auto& part : parts) {
      AppendFloat(static_cast<float>(part.cumulative_logprob), raw);
    }
  }
  if (request.extras[kLogprobs]) {
    std::string* raw = AddExtra(kLogprobs, n, response);
    for (const auto& part : parts) {
      AppendBytes(request.generate.has_top_logprobs()
                      ? ToJson(part.logprobs, tokenizer)
                      : "null",
                  raw);
    }
  }
  if (request.extras[kNumInputTokens]) {
    AppendUint32(num_input_tokens, AddExtra(kNumInputTokens, 1, response));
  }
  if (request.extras[kNumOutputTokens]) {
    std::string* raw = AddExtra(kNumOutputTokens, n, response);
    for (const auto& part : parts) AppendUint32(part.num_tokens, raw);
  }
}

}  // namespace strata::kserve
