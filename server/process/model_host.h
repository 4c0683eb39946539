#ifndef SERVER_PROCESS_MODEL_HOST_H_
#define SERVER_PROCESS_MODEL_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "core/engine.h"
#include "core/model/checkpoint.h"
#include "core/strategy_registry.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"
#include "core/transformer.h"
#include "kernels/backend.h"
#include "monitoring/metrics.h"
#include "prometheus/registry.h"
#include "server/process/logging.h"
#include "server/process/memory_plan.h"
#include "server/process/options.h"
#include "server/serving_state.h"

namespace strata {

// A model loaded, packed and warm, with the engine that runs it: all that a
// ServedModel points to.
class ModelHost {
 public:
  using BackendOpener = std::function<absl::StatusOr<std::unique_ptr<Backend>>(
      const ServerOptions&, Logger*)>;

  // Takes seconds to minutes; logs how far it is and where the memory goes:
  // first to the weights, then to what a step needs, then to the pool.  Errors
  // are one line that names the file or the flag; RESOURCE_EXHAUSTED: which of
  // these did not fit.
  static absl::StatusOr<std::unique_ptr<ModelHost>> Load(
      const ServerOptions& options, const BackendOpener& open_backend,
      Logger* logger);

  const ServedModel& served() const { return served_; }
  Metrics* metrics() { return metrics_.get(); }
  Engine* engine() { return engine_.get(); }

 private:
  ModelHost() = default;
  // The error of `status` with the model's path in front of its message.
  static absl::Status OfModel(const ServerOptions& options,
                              const absl::Status& status);
  absl::Status LoadFiles(const ServerOptions& options, Logger* logger);
  absl::Status SetStrategies(const ServerOptions& options);
  absl::Status SetSizes(const ServerOptions& options);
  // What can be told before the weights are packed.
  absl::Status PlanMemory(const ServerOptions& options);
  void LogPlan(const ServerOptions& options, Logger* logger) const;
  absl::Status LoadWeights(const ServerOptions& options, Logger* logger);
  absl::Status CreatePages(const ServerOptions& options, Logger* logger);
  absl::Status StartEngine(const ServerOptions& options, Logger* logger);
  void Describe(const ServerOptions& options);

  // Each uses those before it.
  Checkpoint checkpoint_;
  std::unique_ptr<const Tokenizer> tokenizer_;  // null: tokens only
  std::unique_ptr<const ChatTemplate> chat_;    // null: no or unknown template
  std::unique_ptr<StrategyRegistry> strategies_;
  int max_model_len_ = 0;
  std::unique_ptr<Backend> backend_;
  KvLayout layout_;         // of its pages
  int64_t page_bytes_ = 0;  // of one
  MemoryPlan memory_;
  std::unique_ptr<Transformer> transformer_;  // until the engine has it
  prometheus::Registry registry_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Engine> engine_;
  ServedModel served_;
};

}  // namespace strata

#endif  // SERVER_PROCESS_MODEL_HOST_H_
