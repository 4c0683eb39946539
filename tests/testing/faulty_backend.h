#ifndef TESTS_TESTING_FAULTY_BACKEND_H_
#define TESTS_TESTING_FAULTY_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

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

// Another backend, with faults.  Owns it.
class FaultyBackend final : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> backend, Faults faults)
      : backend_(std::move(backend)), faults_(std::move(faults)) {}

  std::string name() const override { return backend_->name(); }
  std::string device() const override { return backend_->device(); }
  std::string kv_format() const override { return backend_->kv_format(); }

  absl::StatusOr<int64_t> FreeBytes() const override {
    if (faults_.free_bytes.has_value()) return *faults_.free_bytes;
    return backend_->FreeBytes();
  }
  absl::StatusOr<int64_t> PackedBytes(const WeightView& view) const override {
    return backend_->PackedBytes(view);
  }
  std::unique_ptr<Matrix> Pack(const WeightView& view) override {
    error_.Update(faults_.packing);
    return backend_->Pack(view);
  }
  float* NewFloats(int64_t count) override {
    return backend_->NewFloats(count);
  }
  float* NewFloats(const WeightView& view) override {
    return backend_->NewFloats(view);
  }

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override {
    is_step_ = false;
    const absl::StatusOr<int64_t> reserved = backend_->Reserve(layout);
    if (!faults_.reserving.ok()) return faults_.reserving;
    return reserved;
  }
  int64_t PageBytes(const KvLayout& layout) const override {
    return backend_->PageBytes(layout);
  }
  absl::Status CreateKvPages(const KvLayout& layout) override {
    const absl::Status status = backend_->CreateKvPages(layout);
    return faults_.creating_pages.ok() ? status : faults_.creating_pages;
  }

  void Embed(const EmbedArgs& args) override {
    is_step_ = true;
    backend_->Embed(args);
  }
  void Qkv(const QkvArgs& args) override { backend_->Qkv(args); }
  void Attention(const AttentionArgs& args) override {
    backend_->Attention(args);
  }
  void Linear(const LinearArgs& args) override { backend_->Linear(args); }
  void GatedMlp(const GatedMlpArgs& args) override { backend_->GatedMlp(args); }
  void Gather(const GatherArgs& args) override { backend_->Gather(args); }
  void Head(const HeadArgs& args) override { backend_->Head(args); }
  void Sample(const SampleArgs& args) override { backend_->Sample(args); }
  void AllReduce(const AllReduceArgs& args) override {
    backend_->AllReduce(args);
  }

  absl::Status Submit() override {
    if (is_step_ && faults_.on_step) {
      error_.Update(faults_.on_step(++num_steps_));
    }
    is_step_ = false;
    const absl::Status status = backend_->Submit();
    return error_.ok() ? status : error_;
  }
  absl::Status Wait() override {
    const absl::Status status = backend_->Wait();
    return error_.ok() ? status : error_;
  }
  int max_in_flight() const override { return backend_->max_in_flight(); }

 private:
  const std::unique_ptr<Backend> backend_;
  const Faults faults_;
  absl::Status error_;    // permanent
  bool is_step_ = false;  // one is queued
  int num_steps_ = 0;
};

}  // namespace strata

#endif  // TESTS_TESTING_FAULTY_BACKEND_H_
