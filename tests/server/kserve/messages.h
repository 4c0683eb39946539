#ifndef TESTS_SERVER_KSERVE_MESSAGES_H_
#define TESTS_SERVER_KSERVE_MESSAGES_H_

#include <cstdint>
#include <string>

#include "server/kserve/proto/grpc_service.pb.h"

namespace strata::kserve {

// An element of BYTES in raw contents.
inline std::string Framed(const std::string& text) {
  std::string raw;
  for (int shift = 0; shift < 32; shift += 8) {
    raw.push_back(static_cast<char>(text.size() >> shift));
  }
  return raw + text;
}

inline inference::ModelInferRequest::InferInputTensor* AddInput(
    const std::string& name, const std::string& datatype,
    inference::ModelInferRequest* message) {
  auto* input = message->add_inputs();
  input->set_name(name);
  input->set_datatype(datatype);
  input->add_shape(1);
  return input;
}

inline void AddRaw(const std::string& name, const std::string& datatype,
                   const std::string& raw,
                   inference::ModelInferRequest* message) {
  AddInput(name, datatype, message);
  message->add_raw_input_contents(raw);
}

inline void AddTyped(const std::string& name, const char* text,
                     inference::ModelInferRequest* message) {
  AddInput(name, "BYTES", message)
      ->mutable_contents()
      ->add_bytes_contents(text);
}

inline void AddTyped(const std::string& name, bool value,
                     inference::ModelInferRequest* message) {
  AddInput(name, "BOOL", message)->mutable_contents()->add_bool_contents(value);
}

inline inference::ModelInferRequest TextMessage(const std::string& text) {
  inference::ModelInferRequest message;
  AddRaw("text_input", "BYTES", Framed(text), &message);
  return message;
}

}  // namespace strata::kserve

#endif  // TESTS_SERVER_KSERVE_MESSAGES_H_
