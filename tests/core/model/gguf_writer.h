#ifndef TESTS_CORE_MODEL_GGUF_WRITER_H_
#define TESTS_CORE_MODEL_GGUF_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "tests/core/model/file_bytes.h"

namespace strata {

struct GgufWriterOptions {
  // Of all matrices; those whose rows are no whole blocks of it are F32, as
  // norms and biases are.
  DType type = DType::kF32;
  // Rounds to `type` but stores the rounded values as F32: the same model as
  // the quantised one for whoever computes with exact weights.
  bool store_rounded_as_f32 = false;
};

// A Hugging Face directory as a GGUF file without tokenizer, as llama.cpp's
// converter writes it: mistral becomes llama, and the rows of Q and K of these
// two are interleaved.
absl::StatusOr<GgufBuilder> ConvertToGguf(const std::string& directory,
                                          const GgufWriterOptions& options);

// The same, written to `path`.
absl::Status WriteGguf(const std::string& directory,
                       const GgufWriterOptions& options,
                       const std::string& path);

}  // namespace strata

#endif  // TESTS_CORE_MODEL_GGUF_WRITER_H_
