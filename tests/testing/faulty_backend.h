#ifndef TESTS_TESTING_FAULTY_BACKEND_H_
#define TESTS_TESTING_FAULTY_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "tests/testing/forwarding_backend.h"

namespace strata {

// What a FaultyBackend does otherwise than the backend that it covers.
struct Faults {
  // Called before each step with its number, from 1, the engine's warm-up;
  // an error is that step's and of all after it.
  std::function<absl::Status(int)> on_step = nullptr;
  std::optional<int64_t> free_bytes = {};  // of every FreeBytes
  // What these give after they have been called.
  absl::Status packing = {};  // shows in Wait
  absl::Status reserving = {};
  absl::Status creating_pages = {};
};

// Another backend, with faults.
class FaultyBackend final : public ForwardingBackend {
 public:
  FaultyBackend(std::unique_ptr<Backend> backend, Faults faults)
      : ForwardingBackend(std::move(backend)), faults_(std::move(faults)) {}

  absl::StatusOr<int64_t> FreeBytes() const override {
    if (faults_.free_bytes.has_value()) return *faults_.free_bytes;
    return ForwardingBackend::FreeBytes();
  }
  std::unique_ptr<Matrix> Pack(const WeightView& view) override {
    error_.Update(faults_.packing);
    return ForwardingBackend::Pack(view);
  }

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override {
    is_step_ = false;
    const absl::StatusOr<int64_t> reserved = ForwardingBackend::Reserve(layout);
    if (!faults_.reserving.ok()) return faults_.reserving;
    return reserved;
  }
  absl::Status CreateKvPages(const KvLayout& layout) override {
    const absl::Status status = ForwardingBackend::CreateKvPages(layout);
    return faults_.creating_pages.ok() ? status : faults_.creating_pages;
  }

  void Embed(const EmbedArgs& args) override {
    is_step_ = true;
    ForwardingBackend::Embed(args);
  }

  absl::Status Submit() override {
    if (is_step_ && faults_.on_step) {
      error_.Update(faults_.on_step(++num_steps_));
    }
    is_step_ = false;
    const absl::Status status = ForwardingBackend::Submit();
    return error_.ok() ? status : error_;
  }
  absl::Status Wait() override {
    const absl::Status status = ForwardingBackend::Wait();
    return error_.ok() ? status : error_;
  }

 private:
  const Faults faults_;
  absl::Status error_;    // permanent
  bool is_step_ = false;  // one is queued
  int num_steps_ = 0;
};

}  // namespace strata

#endif  // TESTS_TESTING_FAULTY_BACKEND_H_
