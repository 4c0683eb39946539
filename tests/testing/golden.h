#ifndef TESTS_TESTING_GOLDEN_H_
#define TESTS_TESTING_GOLDEN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace strata {

inline constexpr const char* kGoldenModels[] = {
    "llama-tied", "llama3-ropescaled", "mistral", "qwen2-bias", "qwen3-qknorm"};

// The right answers for one model of tests/golden, computed by PyTorch in f32:
// golden.json and golden.safetensors.
class Golden {
 public:
  struct Plan {
    int num_leaders = 0;
    int num_layers = 0;
    std::vector<int32_t> greedy;  // what follows the prompt
    double min_margin = 0;  // of the best logit before the next, on the way
    // Whether sums of f32 in another order give the same tokens for sure.
    bool IsClear() const { return min_margin >= 1e-3; }
  };
  // The prompt and `position` tokens under one strategy, the rest under
  // another.
  struct Demotion {
    std::string from, to;
    int position = 0;
    std::vector<int32_t> tokens;
  };

  // REQUIRES: both files are there.
  explicit Golden(const std::string& model);

  const std::string& directory() const { return directory_; }
  const std::vector<int32_t>& prompt() const { return prompt_; }
  // By the strategy's spec; an adapter's hold nothing but the spec.
  const std::map<std::string, Plan>& plans() const { return plans_; }
  const std::vector<Demotion>& demotions() const { return demotions_; }

  // Log-softmax of row `row` of the logits "logits/SPEC" or "demote/NUMBER":
  // of all the vocabulary.
  std::vector<double> Logprobs(const std::string& name, int row) const;

 private:
  struct Logits {
    size_t begin;  // in data_
    int64_t vocab;
  };

  const std::string directory_;
  std::vector<int32_t> prompt_;
  std::map<std::string, Plan> plans_;
  std::vector<Demotion> demotions_;
  std::map<std::string, Logits> logits_;
  std::string data_;
};

}  // namespace strata

#endif  // TESTS_TESTING_GOLDEN_H_
