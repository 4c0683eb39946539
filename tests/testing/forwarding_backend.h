#ifndef TESTS_TESTING_FORWARDING_BACKEND_H_
#define TESTS_TESTING_FORWARDING_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace strata {

// Another backend, which it owns: does what that does, but for what a subclass
// overrides.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> backend)
      : backend_(std::move(backend)) {}

  std::string name() const override { return backend_->name(); }
  std::string device() const override { return backend_->device(); }
  std::string kv_format() const override { return backend_->kv_format(); }

  absl::StatusOr<int64_t> FreeBytes() const override {
    return backend_->FreeBytes();
  }
  absl::StatusOr<int64_t> PackedBytes(const WeightView& view) const override {
    return backend_->PackedBytes(view);
  }
  absl::StatusOr<int64_t> TableBytes(const WeightView& table) const override {
    return backend_->TableBytes(table);
  }
  std::unique_ptr<Matrix> Pack(const WeightView& view) override {
    return backend_->Pack(view);
  }
  float* NewFloats(int64_t count) override {
    return backend_->NewFloats(count);
  }
  float* NewFloats(const WeightView& view) override {
    return backend_->NewFloats(view);
  }

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override {
    return backend_->Reserve(layout);
  }
  int64_t PageBytes(const KvLayout& layout) const override {
    return backend_->PageBytes(layout);
  }
  absl::Status CreateKvPages(const KvLayout& layout) override {
    return backend_->CreateKvPages(layout);
  }

  void Embed(const EmbedArgs& args) override { backend_->Embed(args); }
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

  absl::Status Submit() override { return backend_->Submit(); }
  absl::Status Wait() override { return backend_->Wait(); }
  int max_in_flight() const override { return backend_->max_in_flight(); }

 protected:
  Backend& backend() const { return *backend_; }

 private:
  const std::unique_ptr<Backend> backend_;
};

}  // namespace strata

#endif  // TESTS_TESTING_FORWARDING_BACKEND_H_
