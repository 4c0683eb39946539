#include "kernels/parallel/parallel_backend.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/parallel/weight_part.h"

namespace strata {
namespace {

// The parts of the ranks, as one.
class SplitMatrix final : public Matrix {
 public:
  SplitMatrix(const WeightView& view, int num_ranks)
      : split_(view.split),
        unit_(view.split_unit),
        rows_(view.rows),
        cols_(view.cols),
        parts_(num_ranks) {}

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  int64_t num_bytes() const override {
    int64_t sum = 0;
    for (const auto& part : parts_) sum += part->num_bytes();
    return sum;
  }
  void SetPart(int rank, std::unique_ptr<Matrix> part) {
    parts_[rank] = std::move(part);
  }

  Split split() const { return split_; }
  // The first row of the part of `rank`.
  int64_t FirstRow(int rank) const {
    return RangeOfRank(rows_, unit_, rank, static_cast<int>(parts_.size()))
        .begin;
  }
  const Matrix* part(int rank) const { return parts_[rank].get(); }

 private:
  const Split split_;
  const int unit_;
  const int64_t rows_;
  const int64_t cols_;
  std::vector<std::unique_ptr<Matrix>> parts_;  // by rank
};

// The backend packs no other matrices.
const SplitMatrix* Splits(const Matrix* w) {
  return static_cast<const SplitMatrix*>(w);
}

const Matrix* PartOf(const Matrix* w, int rank) {
  return Splits(w)->part(rank);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParallelBackend>> ParallelBackend::Create(
    int num_ranks, Memory memory, MakeRank make_rank) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<ParallelBackend> backend(
      new ParallelBackend(num_ranks, memory));
  STRATA_RETURN_IF_ERROR(backend->RunOnEach([&](int rank) -> absl::Status {
    STRATA_ASSIGN_OR_RETURN(backend->ranks_[rank], make_rank(rank));
    return absl::OkStatus();
  }));
  return backend;
}

ParallelBackend::~ParallelBackend() {
  threads_.Run([this](int rank) { ranks_[rank].reset(); });
}

std::string ParallelBackend::device() const {
  std::string devices = absl::StrCat(num_ranks(), " ranks");
  for (const auto& rank : ranks_) {
    absl::StrAppend(&devices, "; ", rank->device());
  }
  return devices;
}

absl::Status ParallelBackend::RunOnEach(
    absl::FunctionRef<absl::Status(int rank)> run) const {
  std::vector<absl::Status> statuses(num_ranks());
  threads_.Run([&](int rank) { statuses[rank] = run(rank); });
  for (const absl::Status& status : statuses) {
    STRATA_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ParallelBackend::CountOnEach(
    Count count) const {
  std::vector<int64_t> counts(num_ranks());
  STRATA_RETURN_IF_ERROR(RunOnEach([&](int rank) -> absl::Status {
    STRATA_ASSIGN_OR_RETURN(counts[rank], count(rank));
    return absl::OkStatus();
  }));
  return counts;
}

absl::StatusOr<int64_t> ParallelBackend::SumOfEach(Count count) const {
  STRATA_ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                          CountOnEach(count));
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

absl::StatusOr<int64_t> ParallelBackend::FreeBytes() const {
  STRATA_ASSIGN_OR_RETURN(
      const std::vector<int64_t> counts,
      CountOnEach([this](int rank) { return ranks_[rank]->FreeBytes(); }));
  const int64_t least = *std::min_element(counts.begin(), counts.end());
  return memory_ == Memory::kShared ? least : least * num_ranks();
}

absl::StatusOr<int64_t> ParallelBackend::PackedBytes(
    const WeightView& view) const {
  return SumOfEach([&](int rank) {
    return ranks_[rank]->PackedBytes(ShapeOfPart(view, rank, num_ranks()));
  });
}

absl::StatusOr<int64_t> ParallelBackend::TableBytes(
    const WeightView& table) const {
  return SumOfEach([&](int rank) { return ranks_[rank]->TableBytes(table); });
}

std::unique_ptr<Matrix> ParallelBackend::Pack(const WeightView& view) {
  auto matrix = std::make_unique<SplitMatrix>(view, num_ranks());
  threads_.Run([&](int rank) {
    const WeightPart part(view, rank, num_ranks());
    matrix->SetPart(rank, ranks_[rank]->Pack(part.view()));
  });
  return matrix;
}

float* ParallelBackend::NewOnEach(absl::FunctionRef<float*(int rank)> make) {
  std::vector<float*> floats(num_ranks());
  threads_.Run([&](int rank) { floats[rank] = make(rank); });
  float* const first = floats[0];
  floats_[first] = std::move(floats);
  return first;
}

float* ParallelBackend::NewFloats(int64_t count) {
  return NewOnEach([&](int rank) { return ranks_[rank]->NewFloats(count); });
}

float* ParallelBackend::NewFloats(const WeightView& view) {
  return NewOnEach([&](int rank) {
    return ranks_[rank]->NewFloats(WeightPart(view, rank, num_ranks()).view());
  });
}

float* ParallelBackend::Of(const float* floats, int rank) const {
  if (floats == nullptr) return nullptr;
  const auto found = floats_.find(floats);
  STRATA_CHECK(found != floats_.end());
  return found->second[rank];
}

KvLayout ParallelBackend::LayoutOfRank(KvLayout layout) const {
  STRATA_CHECK(layout.kv_heads % num_ranks() == 0);
  layout.kv_heads /= num_ranks();
  return layout;
}

absl::StatusOr<int64_t> ParallelBackend::Reserve(const KvLayout& layout) {
  const KvLayout of_rank = LayoutOfRank(layout);
  STRATA_ASSIGN_OR_RETURN(const int64_t num_bytes, SumOfEach([&](int rank) {
                            return ranks_[rank]->Reserve(of_rank);
                          }));
  sampled_again_.clear();
  return num_bytes;
}

int64_t ParallelBackend::PageBytes(const KvLayout& layout) const {
  return ranks_[0]->PageBytes(LayoutOfRank(layout)) * num_ranks();
}

absl::Status ParallelBackend::CreateKvPages(const KvLayout& layout) {
  const KvLayout of_rank = LayoutOfRank(layout);
  return RunOnEach(
      [&](int rank) { return ranks_[rank]->CreateKvPages(of_rank); });
}

void ParallelBackend::Embed(const EmbedArgs& args) {
  for (int r = 0; r < num_ranks(); ++r) {
    EmbedArgs of_rank = args;
    of_rank.x = Of(args.x, r);
    ranks_[r]->Embed(of_rank);
  }
}

void ParallelBackend::Qkv(const QkvArgs& args) {
  for (int r = 0; r < num_ranks(); ++r) {
    QkvArgs of_rank = args;
    of_rank.x = Of(args.x, r);
    of_rank.norm = Of(args.norm, r);
    of_rank.wq = PartOf(args.wq, r);
    of_rank.wk = PartOf(args.wk, r);
    of_rank.wv = PartOf(args.wv, r);
    of_rank.bq = Of(args.bq, r);
    of_rank.bk = Of(args.bk, r);
    of_rank.bv = Of(args.bv, r);
    of_rank.q_norm = Of(args.q_norm, r);
    of_rank.k_norm = Of(args.k_norm, r);
    of_rank.inv_freq = Of(args.inv_freq, r);
    of_rank.q = Of(args.q, r);
    ranks_[r]->Qkv(of_rank);
  }
}

void ParallelBackend::Attention(const AttentionArgs& args) {
  for (int r = 0; r < num_ranks(); ++r) {
    AttentionArgs of_rank = args;
    of_rank.q = Of(args.q, r);
    of_rank.out = Of(args.out, r);
    of_rank.q_heads = args.q_heads / num_ranks();
    ranks_[r]->Attention(of_rank);
  }
}

void ParallelBackend::Linear(const LinearArgs& args) {
  STRATA_CHECK(Splits(args.w)->split() == Split::kInputs);
  for (int r = 0; r < num_ranks(); ++r) {
    LinearArgs of_rank = args;
    of_rank.x = Of(args.x, r);
    of_rank.w = PartOf(args.w, r);
    of_rank.y = Of(args.y, r);
    // Bias and what y holds count once.
    of_rank.bias = r == 0 ? Of(args.bias, r) : nullptr;
    of_rank.accumulate = r == 0 && args.accumulate;
    ranks_[r]->Linear(of_rank);
    ranks_[r]->AllReduce(
        {.x = of_rank.y, .rows = args.rows, .cols = args.w->rows()});
  }
}

void ParallelBackend::GatedMlp(const GatedMlpArgs& args) {
  for (int r = 0; r < num_ranks(); ++r) {
    GatedMlpArgs of_rank = args;
    of_rank.x = Of(args.x, r);
    of_rank.norm = Of(args.norm, r);
    of_rank.gate = PartOf(args.gate, r);
    of_rank.up = PartOf(args.up, r);
    of_rank.y = Of(args.y, r);
    ranks_[r]->GatedMlp(of_rank);
  }
}

void ParallelBackend::Gather(const GatherArgs& args) {
  for (int r = 0; r < num_ranks(); ++r) {
    GatherArgs of_rank = args;
    of_rank.x = Of(args.x, r);
    of_rank.y = Of(args.y, r);
    ranks_[r]->Gather(of_rank);
  }
}

void ParallelBackend::Head(const HeadArgs& args) {
  STRATA_CHECK(Splits(args.w)->split() == Split::kOutputs);
  STRATA_CHECK(args.vocab == 0);
  const int64_t vocab = args.w->rows();
  for (int r = 0; r < num_ranks(); ++r) {
    HeadArgs of_rank = args;
    of_rank.x = Of(args.x, r);
    of_rank.norm = Of(args.norm, r);
    of_rank.w = PartOf(args.w, r);
    of_rank.logits = Of(args.logits, r);
    of_rank.vocab = static_cast<int>(vocab);
    of_rank.first_token = static_cast<int>(Splits(args.w)->FirstRow(r));
    ranks_[r]->Head(of_rank);
    // All other summands of a logit are 0: no rounding.
    ranks_[r]->AllReduce({.x = of_rank.logits,
                          .rows = static_cast<int>(args.row_ids.size()),
                          .cols = vocab});
  }
}

void ParallelBackend::Sample(const SampleArgs& args) {
  for (int r = 0; r < num_ranks(); ++r) {
    SampleArgs of_rank = args;
    of_rank.logits = Of(args.logits, r);
    if (r > 0) {
      of_rank.out = sampled_again_.emplace_back(args.rows.size()).data();
    }
    ranks_[r]->Sample(of_rank);
  }
}

absl::Status ParallelBackend::Submit() {
  in_flight_.push_back(std::exchange(sampled_again_, {}));
  return RunOnEach([this](int rank) { return ranks_[rank]->Submit(); });
}

absl::Status ParallelBackend::Wait() {
  // Ranks have errors of their own even where nothing is in flight.
  const absl::Status status =
      RunOnEach([this](int rank) { return ranks_[rank]->Wait(); });
  if (!in_flight_.empty()) in_flight_.pop_front();
  return status;
}

}  // namespace strata
