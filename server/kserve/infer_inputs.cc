#include "server/kserve/infer_inputs.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/quote.h"
#include "core/text/utf8.h"
#include "server/kserve/tensors.h"
#include "server/kserve/unsupported.h"

namespace strata::kserve {
namespace {

using Input = inference::ModelInferRequest::InferInputTensor;
using inference::InferTensorContents;

absl::Status Invalid(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quote(name), ": ", what));
}

// Triton's clients send [1], some of them with a batch dimension before it.
bool IsOneElement(const Input& input) {
  if (input.shape_size() < 1 || input.shape_size() > 2) return false;
  for (const int64_t dim : input.shape()) {
    if (dim != 1) return false;
  }
  return true;
}

absl::Status CheckTensor(const Input& input) {
  const Tensor* tensor = Find(kInputs, input.name());
  if (tensor == nullptr) {
    const auto name = [](std::string* out, const Tensor& t) {
      out->append(t.name);
    };
    return Invalid(input.name(),
                   absl::StrCat("unknown, the model has ",
                                absl::StrJoin(kInputs, ", ", name)));
  }
  for (const auto& [key, value] : input.parameters()) {
    if (key.rfind("shared_memory_", 0) == 0) return Unsupported();
    return Invalid(input.name(),
                   absl::StrCat("unknown parameter ", Quote(key)));
  }
  if (input.datatype() != tensor->datatype) {
    return Invalid(input.name(),
                   absl::StrCat("datatype ", Quote(input.datatype()),
                                ", must be ", tensor->datatype));
  }
  if (!IsOneElement(input)) {
    return Invalid(input.name(),
                   absl::StrCat("shape [", absl::StrJoin(input.shape(), ", "),
                                "], must be [1] or [1, 1]"));
  }
  return absl::OkStatus();
}

// In raw contents each element of BYTES follows its length, of 4 bytes, the
// lowest first.
absl::StatusOr<std::string_view> RawText(const std::string& name,
                                         std::string_view raw) {
  constexpr size_t kLengthBytes = 4;
  if (raw.size() < kLengthBytes) {
    return Invalid(name, absl::StrCat("raw contents of ", raw.size(),
                                      " bytes, a length has 4"));
  }
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint32_t{static_cast<uint8_t>(raw[i])} << (8 * i);
  }
  raw.remove_prefix(kLengthBytes);
  if (length != raw.size()) {
    return Invalid(name,
                   absl::StrCat("raw contents say an element of ", length,
                                " bytes and have ", raw.size(), " after that"));
  }
  return raw;
}

absl::StatusOr<bool> RawBool(const std::string& name, std::string_view raw) {
  if (raw.size() != 1) {
    return Invalid(name, absl::StrCat("raw contents of ", raw.size(),
                                      " bytes, a BOOL has 1"));
  }
  return raw[0] != 0;
}

// Of all kinds.
int NumElements(const InferTensorContents& contents) {
  return contents.bool_contents_size() + contents.int_contents_size() +
         contents.int64_contents_size() + contents.uint_contents_size() +
         contents.uint64_contents_size() + contents.fp32_contents_size() +
         contents.fp64_contents_size() + contents.bytes_contents_size();
}

absl::Status CheckTyped(const Input& input, const char* field,
                        int num_elements) {
  if (num_elements == 1 && NumElements(input.contents()) == 1) {
    return absl::OkStatus();
  }
  return Invalid(input.name(),
                 absl::StrCat("contents must be one element of ", field));
}

absl::StatusOr<std::string_view> TypedText(const Input& input) {
  const InferTensorContents& contents = input.contents();
  STRATA_RETURN_IF_ERROR(
      CheckTyped(input, "bytes_contents", contents.bytes_contents_size()));
  return contents.bytes_contents(0);
}

absl::StatusOr<bool> TypedBool(const Input& input) {
  const InferTensorContents& contents = input.contents();
  STRATA_RETURN_IF_ERROR(
      CheckTyped(input, "bool_contents", contents.bool_contents_size()));
  return contents.bool_contents(0);
}

// Clients that send both would not know which was read.
absl::Status CheckKindsOfContents(const inference::ModelInferRequest& message) {
  const int num_raw = message.raw_input_contents_size();
  if (num_raw == 0) return absl::OkStatus();
  if (num_raw != message.inputs_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("raw_input_contents has ", num_raw, " for ",
                     message.inputs_size(), " inputs"));
  }
  for (const Input& input : message.inputs()) {
    if (!input.has_contents()) continue;
    return Invalid(input.name(),
                   "contents are not allowed beside raw_input_contents");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InferInputs::Add(const inference::ModelInferRequest& message,
                              int index) {
  const Input& input = message.inputs(index);
  const std::string* raw = message.raw_input_contents_size() > 0
                               ? &message.raw_input_contents(index)
                               : nullptr;
  STRATA_RETURN_IF_ERROR(CheckTensor(input));
  bool is_new = false;
  if (input.datatype() == "BOOL") {
    STRATA_ASSIGN_OR_RETURN(const bool value, raw != nullptr
                                                  ? RawBool(input.name(), *raw)
                                                  : TypedBool(input));
    is_new = bools_.emplace(input.name(), value).second;
  } else {
    STRATA_ASSIGN_OR_RETURN(
        const std::string_view text,
        raw != nullptr ? RawText(input.name(), *raw) : TypedText(input));
    if (ValidUtf8Prefix(text) < text.size()) {
      return Invalid(input.name(), "not UTF-8");
    }
    is_new = texts_.emplace(input.name(), text).second;
  }
  return is_new ? absl::OkStatus() : Invalid(input.name(), "is there twice");
}

absl::StatusOr<InferInputs> InferInputs::Parse(
    const inference::ModelInferRequest& message) {
  STRATA_RETURN_IF_ERROR(CheckKindsOfContents(message));
  InferInputs inputs;
  for (int i = 0; i < message.inputs_size(); ++i) {
    STRATA_RETURN_IF_ERROR(inputs.Add(message, i));
  }
  for (const Tensor& tensor : kInputs) {
    if (!tensor.is_optional && !inputs.Text(tensor.name).has_value()) {
      return Invalid(tensor.name, "is missing");
    }
  }
  return inputs;
}

std::optional<std::string_view> InferInputs::Text(std::string_view name) const {
  const auto text = texts_.find(name);
  if (text == texts_.end()) return std::nullopt;
  return text->second;
}

std::optional<bool> InferInputs::Bool(std::string_view name) const {
  const auto value = bools_.find(name);
  if (value == bools_.end()) return std::nullopt;
  return value->second;
}

}  // namespace strata::kserve
