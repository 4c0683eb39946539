#ifndef KERNELS_PARALLEL_PARALLEL_BACKEND_H_
#define KERNELS_PARALLEL_PARALLEL_BACKEND_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/parallel/rank_threads.h"

namespace strata {

// Tensor parallel ("Megatron-LM", arXiv 1909.08053): several backends of one
// kind, the ranks, compute one model together.  Weights are split by
// WeightView::split, so that a rank has
//
//   some heads    rows of wq, wk, wv, columns of wo; their K and V
//   some neurons  rows of gate and up, columns of down
//   some tokens   rows of the head
//
// and all of the rest.  A product with columns gives each rank a summand, and
// AllReduce their sum: after it the ranks hold the same x, bit for bit, and
// after the head the same logits, so that all sample the same tokens.
//
// What NewFloats and Pack return stands for memory of every rank.  Owns the
// ranks; each is made, called where it may wait, and destroyed by a thread of
// its own.
class ParallelBackend final : public Backend {
 public:
  using MakeRank =
      absl::FunctionRef<absl::StatusOr<std::unique_ptr<Backend>>(int rank)>;

  enum class Memory : uint8_t {
    kOfEach,  // a device's own
    kShared,  // the same for all ranks
  };

  // Calls make_rank for each rank, on its thread, all at once.  They share a
  // collective, by which their AllReduce meets.  Returns the error of the first
  // rank that has one.  REQUIRES: num_ranks > 0.
  static absl::StatusOr<std::unique_ptr<ParallelBackend>> Create(
      int num_ranks, Memory memory, MakeRank make_rank);
  ~ParallelBackend() override;

  std::string name() const override { return ranks_[0]->name(); }
  std::string device() const override;
  std::string kv_format() const override { return ranks_[0]->kv_format(); }

  // What all ranks can allocate if each takes as much.
  absl::StatusOr<int64_t> FreeBytes() const override;

  // Of all ranks.  REQUIRES, as Pack: each rank has a unit of the view
  // (view.split_unit).
  absl::StatusOr<int64_t> PackedBytes(const WeightView& view) const override;
  absl::StatusOr<int64_t> TableBytes(const WeightView& table) const override;
  std::unique_ptr<Matrix> Pack(const WeightView& view) override;
  float* NewFloats(int64_t count) override;
  float* NewFloats(const WeightView& view) override;

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override;
  // Of all ranks together: each has the layout's heads by its share.
  // REQUIRES: layout.kv_heads is a multiple of the number of ranks.
  int64_t PageBytes(const KvLayout& layout) const override;
  absl::Status CreateKvPages(const KvLayout& layout) override;

  void Embed(const EmbedArgs& args) override;
  void Qkv(const QkvArgs& args) override;
  void Attention(const AttentionArgs& args) override;
  // REQUIRES: w is split by its inputs.
  void Linear(const LinearArgs& args) override;
  void GatedMlp(const GatedMlpArgs& args) override;
  void Gather(const GatherArgs& args) override;
  // REQUIRES: w is split by its outputs and has a row for each token.
  void Head(const HeadArgs& args) override;
  void Sample(const SampleArgs& args) override;
  void AllReduce(const AllReduceArgs&) override {}  // it is no rank

  absl::Status Submit() override;
  absl::Status Wait() override;
  int max_in_flight() const override { return ranks_[0]->max_in_flight(); }

 private:
  ParallelBackend(int num_ranks, Memory memory)
      : memory_(memory), threads_(num_ranks), ranks_(num_ranks) {}

  int num_ranks() const { return threads_.size(); }
  // Calls `run` with each rank on its thread; the error of the first rank that
  // has one.
  absl::Status RunOnEach(absl::FunctionRef<absl::Status(int rank)> run) const;
  // What `count` gives for each rank, on its thread.
  using Count = absl::FunctionRef<absl::StatusOr<int64_t>(int rank)>;
  absl::StatusOr<std::vector<int64_t>> CountOnEach(Count count) const;
  absl::StatusOr<int64_t> SumOfEach(Count count) const;
  // The same for memory that stands for that of all ranks.
  float* NewOnEach(absl::FunctionRef<float*(int rank)> make);
  KvLayout LayoutOfRank(KvLayout layout) const;

  // Memory of `rank` that `floats` stands for; null for null.
  float* Of(const float* floats, int rank) const;
  RmsNorm Of(const RmsNorm& norm, int rank) const {
    return {Of(norm.weight, rank), norm.eps};
  }

  const Memory memory_;
  mutable RankThreads threads_;
  std::vector<std::unique_ptr<Backend>> ranks_;
  // By the address of rank 0, which stands for all.
  absl::flat_hash_map<const float*, std::vector<float*>> floats_;
  // What ranks but the first sample, and nobody reads: of the queued step, and
  // of those between Submit and Wait.
  using SampledAgain = std::vector<std::vector<SampledToken>>;
  SampledAgain sampled_again_;
  std::deque<SampledAgain> in_flight_;
};

}  // namespace strata

#endif  // KERNELS_PARALLEL_PARALLEL_BACKEND_H_
