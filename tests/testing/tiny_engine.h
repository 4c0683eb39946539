#ifndef TESTS_TESTING_TINY_ENGINE_H_
#define TESTS_TESTING_TINY_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/engine.h"
#include "core/model/checkpoint.h"
#include "tests/testing/collecting_sink.h"

namespace prometheus {
class Registry;
}

namespace strata {

// A real engine over one of the models in tests/golden, on the CPU backend,
// without a server.
struct TinyEngine {
  struct Options {
    std::string model = "llama-tied";
    std::string adapter = "";  // a directory; "": none
    bool exact_f32 = true;
    int threads = 1;
    int num_ranks = 1;  // tensor parallel
    int64_t num_pages = 4096;
    int page_tokens = 4;
    int max_sequences = 64;
    int max_batched_tokens = 512;
    int max_queued_requests = 1000;
    bool optimistic = false;
    absl::Duration stall_limit = absl::Seconds(30);
    bool has_text = false;  // deltas have text: the model has a tokenizer
    // null: the model's where has_text, else none.
    std::function<std::unique_ptr<const Tokenizer>()> make_tokenizer = nullptr;
    // null: the CPU's, of `threads`, `num_ranks` and `exact_f32`; with
    // STRATA_TEST_BACKEND=async in the environment, as a device that computes
    // by itself.
    std::function<std::unique_ptr<Backend>()> make_backend = nullptr;
  };

  explicit TinyEngine(const Options& options);
  ~TinyEngine();

  SharingStrategy Strategy(const std::string& spec) const;

  // A request for `max_tokens` greedy tokens that no end token ends.
  Request Greedy(std::vector<int32_t> prompt, const std::string& strategy,
                 int max_tokens) const;

  // Submits and waits; EXPECTs success.
  std::shared_ptr<CollectingSink> Run(Request request) const;

  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<StrategyRegistry> strategies;
  std::unique_ptr<prometheus::Registry> registry;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<Engine> engine;
  int64_t page_bytes = 0;
};

}  // namespace strata

#endif  // TESTS_TESTING_TINY_ENGINE_H_
