#include "kernels/cuda/step_results.h"

#include "base/check.h"

namespace strata::cuda {
namespace {

void ToHost(const DeviceSampledToken& from, SampledToken* to) {
  to->token = from.token;
  to->logprob = from.logprob;
  to->num_top = from.num_top;
  to->finite = from.finite != 0;
  for (int k = 0; k < from.num_top; ++k) {
    to->top[k] = {from.top_tokens[k], from.top_logprobs[k]};
  }
}

int64_t BytesOf(int64_t num_rows) {
  return num_rows * static_cast<int64_t>(sizeof(DeviceSampledToken));
}

}  // namespace

StepResults::~StepResults() {
  for (const Step& step : steps_) {
    if (step.done != nullptr) cudaEventDestroy(step.done);
  }
}

void StepResults::Begin() {
  STRATA_CHECK(num_fetched_ - num_waited_ < kMaxInFlight);
  newest().sampled.clear();
  newest().num_rows = 0;
}

int64_t StepResults::Append(int rows, int count, SampledToken* out) {
  Step& step = newest();
  const int64_t first = step.num_rows;
  if (!step.sampled.empty()) {
    STRATA_CHECK(first ==
                 step.sampled.back().first + step.sampled.back().count);
  }
  step.sampled.push_back({.first = first, .count = count, .out = out});
  step.num_rows += rows;
  return first;
}

cudaError_t StepResults::Allocate(cudaStream_t stream, bool* has_moved) {
  Step& step = newest();
  step.host.Grow(BytesOf(step.num_rows));
  if (step.host.error() != cudaSuccess) return step.host.error();
  if (BytesOf(step.num_rows) <= device_.num_bytes()) return cudaSuccess;
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;
  *has_moved |= device_.Grow(2 * BytesOf(step.num_rows));
  if (device_.error() != cudaSuccess) return device_.error();
  // This step may read what the one before has sampled.
  const Step& before = steps_[(num_fetched_ + 1) % kMaxInFlight];
  return cudaMemcpy(device_.data(), before.host.data(),
                    BytesOf(before.num_rows), cudaMemcpyHostToDevice);
}

cudaError_t StepResults::Reserve() {
  for (Step& step : steps_) {
    step.host.Grow(BytesOf(newest().num_rows));
    if (step.host.error() != cudaSuccess) return step.host.error();
  }
  newest().num_rows = 0;  // nothing was sampled
  return cudaSuccess;
}

cudaError_t StepResults::Fetch(cudaStream_t stream) {
  Step& step = newest();
  if (step.num_rows > 0) {
    const cudaError_t error =
        cudaMemcpyAsync(step.host.data(), device_.data(),
                        BytesOf(step.num_rows), cudaMemcpyDeviceToHost, stream);
    if (error != cudaSuccess) return error;
  }
  if (step.done == nullptr) {
    const cudaError_t error =
        cudaEventCreateWithFlags(&step.done, cudaEventDisableTiming);
    if (error != cudaSuccess) return error;
  }
  ++num_fetched_;
  return cudaEventRecord(step.done, stream);
}

cudaError_t StepResults::Wait() {
  if (num_waited_ == num_fetched_) return cudaSuccess;
  const Step& step = steps_[num_waited_++ % kMaxInFlight];
  const cudaError_t error = cudaEventSynchronize(step.done);
  if (error != cudaSuccess) return error;
  const auto* tokens =
      reinterpret_cast<const DeviceSampledToken*>(step.host.data());
  for (const Rows& rows : step.sampled) {
    for (int i = 0; i < rows.count; ++i) {
      ToHost(tokens[rows.first + i], &rows.out[i]);
    }
  }
  return cudaSuccess;
}

}  // namespace strata::cuda
