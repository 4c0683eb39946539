#ifndef TESTS_CORE_MODEL_RANDOM_MODEL_H_
#define TESTS_CORE_MODEL_RANDOM_MODEL_H_

#include <cstdint>
#include <string>

namespace strata {

// Writes a Hugging Face directory: `config_json` as config.json, and random f32
// weights of all that such a model has, of a size that keeps activations near
// one.  REQUIRES: the directory exists, the config is valid and untied.
void WriteRandomModel(const std::string& config_json, uint64_t seed,
                      const std::string& directory);

}  // namespace strata

#endif  // TESTS_CORE_MODEL_RANDOM_MODEL_H_
