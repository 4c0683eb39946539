#include "server/kserve/model_description.h"

#include <span>
#include <string_view>

#include "server/kserve/infer_request.h"
#include "server/kserve/tensors.h"

namespace strata::kserve {
namespace {

using inference::DataType;

constexpr char kPlatform[] = "strata";

template <typename Repeated>
void AddTensors(std::span<const Tensor> tensors, Repeated* into) {
  for (const Tensor& tensor : tensors) {
    auto* added = into->Add();
    added->set_name(tensor.name);
    added->set_datatype(tensor.datatype);
    added->add_shape(tensor.dim);
  }
}

DataType ToDataType(std::string_view datatype) {
  if (datatype == "BYTES") return inference::TYPE_STRING;
  if (datatype == "BOOL") return inference::TYPE_BOOL;
  if (datatype == "FP32") return inference::TYPE_FP32;
  if (datatype == "UINT32") return inference::TYPE_UINT32;
  return inference::TYPE_INVALID;
}

}  // namespace

inference::ModelMetadataResponse DescribeMetadata(const std::string& name) {
  inference::ModelMetadataResponse metadata;
  metadata.set_name(name);
  *metadata.add_versions() = std::string(kModelVersion);
  metadata.set_platform(kPlatform);
  AddTensors(kInputs, metadata.mutable_inputs());
  AddTensors(kOutputs, metadata.mutable_outputs());
  return metadata;
}

inference::ModelConfig DescribeConfig(const std::string& name) {
  inference::ModelConfig config;
  config.set_name(name);
  config.set_platform(kPlatform);
  config.set_backend(kPlatform);
  // Tensors without a batch dimension: the engine forms batches itself.
  config.set_max_batch_size(0);
  config.mutable_model_transaction_policy()->set_decoupled(true);
  for (const Tensor& tensor : kInputs) {
    inference::ModelInput* input = config.add_input();
    input->set_name(tensor.name);
    input->set_data_type(ToDataType(tensor.datatype));
    input->add_dims(tensor.dim);
    input->set_optional(tensor.is_optional);
  }
  for (const Tensor& tensor : kOutputs) {
    inference::ModelOutput* output = config.add_output();
    output->set_name(tensor.name);
    output->set_data_type(ToDataType(tensor.datatype));
    output->add_dims(tensor.dim);
  }
  return config;
}

}  // namespace strata::kserve
