#include "core/packed_model.h"

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/model/matrix_merger.h"
#include "core/model/weight_split.h"

namespace strata {
namespace {

// null where the model has no such vector.
const float* Floats(const WeightView& view, Backend* backend) {
  return view.data != nullptr ? backend->NewFloats(view) : nullptr;
}

// Packs the matrices of one model.
class Packer {
 public:
  Packer(Backend* backend, int merge_threads)
      : backend_(backend), merger_(merge_threads) {}

  std::unique_ptr<Matrix> Pack(const WeightView& view,
                               const LowRankUpdate& update) {
    return backend_->Pack(update.is_present() ? merger_.Merge(view, update)
                                              : view);
  }

  PackedLayer PackLayer(const LayerWeights& layer, const LayerUpdates& updates,
                        float eps) {
    PackedLayer packed;
    packed.attention_norm = {Floats(layer.attention_norm, backend_), eps};
    packed.wq = Pack(layer.wq, updates.wq);
    packed.wk = Pack(layer.wk, updates.wk);
    packed.wv = Pack(layer.wv, updates.wv);
    packed.wo = Pack(layer.wo, updates.wo);
    packed.bq = Floats(layer.bq, backend_);
    packed.bk = Floats(layer.bk, backend_);
    packed.bv = Floats(layer.bv, backend_);
    packed.bo = Floats(layer.bo, backend_);
    packed.q_norm = {Floats(layer.q_norm, backend_), eps};
    packed.k_norm = {Floats(layer.k_norm, backend_), eps};
    packed.mlp_norm = {Floats(layer.mlp_norm, backend_), eps};
    packed.gate = Pack(layer.gate, updates.gate);
    packed.up = Pack(layer.up, updates.up);
    packed.down = Pack(layer.down, updates.down);
    return packed;
  }

 private:
  Backend* const backend_;
  MatrixMerger merger_;
};

// Adds up what packed weights take.
class Adder {
 public:
  explicit Adder(const Backend& backend) : backend_(backend) {}

  absl::Status Add(absl::string_view name, WeightView view,
                   const LowRankUpdate& update = {}) {
    if (update.is_present()) {
      view.type = update.merged_type;
      view.data = nullptr;  // is of the other type
    }
    return Add(name, view, backend_.PackedBytes(view));
  }

  absl::Status AddTable(absl::string_view name, const WeightView& table) {
    return Add(name, table, backend_.TableBytes(table));
  }

  void AddFloats(const WeightView& vector) {
    num_bytes_ += vector.rows * vector.cols * int64_t{sizeof(float)};
  }

  absl::Status AddLayer(size_t index, const LayerWeights& layer,
                        const LayerUpdates& updates) {
    struct Named {
      const char* name;
      const WeightView& view;
      const LowRankUpdate& update;
    };
    for (const Named& matrix : {Named{"wq", layer.wq, updates.wq},
                                {"wk", layer.wk, updates.wk},
                                {"wv", layer.wv, updates.wv},
                                {"wo", layer.wo, updates.wo},
                                {"gate", layer.gate, updates.gate},
                                {"up", layer.up, updates.up},
                                {"down", layer.down, updates.down}}) {
      STRATA_RETURN_IF_ERROR(Add(absl::StrCat(matrix.name, " of layer ", index),
                                 matrix.view, matrix.update));
    }
    for (const WeightView* vector :
         {&layer.attention_norm, &layer.bq, &layer.bk, &layer.bv, &layer.bo,
          &layer.q_norm, &layer.k_norm, &layer.mlp_norm}) {
      AddFloats(*vector);
    }
    return absl::OkStatus();
  }

  int64_t num_bytes() const { return num_bytes_; }

 private:
  absl::Status Add(absl::string_view name, const WeightView& view,
                   const absl::StatusOr<int64_t>& num_bytes) {
    if (!num_bytes.ok()) {
      return absl::Status(num_bytes.status().code(),
                          absl::StrCat(name, " [", view.rows, ", ", view.cols,
                                       "]: ", num_bytes.status().message()));
    }
    num_bytes_ += *num_bytes;
    return absl::OkStatus();
  }

  const Backend& backend_;
  int64_t num_bytes_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> PackedModelBytes(const Checkpoint& checkpoint,
                                         const Backend& backend) {
  Adder adder(backend);
  const SplitUnits units(checkpoint.config);
  for (size_t i = 0; i < checkpoint.layers.size(); ++i) {
    STRATA_RETURN_IF_ERROR(adder.AddLayer(
        i, SplitLayer(checkpoint.layers[i], units), checkpoint.UpdatesOf(i)));
  }
  adder.AddFloats(checkpoint.final_norm);
  STRATA_RETURN_IF_ERROR(adder.Add(
      "the head", SplitHead(checkpoint.head, units), checkpoint.head_update));
  STRATA_RETURN_IF_ERROR(adder.AddTable("the embedding", checkpoint.embedding));
  return adder.num_bytes();
}

PackedModel PackModel(const Checkpoint& checkpoint, Backend* backend,
                      const std::function<void(int)>& progress,
                      int merge_threads) {
  const ModelConfig& config = checkpoint.config;
  Packer packer(backend, merge_threads);
  const SplitUnits units(config);
  PackedModel model;
  model.config = config;
  model.embedding = checkpoint.embedding;
  for (size_t i = 0; i < checkpoint.layers.size(); ++i) {
    model.layers.push_back(
        packer.PackLayer(SplitLayer(checkpoint.layers[i], units),
                         checkpoint.UpdatesOf(i), config.rms_norm_eps));
    progress(static_cast<int>(model.layers.size()));
  }
  model.final_norm = {Floats(checkpoint.final_norm, backend),
                      config.rms_norm_eps};
  model.head =
      packer.Pack(SplitHead(checkpoint.head, units), checkpoint.head_update);
  const WeightView inv_freq = {
      .data = reinterpret_cast<const std::byte*>(config.rope_inv_freq.data()),
      .type = DType::kF32,
      .rows = 1,
      .cols = static_cast<int64_t>(config.rope_inv_freq.size())};
  model.inv_freq = backend->NewFloats(inv_freq);
  return model;
}

}  // namespace strata
