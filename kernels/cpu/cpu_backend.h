#ifndef KERNELS_CPU_CPU_BACKEND_H_
#define KERNELS_CPU_CPU_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kv_pages.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/sample.h"
#include "kernels/cpu/thread_team.h"
#include "kernels/cpu/weight_arena.h"
#include "kernels/parallel/host_collective.h"

namespace strata::cpu {

struct CpuOptions {
  int num_threads = 1;     // the calling thread included
  bool exact_f32 = false;  // --precision=f32: products and pages in f32
  Isa isa = DetectIsa();   // or one before it
  // Of a rank of a ParallelBackend, with its number; null: of none.
  std::shared_ptr<HostCollective> collective = nullptr;
  int rank = 0;
};

// Runs steps on the cores of this machine.  Operations wait in a queue; Submit
// lets every thread of a team run all of them, each its share.  Memory for
// intermediate results grows to the largest step and then stays.
class CpuBackend final : public Backend {
 public:
  // REQUIRES: options.num_threads > 0, this machine supports options.isa.
  explicit CpuBackend(const CpuOptions& options);

  std::string name() const override { return "cpu"; }
  std::string device() const override;
  std::string kv_format() const override;

  absl::StatusOr<int64_t> FreeBytes() const override;
  // Looks at view.data where it is there, see cpu::PackedBytes.
  absl::StatusOr<int64_t> PackedBytes(const WeightView& view) const override;
  absl::StatusOr<int64_t> TableBytes(const WeightView& table) const override {
    return table.NumBytes();  // is read where it lies in the file
  }
  std::unique_ptr<Matrix> Pack(const WeightView& view) override;
  float* NewFloats(int64_t count) override;
  float* NewFloats(const WeightView& view) override;

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override;
  int64_t PageBytes(const KvLayout& layout) const override;
  absl::Status CreateKvPages(const KvLayout& layout) override;

  void Embed(const EmbedArgs& args) override;
  void Qkv(const QkvArgs& args) override;
  void Attention(const AttentionArgs& args) override;
  void Linear(const LinearArgs& args) override;
  void GatedMlp(const GatedMlpArgs& args) override;
  void Gather(const GatherArgs& args) override;
  void Head(const HeadArgs& args) override;
  void Sample(const SampleArgs& args) override;
  void AllReduce(const AllReduceArgs& args) override;

  absl::Status Submit() override;
  absl::Status Wait() override { return absl::OkStatus(); }

 private:
  using Operation =
      std::variant<EmbedArgs, QkvArgs, AttentionArgs, LinearArgs, GatedMlpArgs,
                   GatherArgs, HeadArgs, SampleArgs, AllReduceArgs>;

  // One overload for each operation: this worker's share.
  void Run(const EmbedArgs& args, const Worker& worker);
  void Run(const QkvArgs& args, const Worker& worker);
  void Run(const AttentionArgs& args, const Worker& worker);
  void Run(const LinearArgs& args, const Worker& worker);
  void Run(const GatedMlpArgs& args, const Worker& worker);
  void Run(const GatherArgs& args, const Worker& worker);
  void Run(const HeadArgs& args, const Worker& worker);
  void Run(const SampleArgs& args, const Worker& worker);
  void Run(const AllReduceArgs& args, const Worker& worker);

  const Isa isa_;
  const KvType kv_type_;
  const std::shared_ptr<HostCollective> collective_;  // or null
  const int rank_;
  ThreadTeam team_;
  WeightArena weights_;
  Matmul matmul_;
  AttentionScratch attention_scratch_;
  SampleScratch sample_scratch_;
  std::unique_ptr<KvPages> pages_;     // null before CreateKvPages
  std::vector<AlignedBuffer> floats_;  // what NewFloats gave
  int64_t activation_bytes_ = 0;       // of them, those of NewFloats(count)
  AlignedBuffer k_;  // keys of one layer, before they are in pages
  AlignedBuffer v_;
  std::vector<Operation> queue_;
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_CPU_BACKEND_H_
