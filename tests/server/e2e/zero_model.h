#ifndef TESTS_SERVER_E2E_ZERO_MODEL_H_
#define TESTS_SERVER_E2E_ZERO_MODEL_H_

#include <string>

namespace strata {

// A Llama whose weights are all zero, so that every greedy token is 0, in a
// sparse file: costs the time of a real model of its size, but no disk.  There
// is no end token and no tokenizer.
struct ZeroModel {
  int hidden = 512;
  int intermediate = 2048;
  int layers = 8;
  int vocab = 4096;
  int max_positions = 32768;

  // Writes config.json and model.safetensors; returns the directory.
  std::string Write(const std::string& name) const;
};

}  // namespace strata

#endif  // TESTS_SERVER_E2E_ZERO_MODEL_H_
