#ifndef SERVER_PROCESS_MODEL_HOST_H_
#define SERVER_PROCESS_MODEL_HOST_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/engine.h"
#include "core/model/checkpoint.h"
#include "core/strategy_registry.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"
#include "kernels/backend.h"
#include "monitoring/metrics.h"
#include "prometheus/registry.h"
#include "server/process/logging.h"
#include "server/process/options.h"
#include "server/serving_state.h"

namespace strata {

// A model loaded, packed and warm, with the engine that runs it: all that a
// ServedModel points to.
class ModelHost {
 public:
  // Takes seconds to minutes; logs how far it is.  Errors are one line that
  // begins with the file's path or the flag's name.
  static absl::StatusOr<std::unique_ptr<ModelHost>> Load(
      const ServerOptions& options, Logger* logger);

  const ServedModel& served() const { return served_; }
  Metrics* metrics() { return metrics_.get(); }
  Engine* engine() { return engine_.get(); }

 private:
  ModelHost() = default;
  absl::Status LoadFiles(const ServerOptions& options, Logger* logger);
  absl::Status SetStrategies(const ServerOptions& options);
  absl::Status OpenBackend(const ServerOptions& options, Logger* logger);
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
  prometheus::Registry registry_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Engine> engine_;
  ServedModel served_;
};

}  // namespace strata

#endif  // SERVER_PROCESS_MODEL_HOST_H_
