#ifndef TESTS_TESTING_TINY_ENGINE_H_
#define TESTS_TESTING_TINY_ENGINE_H_

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/engine.h"
#include "core/fit_request.h"
#include "core/model/checkpoint.h"
#include "core/model/lora_adapter.h"
#include "core/model/weight_split.h"
#include "core/packed_model.h"
#include "core/strategy_registry.h"
#include "core/transformer.h"
#include "kernels/cpu/cpu_ranks.h"
#include "monitoring/metrics.h"
#include "tests/testing/async_cpu_backend.h"
#include "tests/testing/collecting_sink.h"

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

  explicit TinyEngine(const Options& options) {
    const std::string path = options.model.find('/') == std::string::npos
                                 ? "tests/golden/" + options.model
                                 : options.model;
    absl::StatusOr<Checkpoint> loaded = LoadCheckpoint(path);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    checkpoint = std::make_unique<Checkpoint>(*std::move(loaded));
    if (!options.adapter.empty()) {
      const auto applied = ApplyLoraAdapter(options.adapter, options.exact_f32,
                                            checkpoint.get());
      EXPECT_TRUE(applied.ok()) << applied.status();
    }
    const ModelConfig& config = checkpoint->config;
    const cpu::CpuOptions cpu = {.num_threads = options.threads,
                                 .exact_f32 = options.exact_f32};
    const char* const kind = std::getenv("STRATA_TEST_BACKEND");
    if (options.make_backend) {
      backend = options.make_backend();
    } else if (kind != nullptr && kind == std::string("async")) {
      backend = std::make_unique<AsyncCpuBackend>(cpu);
    } else {
      EXPECT_TRUE(CheckSplit(*checkpoint, options.num_ranks).ok());
      backend = cpu::MakeCpuRanks(cpu, options.num_ranks);
    }
    if (options.make_tokenizer) tokenizer = options.make_tokenizer();
    const KvLayout layout = {.num_pages = options.num_pages,
                             .page_tokens = options.page_tokens,
                             .kv_heads = config.num_kv_heads,
                             .head_dim = config.head_dim};
    auto transformer = std::make_unique<Transformer>(
        PackModel(*checkpoint, backend.get(), [](int) {}), backend.get(),
        options.max_batched_tokens);
    const auto reserved = transformer->Reserve(layout, options.max_sequences);
    EXPECT_TRUE(reserved.ok()) << reserved.status();
    EXPECT_TRUE(backend->CreateKvPages(layout).ok());
    page_bytes = backend->PageBytes(layout);
    strategies = std::make_unique<StrategyRegistry>(
        config.num_layers, SharingStrategy::Full(config.num_layers));
    registry = std::make_unique<prometheus::Registry>();
    metrics = std::make_unique<Metrics>(
        registry.get(), Metrics::Config{.model_name = options.model,
                                        .version = "test",
                                        .backend = "cpu",
                                        .kv_format = backend->kv_format(),
                                        .page_tokens = options.page_tokens,
                                        .page_bytes = page_bytes,
                                        .num_pages = options.num_pages,
                                        .num_layers = config.num_layers,
                                        .max_model_len = config.max_positions});
    if (options.has_text) {
      EXPECT_TRUE(checkpoint->tokenizer.has_value()) << path;
      auto made = Tokenizer::Create(*checkpoint->tokenizer);
      EXPECT_TRUE(made.ok()) << made.status();
      tokenizer = *std::move(made);
    }
    int label = 0;
    for (const std::string& name : strategies->labels()) {
      metrics->AddStrategy(label++, name, 0);
    }
    absl::StatusOr<std::unique_ptr<Engine>> created = Engine::Create(
        {.scheduler = {.max_sequences = options.max_sequences,
                       .max_batched_tokens = options.max_batched_tokens,
                       .page_tokens = options.page_tokens,
                       .optimistic = options.optimistic},
         .max_queued_requests = options.max_queued_requests,
         .max_model_len = config.max_positions,
         .num_pages = options.num_pages,
         .page_bytes = page_bytes,
         .stall_limit = options.stall_limit},
        {.transformer = std::move(transformer),
         .tokenizer = tokenizer.get(),
         .eos_ids = checkpoint->eos_ids,
         .strategies = strategies.get(),
         .metrics = metrics.get()});
    EXPECT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }

  SharingStrategy Strategy(const std::string& spec) const {
    absl::StatusOr<SharingStrategy> strategy =
        SharingStrategy::Parse(spec, checkpoint->config.num_layers);
    EXPECT_TRUE(strategy.ok()) << strategy.status();
    return *strategy;
  }

  // A request for `max_tokens` greedy tokens that no end token ends.
  Request Greedy(std::vector<int32_t> prompt, const std::string& strategy,
                 int max_tokens) const {
    Request request(Strategy(strategy));
    request.prompt = std::move(prompt);
    request.sampling.temperature = 0.0f;
    request.stopping.ignore_eos = true;
    EXPECT_TRUE(FitRequest(engine->limits(), max_tokens, &request).ok());
    return request;
  }

  // Submits and waits; EXPECTs success.
  std::shared_ptr<CollectingSink> Run(Request request) const {
    auto sink = std::make_shared<CollectingSink>();
    engine->Submit(std::move(request), sink);
    EXPECT_TRUE(sink->Wait().ok());
    return sink;
  }

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
