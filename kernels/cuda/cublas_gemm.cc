#include "kernels/cuda/cublas_gemm.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_memory.h"

// UNRUN AND UNMEASURED: see the header.
//
// cuBLAS counts by columns.  In its terms a row-major matrix is its transpose,
// and y[r] = W x[r] of all rows is
//
//   y^T [outputs, rows] = W^T^T [outputs, cols] x^T [cols, rows]
namespace strata::cuda {
namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
// One algorithm, which is the best for this many rows, is for any number, so
// that a row's sums are in the same order whatever comes with it.
constexpr int kPlannedRows = 2048;
// Of y's part for a matrix: the heads before it are 16 floats or more.
constexpr uint32_t kAlignment = 16;

// The functions of the library that are called, by name.
struct Functions {
#define STRATA_CUBLASLT(name) decltype(&cublasLt##name) name = nullptr
  STRATA_CUBLASLT(Create);
  STRATA_CUBLASLT(Destroy);
  STRATA_CUBLASLT(MatmulDescCreate);
  STRATA_CUBLASLT(MatmulDescDestroy);
  STRATA_CUBLASLT(MatmulDescSetAttribute);
  STRATA_CUBLASLT(MatrixLayoutCreate);
  STRATA_CUBLASLT(MatrixLayoutDestroy);
  STRATA_CUBLASLT(MatmulPreferenceCreate);
  STRATA_CUBLASLT(MatmulPreferenceDestroy);
  STRATA_CUBLASLT(MatmulPreferenceSetAttribute);
  STRATA_CUBLASLT(MatmulAlgoGetHeuristic);
  STRATA_CUBLASLT(MatmulAlgoCheck);
  STRATA_CUBLASLT(Matmul);
#undef STRATA_CUBLASLT
};

// False if one is not there.
bool Find(void* library, Functions* f) {
  bool found = true;
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(
        dlsym(library, name));
    found &= *function != nullptr;
  };
  find(&f->Create, "cublasLtCreate");
  find(&f->Destroy, "cublasLtDestroy");
  find(&f->MatmulDescCreate, "cublasLtMatmulDescCreate");
  find(&f->MatmulDescDestroy, "cublasLtMatmulDescDestroy");
  find(&f->MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  find(&f->MatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  find(&f->MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  find(&f->MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  find(&f->MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  find(&f->MatmulPreferenceSetAttribute,
       "cublasLtMatmulPreferenceSetAttribute");
  find(&f->MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(&f->MatmulAlgoCheck, "cublasLtMatmulAlgoCheck");
  find(&f->Matmul, "cublasLtMatmul");
  return found;
}

// What the library is told of a product.  Owns the descriptions.
class Description {
 public:
  Description(const Functions& f, const DeviceMatrix& w, const float* bias,
              int rows, int width)
      : f_(f) {
    ok_ = f.MatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
          CUBLAS_STATUS_SUCCESS;
    ok_ = ok_ && Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (bias != nullptr) {
      ok_ = ok_ && Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS) &&
            Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    ok_ = ok_ && Create(&w_, CUDA_R_16BF, w.cols, w.rows, w.cols) &&
          Create(&x_, CUDA_R_16BF, w.cols, rows, w.cols) &&
          Create(&y_, CUDA_R_32F, w.rows, rows, width);
  }
  ~Description() {
    if (product_ != nullptr) f_.MatmulDescDestroy(product_);
    for (const cublasLtMatrixLayout_t layout : {w_, x_, y_}) {
      if (layout != nullptr) f_.MatrixLayoutDestroy(layout);
    }
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  bool ok() const { return ok_; }
  cublasLtMatmulDesc_t product() const { return product_; }
  cublasLtMatrixLayout_t w() const { return w_; }
  cublasLtMatrixLayout_t x() const { return x_; }
  cublasLtMatrixLayout_t y() const { return y_; }

 private:
  template <typename T>
  bool Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return f_.MatmulDescSetAttribute(product_, attribute, &value,
                                     sizeof(value)) == CUBLAS_STATUS_SUCCESS;
  }
  bool Create(cublasLtMatrixLayout_t* layout, cudaDataType type, int rows,
              int cols, int stride) {
    return f_.MatrixLayoutCreate(layout, type, rows, cols, stride) ==
           CUBLAS_STATUS_SUCCESS;
  }

  const Functions& f_;
  bool ok_ = false;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, y_ = nullptr;
};

class CublasGemm final : public GemmLibrary {
 public:
  CublasGemm(const Functions& f, cublasLtHandle_t handle,
             cublasLtMatmulPreference_t preference)
      : f_(f),
        handle_(handle),
        preference_(preference),
        workspace_(kWorkspaceBytes) {}
  ~CublasGemm() override {
    f_.MatmulPreferenceDestroy(preference_);
    f_.Destroy(handle_);
  }

  cudaError_t error() const { return workspace_.error(); }

  bool Product(const ProductArgs& args, int num_matrices,
               cudaStream_t stream) override {
    const int width = args.y_stride > 0
                          ? args.y_stride
                          : args.w[0].rows + args.w[1].rows + args.w[2].rows;
    int first = 0;
    for (int m = 0; m < num_matrices; first += args.w[m++].rows) {
      if (args.w[m].rows > 0 && !Multiply(args, m, first, width, stream)) {
        return false;
      }
    }
    return true;
  }

 private:
  // Empty if there is no algorithm.
  using Algorithm = std::unique_ptr<cublasLtMatmulAlgo_t>;

  bool Multiply(const ProductArgs& args, int m, int first, int width,
                cudaStream_t stream) {
    const DeviceMatrix& w = args.w[m];
    const cublasLtMatmulAlgo_t* algorithm =
        AlgorithmFor(w, args.bias[m], width);
    if (algorithm == nullptr) return false;
    const Description d(f_, w, args.bias[m], args.rows, width);
    cublasLtMatmulHeuristicResult_t check;
    if (!d.ok() ||
        f_.MatmulAlgoCheck(handle_, d.product(), d.w(), d.x(), d.y(), d.y(),
                           algorithm, &check) != CUBLAS_STATUS_SUCCESS ||
        check.workspaceSize > size_t{kWorkspaceBytes}) {
      return false;
    }
    const float alpha = 1.0f;
    const float beta = args.then == ProductArgs::Then::kAdd ? 1.0f : 0.0f;
    float* y = args.y + first;
    return f_.Matmul(handle_, d.product(), &alpha, w.data, d.w(), args.x, d.x(),
                     &beta, y, d.y(), y, d.y(), algorithm, workspace_.data(),
                     kWorkspaceBytes, stream) == CUBLAS_STATUS_SUCCESS;
  }

  const cublasLtMatmulAlgo_t* AlgorithmFor(const DeviceMatrix& w,
                                           const float* bias, int width) {
    const auto [it, is_new] = algorithms_.try_emplace(
        std::tuple(w.rows, w.cols, width, bias != nullptr));
    if (!is_new) return it->second.get();
    const Description d(f_, w, bias, kPlannedRows, width);
    cublasLtMatmulHeuristicResult_t best;
    int num_found = 0;
    if (d.ok() &&
        f_.MatmulAlgoGetHeuristic(handle_, d.product(), d.w(), d.x(), d.y(),
                                  d.y(), preference_, 1, &best,
                                  &num_found) == CUBLAS_STATUS_SUCCESS &&
        num_found == 1 && best.state == CUBLAS_STATUS_SUCCESS) {
      it->second = std::make_unique<cublasLtMatmulAlgo_t>(best.algo);
    }
    return it->second.get();
  }

  const Functions f_;
  const cublasLtHandle_t handle_;
  const cublasLtMatmulPreference_t preference_;
  const DeviceBuffer workspace_;
  // By outputs, columns, floats from row to row of y, and whether with a bias.
  absl::flat_hash_map<std::tuple<int, int, int, bool>, Algorithm> algorithms_;
};

// Sums in one piece: no split over the columns, whose order may vary.
bool Prefer(const Functions& f, cublasLtMatmulPreference_t preference) {
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                       auto value) {
    return f.MatmulPreferenceSetAttribute(preference, attribute, &value,
                                          sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  };
  return set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
             uint64_t{kWorkspaceBytes}) &&
         set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE}) &&
         set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kAlignment) &&
         set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kAlignment) &&
         set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kAlignment) &&
         set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kAlignment);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GemmLibrary>> LoadCublasGemm() {
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  // It stays loaded: its threads may outlive a handle.
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    library = dlopen(absl::StrCat("/usr/local/cuda/lib64/", name).c_str(),
                     RTLD_NOW | RTLD_LOCAL);
  }
  Functions f;
  if (library == nullptr || !Find(library, &f)) {
    return absl::UnavailableError(absl::StrCat(name, ": ", dlerror()));
  }
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  if (f.Create(&handle) != CUBLAS_STATUS_SUCCESS) {
    return absl::UnavailableError(absl::StrCat(name, " takes no handle"));
  }
  if (f.MatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) {
    f.Destroy(handle);
    return absl::UnavailableError(absl::StrCat(name, " takes no preference"));
  }
  auto gemm = std::make_unique<CublasGemm>(f, handle, preference);
  if (!Prefer(f, preference) || gemm->error() != cudaSuccess) {
    return absl::UnavailableError(
        absl::StrCat(name, " takes no preferences, or there is no memory"));
  }
  return gemm;
}

}  // namespace strata::cuda
