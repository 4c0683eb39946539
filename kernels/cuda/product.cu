#include <cstdint>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/product_kernels.h"

namespace strata::cuda {
namespace {

bool IsGemv(const ProductArgs& args) {
  return args.rows <= kMaxGemvRows && args.w[0].cols <= kMaxGemvCols;
}

bool IsValid(const ProductArgs& args) {
  for (const DeviceMatrix& w : args.w) {
    if (w.rows == 0) continue;
    const int multiple = HasBlockScales(w.format) ? 32 : 16;
    if (w.cols != args.w[0].cols || w.cols % multiple != 0) return false;
    const bool is_fp8 = w.format == WeightFormat::kFp8;
    if (is_fp8 != (w.row_scales != nullptr)) return false;
  }
  return args.then != ProductArgs::Then::kSwiGlu ||
         (args.w[0].rows == args.w[1].rows &&
          args.w[0].format == args.w[1].format);
}

}  // namespace

int64_t ProductScratchBytes(const ProductArgs& args) {
  if (IsGemv(args) || args.x != nullptr) return 0;
  return int64_t{args.rows} * args.w[0].cols * sizeof(Bf16);
}

cudaError_t NormInput(ProductArgs* args, cudaStream_t stream) {
  if (args->x != nullptr) return cudaSuccess;
  Bf16* y = static_cast<Bf16*>(args->scratch);
  args->x = y;
  return Norm({.x = args->u,
               .row_ids = args->row_ids,
               .rows = args->rows,
               .dim = args->w[0].cols,
               .weight = args->norm,
               .eps = args->eps,
               .y = y},
              stream);
}

cudaError_t Product(const ProductArgs& args, cudaStream_t stream) {
  if (!IsValid(args)) return cudaErrorInvalidValue;
  if (args.rows == 0) return cudaSuccess;
  if (IsGemv(args)) return Gemv(args, stream);
  ProductArgs normalized = args;
  const cudaError_t error = NormInput(&normalized, stream);
  if (error != cudaSuccess) return error;
  return args.rows <= kMaxSmallRows ? SmallProduct(normalized, stream)
                                    : Gemm(normalized, stream);
}

}  // namespace strata::cuda
