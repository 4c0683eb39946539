#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cpu/available_memory.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/embed.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/projections.h"
#include "kernels/cpu/rope_append.h"

namespace strata::cpu {

CpuBackend::CpuBackend(const CpuOptions& options)
    : isa_(options.isa),
      kv_type_(options.exact_f32 ? KvType::kF32 : KvType::kBF16),
      collective_(options.collective),
      rank_(options.rank),
      team_(options.num_threads),
      matmul_(options.isa, options.exact_f32, options.num_threads),
      attention_scratch_(options.num_threads, options.isa),
      sample_scratch_(options.num_threads, options.isa) {
  STRATA_CHECK(options.isa <= DetectIsa());
}

std::string CpuBackend::device() const {
  return absl::StrCat(IsaName(isa_), ", ", team_.size(), " threads");
}

std::string CpuBackend::kv_format() const {
  return kv_type_ == KvType::kF32 ? "f32" : "bf16";
}

absl::StatusOr<int64_t> CpuBackend::FreeBytes() const {
  return AvailableMemory();
}

absl::StatusOr<int64_t> CpuBackend::PackedBytes(const WeightView& view) const {
  return cpu::PackedBytes(view);
}

std::unique_ptr<Matrix> CpuBackend::Pack(const WeightView& view) {
  auto matrix = std::make_unique<PackedMatrix>(view, weights_);
  team_.Run([&](const Worker& worker) { matrix->Fill(view, worker); });
  return matrix;
}

float* CpuBackend::NewFloats(int64_t count) {
  AlignedBuffer& floats = floats_.emplace_back(count * sizeof(float));
  // Memory is only taken when it is first written.
  std::memset(floats.data(), 0, floats.size());
  activation_bytes_ += floats.size();
  return floats.floats();
}

float* CpuBackend::NewFloats(const WeightView& view) {
  float* floats =
      floats_.emplace_back(view.rows * view.cols * sizeof(float)).floats();
  for (int64_t row = 0; row < view.rows; ++row) {
    DequantizeRow(view, row, floats + row * view.cols);
  }
  return floats;
}

absl::StatusOr<int64_t> CpuBackend::Reserve(const KvLayout&) {
  queue_.clear();  // what is queued has reserved its memory
  return activation_bytes_ + matmul_.num_bytes() + k_.size() + v_.size();
}

int64_t CpuBackend::PageBytes(const KvLayout& layout) const {
  return KvPages::PageBytes(layout, kv_type_);
}

absl::Status CpuBackend::CreateKvPages(const KvLayout& layout) {
  STRATA_CHECK(pages_ == nullptr);
  STRATA_ASSIGN_OR_RETURN(pages_, KvPages::Create(layout, kv_type_));
  return absl::OkStatus();
}

void CpuBackend::Embed(const EmbedArgs& args) { queue_.emplace_back(args); }

void CpuBackend::Qkv(const QkvArgs& args) {
  matmul_.Reserve(
      static_cast<int>(std::max(args.q_rows.size(), args.kv_rows.size())),
      args.wq->cols());
  const int64_t kv_floats =
      static_cast<int64_t>(args.kv_rows.size()) * args.wk->rows();
  k_.Reserve(kv_floats * sizeof(float));
  v_.Reserve(kv_floats * sizeof(float));
  queue_.emplace_back(args);
}

void CpuBackend::Attention(const AttentionArgs& args) {
  queue_.emplace_back(args);
}

void CpuBackend::Linear(const LinearArgs& args) {
  matmul_.Reserve(args.rows, args.w->cols());
  queue_.emplace_back(args);
}

void CpuBackend::GatedMlp(const GatedMlpArgs& args) {
  matmul_.Reserve(args.rows, args.gate->cols());
  queue_.emplace_back(args);
}

void CpuBackend::Gather(const GatherArgs& args) { queue_.emplace_back(args); }

void CpuBackend::Head(const HeadArgs& args) {
  matmul_.Reserve(static_cast<int>(args.row_ids.size()), args.w->cols());
  queue_.emplace_back(args);
}

void CpuBackend::Sample(const SampleArgs& args) { queue_.emplace_back(args); }

void CpuBackend::AllReduce(const AllReduceArgs& args) {
  if (collective_ != nullptr) queue_.emplace_back(args);
}

absl::Status CpuBackend::Submit() {
  if (queue_.empty()) return absl::OkStatus();
  team_.Run([this](const Worker& worker) {
    for (const Operation& operation : queue_) {
      std::visit([&](const auto& args) { Run(args, worker); }, operation);
      worker.Sync();
    }
  });
  queue_.clear();
  return absl::OkStatus();
}

void CpuBackend::Run(const EmbedArgs& args, const Worker& worker) {
  cpu::Embed(args, worker);
}

void CpuBackend::Run(const QkvArgs& args, const Worker& worker) {
  ProjectQkv(args, matmul_, k_.floats(), v_.floats(), worker);
  worker.Sync();
  const KvLayout& layout = pages_->layout();
  RopeAppend(args, layout.head_dim, layout.kv_heads, k_.floats(), v_.floats(),
             *pages_, worker);
}

void CpuBackend::Run(const AttentionArgs& args, const Worker& worker) {
  cpu::Attention(args, *pages_, attention_scratch_, worker);
}

void CpuBackend::Run(const LinearArgs& args, const Worker& worker) {
  cpu::Linear(args, matmul_, worker);
}

void CpuBackend::Run(const GatedMlpArgs& args, const Worker& worker) {
  cpu::GatedMlp(args, matmul_, worker);
}

void CpuBackend::Run(const GatherArgs& args, const Worker& worker) {
  cpu::Gather(args, worker);
}

void CpuBackend::Run(const HeadArgs& args, const Worker& worker) {
  cpu::Head(args, matmul_, worker);
}

void CpuBackend::Run(const SampleArgs& args, const Worker& worker) {
  cpu::Sample(args, sample_scratch_, worker);
}

void CpuBackend::Run(const AllReduceArgs& args, const Worker& worker) {
  if (worker.id == 0) {
    collective_->AllReduce(rank_, args.x, args.rows * args.cols);
  }
}

}  // namespace strata::cpu
