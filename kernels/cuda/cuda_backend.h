#ifndef KERNELS_CUDA_CUDA_BACKEND_H_
#define KERNELS_CUDA_CUDA_BACKEND_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/backend.h"
#include "kernels/cuda/collective.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/gemm_library.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/step_results.h"
#include "kernels/cuda/step_upload.h"

namespace strata::cuda {

// What is kept otherwise than the model's files have it.
struct CudaOptions {
  bool fp8_weights = false;  // matrices of floats, but for the embedding
  bool fp8_kv = false;       // pages of KvFormat::kFp8
};

// Runs steps on one NVIDIA GPU.  Operations wait in a queue; Submit copies all
// that they read of the step to the device at once and launches them.  All goes
// through one stream, so that a step submitted while the one before still runs
// finds what that leaves: pages, the tokens that it samples, free scratch.
//
// A step that only decodes, of up to kMaxGraphRows rows, is captured as a CUDA
// graph the first time its number of rows comes up, rounded up to a bucket;
// from then on it is one launch.  Which strategies are mixed in it, which
// layers lead, where pages lie: all that is data, so the same graph serves
// every mix.
//
// Products, attention and the gated MLP hand bf16 to each other, in the memory
// of the floats that Backend speaks of; x and the logits are f32.  Rows of a
// step get the same bits in any company as long as the number of rows stays
// within one regime of kernels/cuda/ops.h.
class CudaBackend final : public strata::Backend {
 public:
  static constexpr int kMaxGraphRows = 64;

  // Opens a device, for the calling thread, which alone may call what follows.
  // UNAVAILABLE: there is no driver or no such device.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Create(
      int device = 0, const CudaOptions& options = {});
  ~CudaBackend() override;

  // From now on `library` multiplies what is launched at once: bf16 weights and
  // more than kMaxSmallRows rows, but for the gated MLP's.
  void UseLibrary(std::unique_ptr<GemmLibrary> library) {
    library_ = std::move(library);
  }

  // From now on this is a rank of a ParallelBackend.
  void UseCollective(std::unique_ptr<Collective> collective) {
    collective_ = std::move(collective);
  }

  std::string name() const override { return "cuda"; }
  std::string device() const override;
  std::string kv_format() const override {
    return options_.fp8_kv ? "fp8" : "bf16";
  }

  absl::StatusOr<int64_t> FreeBytes() const override;
  absl::StatusOr<int64_t> PackedBytes(const WeightView& view) const override;
  absl::StatusOr<int64_t> TableBytes(const WeightView& table) const override;
  std::unique_ptr<Matrix> Pack(const WeightView& view) override;
  float* NewFloats(int64_t count) override;
  float* NewFloats(const WeightView& view) override;

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override;
  int64_t PageBytes(const KvLayout& layout) const override;
  absl::Status CreateKvPages(const KvLayout& layout) override;

  void Embed(const strata::EmbedArgs& args) override { queue_.push_back(args); }
  void Qkv(const QkvArgs& args) override { queue_.push_back(args); }
  void Attention(const strata::AttentionArgs& args) override {
    queue_.push_back(args);
  }
  void Linear(const LinearArgs& args) override { queue_.push_back(args); }
  void GatedMlp(const GatedMlpArgs& args) override { queue_.push_back(args); }
  void Gather(const strata::GatherArgs& args) override {
    queue_.push_back(args);
  }
  void Head(const HeadArgs& args) override { queue_.push_back(args); }
  void Sample(const strata::SampleArgs& args) override {
    queue_.push_back(args);
  }
  void AllReduce(const AllReduceArgs& args) override {
    if (collective_ != nullptr) queue_.push_back(args);
  }

  absl::Status Submit() override;
  absl::Status Wait() override;
  int max_in_flight() const override { return StepResults::kMaxInFlight; }

  // Graphs captured so far.
  int num_graphs() const { return static_cast<int>(graphs_.size()); }

 private:
  using Operation =
      std::variant<strata::EmbedArgs, QkvArgs, strata::AttentionArgs,
                   LinearArgs, GatedMlpArgs, strata::GatherArgs, HeadArgs,
                   strata::SampleArgs, AllReduceArgs>;
  // What an operation launches.
  struct Launch {
    const char* operation;  // its name
    std::function<cudaError_t()> run;
  };

  // A Step as it lies in upload_; offsets for At.
  struct UploadedStep {
    const Step* step = nullptr;
    int rows = 0;  // padding included
    int64_t positions = 0;
    // -1 where several rows of a chunk go together
    int64_t decode_positions = 0;
    int64_t strategies = 0;
    int64_t tables = 0;
    int64_t strides = 0;
    int64_t slot_of = 0;
    int64_t tiles = 0;  // PrefillTile
    int num_tiles = 0;
    bool has_decoding = false;
  };

  CudaBackend(int device, const CudaOptions& options, cudaStream_t stream,
              int num_multiprocessors);

  KvFormat page_format() const {
    return options_.fp8_kv ? KvFormat::kFp8 : KvFormat::kBf16;
  }
  // Whether the queue is a step of single rows only.
  bool OnlyDecodes() const;
  // Rows of a launch for `rows` of the step.
  int Padded(int rows) const;

  // UNIMPLEMENTED: the kernels do not take such heads or such a vocabulary.
  absl::Status CheckQueue(const KvLayout& layout) const;
  void SetPageShape(const KvLayout& layout);
  void LowerQueue();
  // Each appends what it needs to upload_ and its launches to launches_.
  void Lower(const strata::EmbedArgs& args);
  void Lower(const QkvArgs& args);
  void Lower(const strata::AttentionArgs& args);
  void Lower(const LinearArgs& args);
  void Lower(const GatedMlpArgs& args);
  void Lower(const strata::GatherArgs& args);
  void Lower(const HeadArgs& args);
  void Lower(const strata::SampleArgs& args);
  void Lower(const AllReduceArgs& args);

  static constexpr int64_t kNothing = -1;  // in place of an offset
  void AddLaunch(std::function<cudaError_t()> run);
  // Of the first `num_matrices` of args.w.  row_ids and `any`: offsets of these
  // in upload_, or kNothing.
  void LowerProduct(ProductArgs args, int num_matrices, int64_t row_ids,
                    int64_t any);
  // For each row where in kv_in its K and V are, as RopeAppendArgs has it; and,
  // one more, whether any row leads.  is_apart: K and V are computed for the
  // rows that lead alone.  Returns the offset.
  int64_t UploadKvRows(const QkvArgs& args, int rows, bool is_apart);
  void LowerQkvProducts(const QkvArgs& args, int rows, bool is_apart,
                        int64_t any);
  bool IsForLibrary(const ProductArgs& args) const;
  // Returns false if the library does not take it.
  bool LibraryProduct(ProductArgs args, int num_matrices);
  int Upload(const Step& step);  // returns its index in steps_
  void UploadTables(const Step& step, UploadedStep* uploaded);
  // Returns the first element of the lists and the blocks from slot to slot.
  std::pair<int64_t, int> UploadPageTable(const Step& step,
                                          const StepChunk& chunk);
  DeviceSampleRow ToDevice(const SampleRow& row);
  DeviceStep ToDevice(const UploadedStep& step, bool decoding) const;
  DeviceMatrix ToDevice(const WeightView& view, WeightFormat format);
  std::byte* NewMemory(int64_t num_bytes);  // lives as long as the backend
  float* NewZeros(int64_t count);
  // Memory of a scratch buffer that grows with the largest user.
  void NeedScratch(DeviceBuffer* buffer, int64_t num_bytes);
  void NeedArrived(int64_t count);

  void Run();
  // Whether all ranks are to launch this step; *has_moved, whether one of them
  // has to capture its graphs anew: then all do.
  bool AllRanksGo(bool* has_moved);
  void LaunchAll();
  void LaunchGraph();
  cudaGraphExec_t CaptureGraph();  // null after an error
  void DropGraphs();
  // Keeps the first error, for Wait: in `what`, which may be an operation's
  // name.  Returns whether there was none, now and before.
  bool Latch(cudaError_t error, absl::string_view what);
  // The same, with false; no other rank waits for this one then.
  bool Fail(absl::Status error);

  const int device_;
  const CudaOptions options_;
  const cudaStream_t stream_;
  const int num_multiprocessors_;
  std::unique_ptr<GemmLibrary> library_;    // or null
  std::unique_ptr<Collective> collective_;  // null: it is no rank
  absl::Status error_;                      // the first one; permanent

  std::vector<DeviceBuffer> memory_;  // weights and floats
  int64_t activation_bytes_ = 0;      // of them, those of NewFloats(count)
  absl::flat_hash_map<const std::byte*, DeviceMatrix> tables_;  // of Embed
  DeviceBuffer slab_;
  DevicePages pages_;

  std::vector<Operation> queue_;

  // Of the step that is lowered.
  const char* operation_ = nullptr;  // the name of that which is
  StepUpload upload_;
  std::vector<Launch> launches_;
  std::vector<UploadedStep> steps_;
  absl::flat_hash_map<const int32_t*, std::pair<int64_t, int>>
      page_tables_;  // of a chunk: its list and stride
  bool only_decodes_ = false;
  bool scratch_has_moved_ = false;

  DeviceBuffer qkv_;      // [rows, (q_heads + 2 kv_heads) head_dim] f32
  DeviceBuffer q_;        // [rows, q_heads, head_dim] bf16, before a gather
  DeviceBuffer gate_up_;  // [rows, 2 hidden] f32, where these differ in format
  DeviceBuffer product_;  // of Product
  DeviceBuffer split_;    // of DecodeAttention: out, lse
  DeviceBuffer arrived_;  // of DecodeAttention, zeros
  DeviceBuffer sample_;   // of Sample
  StepResults results_;

  // By padded rows and the address of x, which changes places with another.
  absl::flat_hash_map<std::pair<int, const float*>, cudaGraphExec_t> graphs_;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_CUDA_BACKEND_H_
