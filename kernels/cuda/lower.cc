// The part of CudaBackend that turns queued operations into launches, and what
// these read of the step into lists for the device.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/packed_matrix.h"
#include "kernels/cuda/row_plan.h"

namespace strata::cuda {
namespace {

template <typename T>
std::span<const T> Of(const std::vector<T>& v) {
  return v;
}

}  // namespace

void CudaBackend::AddLaunch(std::function<cudaError_t()> run) {
  launches_.push_back({.operation = operation_, .run = std::move(run)});
}

void CudaBackend::NeedScratch(DeviceBuffer* buffer, int64_t num_bytes) {
  if (num_bytes <= buffer->num_bytes()) return;
  // The step before may still use it.
  Latch(cudaStreamSynchronize(stream_), "running a step");
  scratch_has_moved_ |= buffer->Grow(num_bytes);
  if (buffer->error() == cudaSuccess) return;
  Latch(buffer->error(),
        absl::StrCat(num_bytes, " bytes for intermediate results"));
}

void CudaBackend::Lower(const strata::EmbedArgs& args) {
  auto [it, is_new] = tables_.try_emplace(args.table.data);
  // A step reads few of its rows, so that fewer bytes would gain nothing.
  if (is_new) {
    it->second =
        ToDevice(args.table, FormatOf(args.table.type, /*fp8_weights=*/false));
  }
  const DeviceMatrix table = it->second;
  const int rows = Padded(static_cast<int>(args.tokens.size()));
  const int64_t tokens = upload_.Append(args.tokens, rows, -1);
  const int64_t sampled = upload_.Append(args.sampled, rows, -1);
  AddLaunch([=, this, x = args.x] {
    return cuda::Embed({.table = table,
                        .tokens = upload_.At<int32_t>(tokens),
                        .sampled = upload_.At<int32_t>(sampled),
                        .results = results_.device(),
                        .rows = rows,
                        .x = x},
                       stream_);
  });
}

void CudaBackend::LowerProduct(ProductArgs args, int num_matrices,
                               int64_t row_ids, int64_t any) {
  NeedScratch(&product_, ProductScratchBytes(args));
  const bool is_for_library = IsForLibrary(args);
  AddLaunch([=, this]() mutable {
    if (row_ids != kNothing) args.row_ids = upload_.At<int32_t>(row_ids);
    if (any != kNothing) args.any = upload_.At<int32_t>(any);
    args.scratch = product_.data();
    if (is_for_library && LibraryProduct(args, num_matrices)) {
      return cudaSuccess;
    }
    return cuda::Product(args, stream_);
  });
}

bool CudaBackend::IsForLibrary(const ProductArgs& args) const {
  if (library_ == nullptr || only_decodes_ || args.rows <= kMaxSmallRows) {
    return false;
  }
  return args.then != ProductArgs::Then::kSwiGlu &&
         std::all_of(std::begin(args.w), std::end(args.w),
                     [](const DeviceMatrix& w) {
                       return w.rows == 0 || w.format == WeightFormat::kBf16;
                     });
}

bool CudaBackend::LibraryProduct(ProductArgs args, int num_matrices) {
  return cuda::NormInput(&args, stream_) == cudaSuccess &&
         library_->Product(args, num_matrices, stream_);
}

void CudaBackend::Lower(const strata::AttentionArgs& args) {
  const int step_index = Upload(*args.step);
  const UploadedStep& step = steps_[step_index];
  AttentionArgs attention = {.q = reinterpret_cast<const Bf16*>(args.q),
                             .step = {},
                             .pages = pages_,
                             .layer = args.layer,
                             .q_heads = args.q_heads,
                             .scale = args.scale,
                             .out = reinterpret_cast<Bf16*>(args.out)};
  if (step.has_decoding) {
    const int splits =
        MaxSplits(step.rows, pages_.kv_heads, num_multiprocessors_);
    const int64_t partials = int64_t{step.rows} * args.q_heads * splits;
    const int64_t out_bytes =
        partials * pages_.head_dim * int64_t{sizeof(float)};
    NeedScratch(&split_, out_bytes + partials * int64_t{sizeof(float)});
    NeedArrived(int64_t{step.rows} * pages_.kv_heads);
    AddLaunch([=, this]() mutable {
      attention.step = ToDevice(steps_[step_index], /*decoding=*/true);
      return cuda::DecodeAttention(
          attention,
          {.out = reinterpret_cast<float*>(split_.data()),
           .lse = reinterpret_cast<float*>(split_.data() + out_bytes),
           .arrived = reinterpret_cast<uint32_t*>(arrived_.data()),
           .max_splits = splits},
          stream_);
    });
  }
  // After the other, which leaves zeros in the rows that are not its own.
  if (step.num_tiles == 0) return;
  AddLaunch(
      [=, this, num_tiles = step.num_tiles, tiles = step.tiles]() mutable {
        attention.step = ToDevice(steps_[step_index], /*decoding=*/false);
        return cuda::PrefillAttention(attention, upload_.At<PrefillTile>(tiles),
                                      num_tiles, stream_);
      });
}

// The blocks that arrive at a merge leave the counters at zero.
void CudaBackend::NeedArrived(int64_t count) {
  const int64_t num_bytes = count * static_cast<int64_t>(sizeof(uint32_t));
  if (num_bytes <= arrived_.num_bytes()) return;
  NeedScratch(&arrived_, num_bytes);
  Latch(cudaMemsetAsync(arrived_.data(), 0, num_bytes, stream_),
        "clearing memory");
}

void CudaBackend::Lower(const LinearArgs& args) {
  ProductArgs product = {.x = reinterpret_cast<const Bf16*>(args.x),
                         .rows = Padded(args.rows)};
  product.w[0] = PackedMatrix::Of(args.w);
  product.bias[0] = args.bias;
  product.then =
      args.accumulate ? ProductArgs::Then::kAdd : ProductArgs::Then::kStore;
  product.y = args.y;
  LowerProduct(product, 1, kNothing, kNothing);
}

void CudaBackend::Lower(const GatedMlpArgs& args) {
  ProductArgs product = {.u = args.x,
                         .norm = args.norm.weight,
                         .eps = args.norm.eps,
                         .rows = Padded(args.rows)};
  product.w[0] = PackedMatrix::Of(args.gate);
  product.w[1] = PackedMatrix::Of(args.up);
  auto* const z = reinterpret_cast<Bf16*>(args.y);
  if (product.w[0].format == product.w[1].format) {
    product.then = ProductArgs::Then::kSwiGlu;
    product.z = z;
    LowerProduct(product, 2, kNothing, kNothing);
    return;
  }
  // An adapter of one of them has left the other in four bits.
  const int rows = product.rows, cols = product.w[0].rows;
  NeedScratch(&gate_up_, int64_t{rows} * 2 * cols * int64_t{sizeof(float)});
  product.y = reinterpret_cast<float*>(gate_up_.data());
  LowerProduct(product, 2, kNothing, kNothing);
  AddLaunch([=, this, y = product.y] {
    return cuda::SwiGlu({.y = y, .rows = rows, .cols = cols, .z = z}, stream_);
  });
}

void CudaBackend::Lower(const strata::GatherArgs& args) {
  const int rows = static_cast<int>(args.row_ids.size());
  const int64_t row_ids = upload_.Append(args.row_ids, rows);
  AddLaunch([=, this] {
    return cuda::Gather({.x = args.x,
                         .row_ids = upload_.At<int32_t>(row_ids),
                         .rows = rows,
                         .dim = args.dim,
                         .y = args.y},
                        stream_);
  });
}

void CudaBackend::Lower(const HeadArgs& args) {
  const int rows = Padded(static_cast<int>(args.row_ids.size()));
  ProductArgs product = {.u = args.x,
                         .norm = args.norm.weight,
                         .eps = args.norm.eps,
                         .rows = rows};
  product.w[0] = PackedMatrix::Of(args.w);
  product.y = args.logits + args.first_token;
  const int tokens = product.w[0].rows;
  if (args.vocab > tokens) {
    product.y_stride = args.vocab;
    const ClearArgs others = {.y = args.logits,
                              .rows = rows,
                              .cols = args.vocab,
                              .begin = args.first_token,
                              .end = args.first_token + tokens};
    AddLaunch([=, this] { return cuda::Clear(others, stream_); });
  }
  LowerProduct(product, 1, upload_.Append(args.row_ids, rows, -1), kNothing);
}

void CudaBackend::Lower(const strata::SampleArgs& args) {
  const int num_rows = static_cast<int>(args.rows.size());
  const int rows = Padded(num_rows);
  std::vector<DeviceSampleRow> samples;
  for (const SampleRow& row : args.rows) samples.push_back(ToDevice(row));
  // Padding takes the least work.
  DeviceSampleRow padding = {};
  padding.top_p = padding.repetition_penalty = 1.0f;
  padding.forced_token = 0;
  const int64_t samples_at = upload_.Append(Of(samples), rows, padding);
  NeedScratch(&sample_, SampleScratchBytes(rows, args.vocab));
  const int64_t first = results_.Append(rows, num_rows, args.out);
  AddLaunch([=, this, logits = args.logits, vocab = args.vocab] {
    return cuda::Sample({.logits = logits,
                         .vocab = vocab,
                         .rows = rows,
                         .samples = upload_.At<DeviceSampleRow>(samples_at),
                         .history = upload_.Lists<DeviceTokenCount>(),
                         .bias = upload_.Lists<DeviceTokenBias>(),
                         .tokens = upload_.Lists<int32_t>(),
                         .out = results_.device() + first,
                         .scratch = sample_.data()},
                        stream_);
  });
}

void CudaBackend::Lower(const AllReduceArgs& args) {
  AddLaunch([this, x = args.x, count = Padded(args.rows) * args.cols] {
    const absl::Status status = collective_->AllReduce(x, count, stream_);
    if (status.ok()) return cudaSuccess;
    Fail(status);
    return cudaErrorLaunchFailure;
  });
}

DeviceSampleRow CudaBackend::ToDevice(const SampleRow& row) {
  return {.temperature = row.temperature,
          .top_p = row.top_p,
          .min_p = row.min_p,
          .top_k = row.top_k,
          .repetition_penalty = row.repetition_penalty,
          .presence_penalty = row.presence_penalty,
          .frequency_penalty = row.frequency_penalty,
          .seed = row.seed,
          .index = row.index,
          .position = row.position,
          .history = upload_.AppendList(row.history),
          .bias = upload_.AppendList(row.bias),
          .banned = upload_.AppendList(row.banned),
          .allowed = upload_.AppendList(row.allowed),
          .num_history = static_cast<int32_t>(row.history.size()),
          .num_bias = static_cast<int32_t>(row.bias.size()),
          .num_banned = static_cast<int32_t>(row.banned.size()),
          .num_allowed = static_cast<int32_t>(row.allowed.size()),
          .forced_token = row.forced_token,
          .wants_logprobs = row.wants_logprobs ? 1 : 0,
          .num_top = row.num_top};
}

int CudaBackend::Upload(const Step& step) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].step == &step) return static_cast<int>(i);
  }
  UploadedStep uploaded = {.step = &step, .rows = Padded(step.rows())};
  UploadTables(step, &uploaded);
  std::vector<int32_t> decoding(step.positions.begin(), step.positions.end());
  std::vector<PrefillTile> tiles;
  for (const StepChunk& chunk : step.chunks) {
    if (chunk.num_rows == 1) {
      uploaded.has_decoding = true;
      continue;
    }
    for (int i = 0; i < chunk.num_rows; i += kPrefillTileRows) {
      tiles.push_back(
          {.first_row = chunk.first_row + i,
           .num_rows = std::min(kPrefillTileRows, chunk.num_rows - i)});
    }
    std::fill_n(decoding.begin() + chunk.first_row, chunk.num_rows, -1);
  }
  uploaded.positions = upload_.Append(step.positions, uploaded.rows, -1);
  uploaded.decode_positions = upload_.Append(Of(decoding), uploaded.rows, -1);
  uploaded.num_tiles = static_cast<int>(tiles.size());
  uploaded.tiles = upload_.Append(Of(tiles), uploaded.num_tiles);
  steps_.push_back(uploaded);
  return static_cast<int>(steps_.size()) - 1;
}

void CudaBackend::UploadTables(const Step& step, UploadedStep* uploaded) {
  const int layers = step.num_layers;
  std::vector<int32_t> strategies, strides;
  std::vector<int64_t> tables;
  int num_strategies = 0;
  for (const StepChunk& chunk : step.chunks) {
    num_strategies = std::max(num_strategies, chunk.strategy + 1);
    const auto [list, stride] = UploadPageTable(step, chunk);
    for (int i = 0; i < chunk.num_rows; ++i) {
      strategies.push_back(chunk.strategy);
      tables.push_back(list);
      strides.push_back(stride);
    }
  }
  const int rows = uploaded->rows;
  uploaded->strategies = upload_.Append(Of(strategies), rows, 0);
  uploaded->tables = upload_.Append(Of(tables), rows, int64_t{0});
  uploaded->strides = upload_.Append(Of(strides), rows, 0);
  // As many as there could be, where addresses must not depend on the mix.
  const int64_t slots = int64_t{num_strategies} * layers;
  uploaded->slot_of =
      upload_.Append(std::span<const int32_t>(step.slot_of, slots),
                     only_decodes_ ? int64_t{rows} * layers : slots, 0);
}

std::pair<int64_t, int> CudaBackend::UploadPageTable(const Step& step,
                                                     const StepChunk& chunk) {
  const auto [it, is_new] = page_tables_.try_emplace(chunk.page_table);
  if (!is_new) return it->second;
  // Later steps of the pass have the same rows or fewer.
  const int end = chunk.first_position + chunk.num_rows;
  const int blocks = (end + pages_.page_tokens - 1) / pages_.page_tokens;
  int num_slots = 0;
  for (int layer = 0; layer < step.num_layers; ++layer) {
    num_slots = std::max(num_slots, step.SlotOf(chunk, layer) + 1);
  }
  it->second = {upload_.AppendList(chunk.page_table, num_slots, blocks,
                                   chunk.blocks_stride),
                blocks};
  return it->second;
}

DeviceStep CudaBackend::ToDevice(const UploadedStep& step,
                                 bool decoding) const {
  return {.rows = step.rows,
          .positions = upload_.At<int32_t>(decoding ? step.decode_positions
                                                    : step.positions),
          .strategies = upload_.At<int32_t>(step.strategies),
          .tables = upload_.At<int64_t>(step.tables),
          .table_strides = upload_.At<int32_t>(step.strides),
          .slot_of = upload_.At<int32_t>(step.slot_of),
          .pages = upload_.Lists<int32_t>(),
          .layers = step.step->num_layers};
}

}  // namespace strata::cuda
