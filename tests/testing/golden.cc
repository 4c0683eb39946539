#include "tests/testing/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace strata {

using nlohmann::json;

Golden::Golden(const std::string& model) : directory_("tests/golden/" + model) {
  const json golden = json::parse(std::ifstream(directory_ + "/golden.json"));
  golden.at("prompt").get_to(prompt_);
  for (const auto& [spec, plan] : golden.at("plans").items()) {
    Plan& to = plans_[spec];
    if (plan.empty()) continue;
    plan.at("num_leaders").get_to(to.num_leaders);
    to.num_layers = static_cast<int>(plan.at("source").size());
    plan.at("greedy").get_to(to.greedy);
    plan.at("min_margin").get_to(to.min_margin);
  }
  for (const json& of : golden.value("demotions", json::array())) {
    demotions_.push_back({of.at("from"), of.at("to"),
                          of.at("prompt_and_first_tokens_under_from"),
                          of.at("tokens")});
  }

  std::ifstream file(directory_ + "/golden.safetensors", std::ios::binary);
  data_.assign(std::istreambuf_iterator<char>(file), {});
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data_.data(), sizeof(header_bytes));
  const json header = json::parse(data_.substr(8, header_bytes));
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    logits_[name] = {
        8 + header_bytes + tensor.at("data_offsets").at(0).get<size_t>(),
        tensor.at("shape").at(1).get<int64_t>()};
  }
}

std::vector<double> Golden::Logprobs(const std::string& name, int row) const {
  const Logits& of = logits_.at(name);
  std::vector<float> logits(of.vocab);
  std::memcpy(logits.data(),
              data_.data() + of.begin + row * of.vocab * sizeof(float),
              of.vocab * sizeof(float));
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float v : logits) sum += std::exp(v - top);
  std::vector<double> logprobs;
  for (const float v : logits) logprobs.push_back(v - top - std::log(sum));
  return logprobs;
}

}  // namespace strata
