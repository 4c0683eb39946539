#include "core/model/weight_binder.h"

#include <set>
#include <string>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/layer_tensors.h"

namespace strata {
namespace {

class Binder {
 public:
  Binder(std::string_view source, const TensorMap& tensors, TensorNaming naming,
         const ModelDescription& description)
      : source_(source),
        tensors_(tensors),
        naming_(naming),
        description_(description) {}

  absl::Status Bind(Checkpoint* checkpoint) {
    const ModelConfig& config = description_.config;
    const int64_t vocab = config.vocab_size, hidden = config.hidden_size;
    STRATA_RETURN_IF_ERROR(
        Matrix(Name("model.embed_tokens.weight", "token_embd.weight"), vocab,
               hidden, &checkpoint->embedding));
    STRATA_RETURN_IF_ERROR(
        Vector(Name("model.norm.weight", "output_norm.weight"), hidden,
               &checkpoint->final_norm));
    checkpoint->head = checkpoint->embedding;
    if (!config.tied_embeddings) {
      STRATA_RETURN_IF_ERROR(Matrix(Name("lm_head.weight", "output.weight"),
                                    vocab, hidden, &checkpoint->head));
    }
    checkpoint->layers.resize(config.num_layers);
    for (int layer = 0; layer < config.num_layers; ++layer) {
      STRATA_RETURN_IF_ERROR(BindLayer(layer, &checkpoint->layers[layer]));
    }
    SetWeightTotals(checkpoint);
    return absl::OkStatus();
  }

 private:
  std::string Name(const char* hugging_face, const char* gguf) const {
    return naming_ == TensorNaming::kGguf ? gguf : hugging_face;
  }

  // Llama's files in GGUF form hold the rows of a head in another order.
  int InterleavedHeadDim(bool is_rotated) const {
    const bool is_interleaved = is_rotated && naming_ == TensorNaming::kGguf &&
                                description_.config.architecture == "llama";
    return is_interleaved ? description_.config.head_dim : 0;
  }

  absl::Status BindLayer(int layer, LayerWeights* weights) {
    const ModelConfig& config = description_.config;
    const std::string prefix = naming_ == TensorNaming::kGguf
                                   ? Concat("blk.", layer, ".")
                                   : Concat("model.layers.", layer, ".");
    for (const LayerMatrix& entry : kLayerMatrices) {
      WeightView& view = weights->*entry.view;
      STRATA_RETURN_IF_ERROR(Matrix(
          prefix + Name(entry.hugging_face, entry.gguf),
          DimSize(entry.rows, config), DimSize(entry.cols, config), &view));
      view.interleaved_head_dim = InterleavedHeadDim(entry.is_rotated);
    }
    for (const LayerVector& entry : kLayerVectors) {
      if (entry.presence != nullptr && !(description_.*entry.presence))
        continue;
      WeightView& view = weights->*entry.view;
      STRATA_RETURN_IF_ERROR(
          Vector(prefix + Name(entry.hugging_face, entry.gguf),
                 DimSize(entry.size, config), &view));
      view.interleaved_head_dim = InterleavedHeadDim(entry.is_rotated);
      // StoredRow reorders rows, so such a bias is a column.
      if (view.interleaved_head_dim > 0) std::swap(view.rows, view.cols);
    }
    return CheckNothingElse(prefix);
  }

  absl::Status Matrix(const std::string& name, int64_t rows, int64_t cols,
                      WeightView* view) {
    STRATA_RETURN_IF_ERROR(Find(name, {rows, cols}, view));
    view->rows = rows;
    view->cols = cols;
    return absl::OkStatus();
  }

  absl::Status Vector(const std::string& name, int64_t size, WeightView* view) {
    STRATA_RETURN_IF_ERROR(Find(name, {size}, view));
    if (BlockElements(view->type) > 1) {
      return Unsupported(source_, name, " is ", DTypeName(view->type),
                         "; norms and biases must be F32, F16 or BF16");
    }
    view->rows = 1;
    view->cols = size;
    return absl::OkStatus();
  }

  // Sets data and type.
  absl::Status Find(const std::string& name, const std::vector<int64_t>& shape,
                    WeightView* view) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end())
      return Malformed(source_, "tensor ", name, " is missing");
    const StoredTensor& tensor = it->second;
    if (tensor.shape != shape) {
      return Malformed(tensor.file, name, " is ", ShapeText(tensor.shape),
                       ", expected ", ShapeText(shape));
    }
    if (!tensor.type) {
      return Unsupported(
          tensor.file, name, " is ", tensor.type_name,
          ", which is not supported; F32, F16, BF16, Q8_0, Q4_0 and Q4_1 are");
    }
    view->data = tensor.bytes.data();
    view->type = *tensor.type;
    used_.insert(it->first);
    return absl::OkStatus();
  }

  // A bias or norm that the architecture does not have would change the
  // results.
  absl::Status CheckNothingElse(const std::string& prefix) const {
    for (auto it = tensors_.lower_bound(prefix);
         it != tensors_.end() && it->first.starts_with(prefix); ++it) {
      const bool matters =
          it->first.ends_with(".bias") || it->first.ends_with("norm.weight");
      if (matters && !used_.contains(it->first)) {
        return Unsupported(it->second.file, "tensor ", Quote(it->first),
                           " is not supported in a model of type ",
                           description_.config.architecture);
      }
    }
    return absl::OkStatus();
  }

  const std::string_view source_;
  const TensorMap& tensors_;
  const TensorNaming naming_;
  const ModelDescription& description_;
  std::set<std::string_view> used_;
};

}  // namespace

absl::Status BindWeights(std::string_view source, const TensorMap& tensors,
                         TensorNaming naming,
                         const ModelDescription& description,
                         Checkpoint* checkpoint) {
  return Binder(source, tensors, naming, description).Bind(checkpoint);
}

}  // namespace strata
