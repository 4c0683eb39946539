#ifndef SERVER_SERVING_STATE_H_
#define SERVER_SERVING_STATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/engine.h"
#include "core/model/model_config.h"
#include "core/strategy_registry.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"
#include "monitoring/metrics.h"

namespace strata {

// The model that the faces serve.  Owns nothing; main.cc owns all of it and
// outlives the server.
struct ServedModel {
  std::string name;  // --served_model_name, or the file's or folder's name
  const ModelConfig* config = nullptr;
  Engine* engine = nullptr;
  StrategyRegistry* strategies = nullptr;
  Metrics* metrics = nullptr;
  const Tokenizer* tokenizer = nullptr;  // null: tokens only
  const ChatTemplate* chat = nullptr;    // null: chat_error says why
  absl::Status chat_error;
  std::string backend;        // "cpu"
  std::string weight_format;  // "Q4_1"
  std::string kv_format;      // "bf16"
  int64_t weight_bytes = 0;
  int page_tokens = 0;
  int64_t page_bytes = 0;
};

// Where the process stands: loading, then serving, leaving (it still serves,
// but says that it is not ready), then draining.  What every face asks before
// it takes a call.
//
// Thread-safe.
class ServingState {
 public:
  enum class Phase { kLoading, kServing, kLeaving, kDraining };

  // The model is loaded and warm.  `model` outlives this.  Serves, unless
  // BeginDrain came first.
  void Publish(const ServedModel* model);
  // From any phase but draining.
  void BeginLeaving();
  // From any phase.
  void BeginDrain();

  Phase phase() const;
  // UNAVAILABLE while loading and draining, with the reason.
  absl::StatusOr<const ServedModel*> Serving() const;
  // The model also while draining.  UNAVAILABLE while loading.
  absl::StatusOr<const ServedModel*> Loaded() const;
  // The same; null while loading.
  const ServedModel* model() const;

  // Kubernetes' two questions.  Live: not stalled and the device not lost, also
  // while loading and draining.
  bool live() const { return health() == EngineHealth::kGood; }
  // Why it is not.
  EngineHealth health() const;
  // Ready: serving and live.
  bool ready() const;

 private:
  mutable absl::Mutex mu_;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kLoading;
  const ServedModel* model_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace strata

#endif  // SERVER_SERVING_STATE_H_
