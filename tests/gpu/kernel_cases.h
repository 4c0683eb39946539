#ifndef TESTS_GPU_KERNEL_CASES_H_
#define TESTS_GPU_KERNEL_CASES_H_

#include "kernels/cuda/kv_page.h"
#include "tests/gpu/bench_shape.h"
#include "tests/gpu/result_table.h"

namespace strata {

// Bytes per second, read and written, of a large copy on the device: the
// bandwidth that other results are compared with.
double MeasureCopy(const BenchShape& shape, const ResultTable& table);

// Attention of one layer alone, over random pages in random order.
void MeasureAttention(const BenchShape& shape, cuda::KvFormat format,
                      double copy_rate, const ResultTable& table);

// The product of one MLP matrix with rows of x, by the server's own kernels;
// copies of it take turns.
void MeasureProducts(const BenchShape& shape, double copy_rate,
                     const ResultTable& table);

}  // namespace strata

#endif  // TESTS_GPU_KERNEL_CASES_H_
