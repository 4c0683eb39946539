#include "kernels/cuda/cuda_backend.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/packed_matrix.h"
#include "kernels/cuda/row_plan.h"

namespace strata::cuda {
namespace {

// Rows that steps which only decode are rounded up to: a graph for each.
constexpr int kBuckets[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64};

// By index of CudaBackend::Operation.
constexpr const char* kOperations[] = {"Embed",  "Qkv",      "Attention",
                                       "Linear", "GatedMlp", "Gather",
                                       "Head",   "Sample",   "AllReduce"};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Create(
    int device, const CudaOptions& options) {
  int num_devices = 0;
  cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    return absl::UnavailableError(absl::StrCat(
        "no CUDA device: ",
        error != cudaSuccess ? cudaGetErrorString(error) : "none is visible"));
  }
  cudaStream_t stream = nullptr;
  int num_multiprocessors = 0;
  error = cudaSetDevice(device);
  if (error == cudaSuccess) {
    error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&num_multiprocessors,
                                   cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) {
    return absl::UnavailableError(
        absl::StrCat("CUDA device ", device, ": ", cudaGetErrorString(error)));
  }
  return std::unique_ptr<CudaBackend>(
      new CudaBackend(device, options, stream, num_multiprocessors));
}

CudaBackend::CudaBackend(int device, const CudaOptions& options,
                         cudaStream_t stream, int num_multiprocessors)
    : device_(device),
      options_(options),
      stream_(stream),
      num_multiprocessors_(num_multiprocessors) {}

CudaBackend::~CudaBackend() {
  cudaStreamSynchronize(stream_);
  DropGraphs();
  cudaStreamDestroy(stream_);
}

std::string CudaBackend::device() const {
  return absl::StrCat("CUDA device ", device_, ", ", num_multiprocessors_,
                      " multiprocessors");
}

std::unique_ptr<Matrix> CudaBackend::Pack(const WeightView& view) {
  STRATA_CHECK(view.cols % 16 == 0);
  return std::make_unique<PackedMatrix>(
      ToDevice(view, FormatOf(view.type, options_.fp8_weights)));
}

DeviceMatrix CudaBackend::ToDevice(const WeightView& view,
                                   WeightFormat format) {
  constexpr int64_t kPieceBytes = int64_t{16} << 20;
  const int64_t row_bytes = RowBytes(format, view.cols);
  const int64_t scale_bytes = RowScaleBytes(format, view.cols);
  std::byte* const data = NewMemory(view.rows * row_bytes);
  std::byte* const scales =
      scale_bytes > 0 ? NewMemory(view.rows * scale_bytes) : nullptr;
  const int64_t piece_rows =
      std::clamp<int64_t>(kPieceBytes / row_bytes, 1, view.rows);
  std::vector<std::byte> piece(piece_rows * row_bytes);
  std::vector<std::byte> piece_scales(piece_rows * scale_bytes);
  for (int64_t row = 0; row < view.rows && error_.ok(); row += piece_rows) {
    const int64_t count = std::min(piece_rows, view.rows - row);
    PackRows(view, format, row, count, piece.data(), piece_scales.data());
    Latch(cudaMemcpy(data + row * row_bytes, piece.data(), count * row_bytes,
                     cudaMemcpyHostToDevice),
          "copying weights");
    if (scales == nullptr) continue;
    Latch(cudaMemcpy(scales + row * scale_bytes, piece_scales.data(),
                     count * scale_bytes, cudaMemcpyHostToDevice),
          "copying weights");
  }
  const bool is_fp8 = format == WeightFormat::kFp8;
  return {.format = format,
          .data = data,
          .block_scales = is_fp8 ? nullptr : reinterpret_cast<F16*>(scales),
          .row_scales = is_fp8 ? reinterpret_cast<float*>(scales) : nullptr,
          .rows = static_cast<int>(view.rows),
          .cols = static_cast<int>(view.cols)};
}

std::byte* CudaBackend::NewMemory(int64_t num_bytes) {
  memory_.emplace_back(num_bytes);
  Latch(memory_.back().error(), absl::StrCat(num_bytes, " bytes of memory"));
  return memory_.back().data();
}

float* CudaBackend::NewFloats(int64_t count) {
  float* floats = NewZeros(count);
  activation_bytes_ += memory_.back().num_bytes();
  return floats;
}

float* CudaBackend::NewZeros(int64_t count) {
  // Half more, for the rows that a step is padded with: no bucket is more than
  // 1.5 times the rows that go into it.
  const int64_t num_bytes =
      (count + count / 2 + 4) * static_cast<int64_t>(sizeof(float));
  std::byte* const floats = NewMemory(num_bytes);
  if (error_.ok()) Latch(cudaMemset(floats, 0, num_bytes), "clearing memory");
  return reinterpret_cast<float*>(floats);
}

float* CudaBackend::NewFloats(const WeightView& view) {
  std::vector<float> floats(view.rows * view.cols);
  for (int64_t row = 0; row < view.rows; ++row) {
    cpu::DequantizeRow(view, row, floats.data() + row * view.cols);
  }
  float* device = NewZeros(static_cast<int64_t>(floats.size()));
  if (error_.ok()) {
    Latch(cudaMemcpy(device, floats.data(), floats.size() * sizeof(float),
                     cudaMemcpyHostToDevice),
          "copying weights");
  }
  return device;
}

int64_t CudaBackend::PageBytes(const KvLayout& layout) const {
  return KvPageBytes(page_format(), layout.kv_heads, layout.page_tokens,
                     layout.head_dim);
}

absl::Status CudaBackend::CreateKvPages(const KvLayout& layout) {
  STRATA_CHECK(slab_.data() == nullptr);
  // The page tables of a step, as long as no page is in two of them.
  const int64_t table_bytes = layout.num_pages * int64_t{sizeof(int32_t)};
  Latch(upload_.Reserve(table_bytes), "memory for page tables");
  const int64_t num_bytes = layout.num_pages * PageBytes(layout);
  slab_.Grow(num_bytes);
  Latch(slab_.error(), absl::StrCat(num_bytes, " bytes of KV cache"));
  SetPageShape(layout);
  pages_.data = slab_.data();
  return error_;
}

absl::Status CudaBackend::Submit() {
  if (error_.ok() && !queue_.empty()) {
    LowerQueue();
    if (error_.ok()) Run();
  }
  queue_.clear();
  return error_;
}

absl::Status CudaBackend::Wait() {
  if (error_.ok()) Latch(results_.Wait(), "running a step");
  return error_;
}

void CudaBackend::LowerQueue() {
  upload_.Clear();
  launches_.clear();
  steps_.clear();
  page_tables_.clear();
  results_.Begin();
  scratch_has_moved_ = false;
  only_decodes_ = OnlyDecodes();
  for (const Operation& operation : queue_) {
    operation_ = kOperations[operation.index()];
    std::visit([this](const auto& args) { Lower(args); }, operation);
  }
  Latch(results_.Allocate(stream_, &scratch_has_moved_), "memory for tokens");
}

void CudaBackend::Run() {
  if (!Latch(upload_.Copy(stream_), "copying a step to the device")) return;
  bool has_moved = upload_.has_moved() || scratch_has_moved_;
  if (!AllRanksGo(&has_moved)) return;
  // What was captured knows the old addresses.
  if (has_moved) DropGraphs();
  if (only_decodes_) {
    LaunchGraph();
  } else {
    LaunchAll();
  }
  if (error_.ok()) {
    Latch(results_.Fetch(stream_), "copying tokens to the host");
  }
}

// Ranks allocate before one of them launches: a kernel that waits for another
// GPU's could keep that from allocating, and so from its own.
bool CudaBackend::AllRanksGo(bool* has_moved) {
  if (collective_ == nullptr) return true;
  constexpr uint32_t kHasMoved = 1;
  const uint32_t flags = collective_->Meet(*has_moved ? kHasMoved : 0);
  *has_moved = (flags & kHasMoved) != 0;
  return flags <= kHasMoved || Fail(absl::InternalError("another GPU failed"));
}

void CudaBackend::LaunchAll() {
  for (const Launch& launch : launches_) {
    if (!Latch(launch.run(), launch.operation)) return;
  }
}

void CudaBackend::LaunchGraph() {
  const auto& embed = std::get<strata::EmbedArgs>(queue_.front());
  const auto key = std::pair(Padded(static_cast<int>(embed.tokens.size())),
                             static_cast<const float*>(embed.x));
  auto found = graphs_.find(key);
  if (found == graphs_.end()) {
    const cudaGraphExec_t graph = CaptureGraph();
    if (graph == nullptr) return;
    found = graphs_.emplace(key, graph).first;
  }
  Latch(cudaGraphLaunch(found->second, stream_), "launching a step's graph");
}

cudaGraphExec_t CudaBackend::CaptureGraph() {
  constexpr absl::string_view kWhat = "capturing a step";
  if (!Latch(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
             kWhat)) {
    return nullptr;
  }
  LaunchAll();
  cudaGraph_t graph = nullptr;
  Latch(cudaStreamEndCapture(stream_, &graph), kWhat);
  cudaGraphExec_t executable = nullptr;
  if (error_.ok()) Latch(cudaGraphInstantiate(&executable, graph, 0), kWhat);
  if (graph != nullptr) cudaGraphDestroy(graph);
  return executable;
}

void CudaBackend::DropGraphs() {
  for (const auto& [key, graph] : graphs_) cudaGraphExecDestroy(graph);
  graphs_.clear();
}

bool CudaBackend::Latch(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return error_.ok();
  return Fail(absl::Status(
      error == cudaErrorMemoryAllocation ? absl::StatusCode::kResourceExhausted
                                         : absl::StatusCode::kInternal,
      absl::StrCat("CUDA, ", what, ": ", cudaGetErrorString(error))));
}

bool CudaBackend::Fail(absl::Status error) {
  if (!error_.ok()) return false;
  error_ = std::move(error);
  if (collective_ != nullptr) collective_->Abort();
  return false;
}

bool CudaBackend::OnlyDecodes() const {
  const Step* step = nullptr;
  for (const Operation& operation : queue_) {
    if (std::holds_alternative<strata::GatherArgs>(operation)) return false;
    if (const auto* qkv = std::get_if<QkvArgs>(&operation)) {
      if (step != nullptr && step != qkv->step) return false;
      step = qkv->step;
      if (!IsIdentity(qkv->q_rows, step->rows())) return false;
    } else if (const auto* head = std::get_if<HeadArgs>(&operation)) {
      if (step == nullptr || !IsIdentity(head->row_ids, step->rows())) {
        return false;
      }
    }
  }
  return step != nullptr && step->rows() <= kMaxGraphRows &&
         static_cast<int>(step->chunks.size()) == step->rows() &&
         std::holds_alternative<strata::EmbedArgs>(queue_.front()) &&
         std::holds_alternative<strata::SampleArgs>(queue_.back());
}

int CudaBackend::Padded(int rows) const {
  if (!only_decodes_) return rows;
  return *std::lower_bound(std::begin(kBuckets), std::end(kBuckets), rows);
}

}  // namespace strata::cuda
