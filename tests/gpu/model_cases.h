#ifndef TESTS_GPU_MODEL_CASES_H_
#define TESTS_GPU_MODEL_CASES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch_plan.h"
#include "core/request.h"
#include "core/sequence.h"
#include "core/transformer.h"
#include "kernels/backend.h"
#include "tests/gpu/bench_shape.h"
#include "tests/gpu/result_table.h"

namespace strata {

// A whole model on the device, the forward pass of the server over it, and as
// many pages as there is memory for.  Without scheduler, tokenizer and network.
class ModelBench {
 public:
  // Packs a model of random weights; ends the process where it does not fit.
  ModelBench(const BenchShape& shape, std::unique_ptr<Backend> backend,
             double copy_rate, const ResultTable& table);

  // Time to the first token of a prompt that runs in chunks, alone: one run,
  // the shortest prompt having run before.
  void MeasurePrompts();
  // Steps that decode, at every context, batch and strategy.  Nobody has
  // written their pages: what these hold has no say in the time.
  void MeasureDecoding();
  // Of these the shortest context alone, as rows `what`: mostly weights.
  void MeasureWeights(const std::string& what);
  // What the host computes for a step: the time of its thread on a processor
  // while it sleeps, not spins, for the device, which it does from then on.
  void MeasureHost();

 private:
  struct Batch;

  // `batch` sequences in pages of their own, [0, cached) of them cached.
  Batch NewBatch(const SharingStrategy& strategy, int batch, int num_tokens,
                 int cached) const;
  void Run(const BatchPlan& plan);
  void RunPrompt(Sequence* sequence);
  SharingStrategy Strategy(const std::string& spec) const;
  int64_t BlocksOf(int num_tokens) const;
  // The most sequences of num_tokens that the pool holds, at most max_batch.
  int MostThatFits(const SharingStrategy& strategy, int num_tokens) const;
  void MeasureStep(const std::string& what, const std::string& spec,
                   int context, int batch);
  double KvBytes(const SharingStrategy& strategy, int64_t num_tokens) const;
  // In use on the device, with pages for `kv_bytes` alone.
  double PeakBytes(double kv_bytes) const;

  const BenchShape& shape_;
  const std::unique_ptr<Backend> backend_;
  const double copy_rate_;
  const ResultTable& table_;
  const int64_t free_at_start_;
  std::unique_ptr<Transformer> transformer_;
  int64_t num_pages_ = 0;
  int64_t page_bytes_ = 0;
  int64_t weight_bytes_ = 0;  // that a step reads
  std::vector<SampledToken> sampled_;
};

}  // namespace strata

#endif  // TESTS_GPU_MODEL_CASES_H_
