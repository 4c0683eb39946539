#include "tests/gpu/kernel_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/row_plan.h"
#include "tests/gpu/bench_device.h"

namespace strata {
namespace {

using cuda::DeviceBuffer;

DeviceBuffer Allocate(int64_t num_bytes) {
  DeviceBuffer buffer(num_bytes);
  CheckCuda(buffer.error(), "memory");
  return buffer;
}

template <typename T>
DeviceBuffer ToDevice(const std::vector<T>& host) {
  const auto num_bytes = static_cast<int64_t>(host.size() * sizeof(T));
  DeviceBuffer buffer = Allocate(num_bytes);
  CheckCuda(
      cudaMemcpy(buffer.data(), host.data(), num_bytes, cudaMemcpyHostToDevice),
      "copying");
  return buffer;
}

template <typename T>
const T* At(const DeviceBuffer& buffer) {
  return reinterpret_cast<const T*>(buffer.data());
}

// Random numbers, the same ones again and again.
DeviceBuffer RandomMemory(int64_t num_bytes) {
  constexpr int64_t kPieceBytes = int64_t{32} << 20;
  DeviceBuffer buffer = Allocate(num_bytes);
  int64_t filled = std::min(num_bytes, kPieceBytes);
  CheckCuda(cudaMemcpy(buffer.data(), RandomBf16(filled / 2, 1.0f).data(),
                       filled, cudaMemcpyHostToDevice),
            "copying");
  while (filled < num_bytes) {
    const int64_t more = std::min(filled, num_bytes - filled);
    CheckCuda(cudaMemcpy(buffer.data() + filled, buffer.data(), more,
                         cudaMemcpyDeviceToDevice),
              "copying");
    filled += more;
  }
  return buffer;
}

int BlocksOf(const BenchShape& shape, int context) {
  return (context + shape.page_tokens - 1) / shape.page_tokens;
}

std::vector<int32_t> Rising(int count, int first = 0) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<int32_t> Shuffled(int count) {
  std::vector<int32_t> numbers = Rising(count);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(1));
  return numbers;
}

// By row, where its page table begins.
std::vector<int64_t> Tables(int rows, int64_t stride) {
  std::vector<int64_t> tables(rows);
  for (int r = 0; r < rows; ++r) tables[r] = r * stride;
  return tables;
}

// Queries over sequences of `context` positions in a cache of `layers` layers:
// either of `rows` sequences, the last position of each, or of one sequence,
// its last `rows` positions.
class AttentionProblem {
 public:
  // REQUIRES: `pages` holds num_pages pages, enough for all sequences.
  AttentionProblem(const BenchShape& shape, const cuda::DevicePages& pages,
                   int num_pages, int layers, int rows, int context,
                   bool one_sequence)
      : config_(shape.config),
        pages_(pages),
        layers_(layers),
        rows_(rows),
        q_(RandomMemory(OutBytes())),
        out_(OutBytes()),
        positions_(ToDevice(one_sequence
                                ? Rising(rows, context - rows)
                                : std::vector<int32_t>(rows, context - 1))),
        strategies_(ToDevice(std::vector<int32_t>(rows, 0))),
        strides_(
            ToDevice(std::vector<int32_t>(rows, BlocksOf(shape, context)))),
        tables_(ToDevice(Tables(
            rows, one_sequence ? 0 : layers * BlocksOf(shape, context)))),
        slots_(ToDevice(Rising(layers))),
        table_(ToDevice(Shuffled(num_pages))) {
    CheckCuda(out_.error(), "memory");
  }

  int layers() const { return layers_; }

  cuda::AttentionArgs Args(int layer) const {
    return {.q = At<Bf16>(q_),
            .step = {.rows = rows_,
                     .positions = At<int32_t>(positions_),
                     .strategies = At<int32_t>(strategies_),
                     .tables = At<int64_t>(tables_),
                     .table_strides = At<int32_t>(strides_),
                     .slot_of = At<int32_t>(slots_),
                     .pages = At<int32_t>(table_),
                     .layers = layers_},
            .pages = pages_,
            .layer = layer,
            .q_heads = config_.num_heads,
            .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
            .out = reinterpret_cast<Bf16*>(out_.data())};
  }

 private:
  int64_t OutBytes() const {
    return int64_t{rows_} * config_.num_heads * config_.head_dim *
           static_cast<int64_t>(sizeof(Bf16));
  }

  const ModelConfig& config_;
  const cuda::DevicePages pages_;
  const int layers_, rows_;
  DeviceBuffer q_, out_, positions_, strategies_, strides_, tables_, slots_,
      table_;
};

int NumMultiprocessors() {
  int count = 0;
  CheckCuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0),
            "attributes");
  return count;
}

// Seconds of one launch, over all layers in turn.
double DecodeSeconds(const AttentionProblem& problem, const BenchShape& shape,
                     int rows) {
  constexpr int kLaunches = 8;  // at least, so that waiting costs little
  const ModelConfig& c = shape.config;
  const int splits =
      cuda::MaxSplits(rows, c.num_kv_heads, NumMultiprocessors());
  const int64_t partials = int64_t{rows} * c.num_heads * splits;
  const DeviceBuffer out = Allocate(partials * c.head_dim * 4);
  const DeviceBuffer lse = Allocate(partials * 4);
  const DeviceBuffer arrived = ToDevice(
      std::vector<uint32_t>(static_cast<size_t>(rows) * c.num_kv_heads));
  const cuda::DecodeScratch scratch = {
      .out = reinterpret_cast<float*>(out.data()),
      .lse = reinterpret_cast<float*>(lse.data()),
      .arrived = reinterpret_cast<uint32_t*>(arrived.data()),
      .max_splits = splits};
  const int launches = std::max(problem.layers(), kLaunches);
  const double seconds = MedianSeconds(shape.repeats, [&] {
    for (int i = 0; i < launches; ++i) {
      CheckCuda(cuda::DecodeAttention(problem.Args(i % problem.layers()),
                                      scratch, nullptr),
                "decode attention");
    }
    CheckCuda(cudaDeviceSynchronize(), "decode attention");
  });
  return seconds / launches;
}

double PrefillSeconds(const AttentionProblem& problem, const BenchShape& shape,
                      int rows) {
  std::vector<cuda::PrefillTile> tiles;
  for (int row = 0; row < rows; row += cuda::kPrefillTileRows) {
    tiles.push_back({row, std::min(cuda::kPrefillTileRows, rows - row)});
  }
  const DeviceBuffer device_tiles = ToDevice(tiles);
  return MedianSeconds(shape.repeats, [&] {
    CheckCuda(cuda::PrefillAttention(problem.Args(0),
                                     At<cuda::PrefillTile>(device_tiles),
                                     static_cast<int>(tiles.size()), nullptr),
              "prefill attention");
    CheckCuda(cudaDeviceSynchronize(), "prefill attention");
  });
}

}  // namespace

double MeasureCopy(const BenchShape& shape, const ResultTable& table) {
  constexpr int kCopies = 10;
  const DeviceBuffer from = RandomMemory(shape.copy_bytes);
  const DeviceBuffer to = Allocate(shape.copy_bytes);
  const double seconds = MedianSeconds(3, [&] {
    for (int i = 0; i < kCopies; ++i) {
      CheckCuda(cudaMemcpyAsync(to.data(), from.data(), shape.copy_bytes,
                                cudaMemcpyDeviceToDevice, nullptr),
                "copying");
    }
    CheckCuda(cudaDeviceSynchronize(), "copying");
  });
  const double rate = 2.0 * kCopies * shape.copy_bytes / seconds;
  table.Add(
      {.what = "copy",
       .values = {{"ms", 1e3 * seconds / kCopies}, {"GB/s", 1e-9 * rate}}});
  return rate;
}

void MeasureAttention(const BenchShape& shape, cuda::KvFormat format,
                      double copy_rate, const ResultTable& table) {
  constexpr int kMaxLayers = 64;
  const ModelConfig& c = shape.config;
  const int64_t page_bytes =
      KvPageBytes(format, c.num_kv_heads, shape.page_tokens, c.head_dim);
  const int rotated_pages = static_cast<int>(shape.rotated_bytes / page_bytes);
  const int num_pages =
      std::max(rotated_pages,
               std::ranges::max(shape.attention_rows) *
                   BlocksOf(shape, std::ranges::max(shape.attention_contexts)));
  const DeviceBuffer slab = RandomMemory(num_pages * page_bytes);
  const cuda::DevicePages pages = {.data = slab.data(),
                                   .kv_heads = c.num_kv_heads,
                                   .page_tokens = shape.page_tokens,
                                   .head_dim = c.head_dim,
                                   .format = format,
                                   .page_bytes = page_bytes};
  const std::string suffix = format == cuda::KvFormat::kFp8 ? " fp8" : "";
  for (const int context : shape.attention_contexts) {
    for (const int rows : shape.attention_rows) {
      const int layers = std::clamp(
          rotated_pages / (rows * BlocksOf(shape, context)), 1, kMaxLayers);
      const AttentionProblem problem(shape, pages, num_pages, layers, rows,
                                     context, /*one_sequence=*/false);
      const double seconds = DecodeSeconds(problem, shape, rows);
      const double rate =
          double{1} * rows * context * page_bytes / shape.page_tokens / seconds;
      table.Add({.what = "decode attention" + suffix,
                 .context = context,
                 .rows = rows,
                 .values = {{"ms", 1e3 * seconds},
                            {"GB/s", 1e-9 * rate},
                            {"of copy", rate / copy_rate}}});
    }
  }
  for (const int context : shape.attention_contexts) {
    const int rows = std::min(shape.chunk_rows, context);
    const AttentionProblem problem(shape, pages, num_pages, /*layers=*/1, rows,
                                   context, /*one_sequence=*/true);
    const double seconds = PrefillSeconds(problem, shape, rows);
    const double keys =
        double{1} * rows * (context - rows) + 0.5 * rows * (rows + 1.0);
    table.Add(
        {.what = "prefill attention" + suffix,
         .context = context,
         .rows = rows,
         .values = {{"ms", 1e3 * seconds},
                    {"TFLOP/s", 1e-12 * AttentionFlops(c, keys) / seconds}}});
  }
}

void MeasureProducts(const BenchShape& shape, double copy_rate,
                     const ResultTable& table) {
  const int outputs = shape.config.intermediate_size;
  const int cols = shape.config.hidden_size;
  for (const auto format :
       {cuda::WeightFormat::kBf16, cuda::WeightFormat::kFp8}) {
    const int64_t matrix_bytes = outputs * cuda::RowBytes(format, cols);
    const auto copies = static_cast<int>(
        std::clamp<int64_t>(shape.rotated_bytes / matrix_bytes, 1, 64));
    const DeviceBuffer weights = RandomMemory(copies * matrix_bytes);
    const DeviceBuffer scales = ToDevice(std::vector<float>(outputs, 0.01f));
    for (const int rows : shape.product_rows) {
      const DeviceBuffer x = RandomMemory(int64_t{rows} * cols * 2);
      const DeviceBuffer y = Allocate(int64_t{rows} * outputs * 4);
      cuda::ProductArgs args = {.x = At<Bf16>(x), .rows = rows};
      args.y = reinterpret_cast<float*>(y.data());
      args.w[0] = {.format = format, .rows = outputs, .cols = cols};
      if (format == cuda::WeightFormat::kFp8) {
        args.w[0].row_scales = At<float>(scales);
      }
      const double seconds =
          MedianSeconds(shape.repeats,
                        [&] {
                          for (int i = 0; i < copies; ++i) {
                            args.w[0].data = weights.data() + i * matrix_bytes;
                            CheckCuda(cuda::Product(args, nullptr), "product");
                          }
                          CheckCuda(cudaDeviceSynchronize(), "product");
                        }) /
          copies;
      const double rate = static_cast<double>(matrix_bytes) / seconds;
      table.Add(
          {.what = format == cuda::WeightFormat::kFp8 ? "product fp8"
                                                      : "product bf16",
           .rows = rows,
           .values = {{"ms", 1e3 * seconds},
                      {"TFLOP/s", 2e-12 * rows * outputs * cols / seconds},
                      {"GB/s", 1e-9 * rate},
                      {"of copy", rate / copy_rate}}});
    }
  }
}

}  // namespace strata
