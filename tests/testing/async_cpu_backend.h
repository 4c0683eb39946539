#ifndef TESTS_TESTING_ASYNC_CPU_BACKEND_H_
#define TESTS_TESTING_ASYNC_CPU_BACKEND_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/testing/forwarding_backend.h"

namespace strata {

// The CPU backend as a device that computes by itself: on a thread of its own,
// so that a step may be submitted while another runs.  It keeps copies of all
// that Args point to, and reads nothing else after Submit.
class AsyncCpuBackend final : public ForwardingBackend {
 public:
  explicit AsyncCpuBackend(const cpu::CpuOptions& options);
  ~AsyncCpuBackend() override;

  std::string name() const override { return "async"; }

  absl::StatusOr<int64_t> Reserve(const KvLayout& layout) override;
  absl::Status CreateKvPages(const KvLayout& layout) override;

  void Embed(const EmbedArgs& args) override { queue_.push_back(args); }
  void Qkv(const QkvArgs& args) override { queue_.push_back(args); }
  void Attention(const AttentionArgs& args) override { queue_.push_back(args); }
  void Linear(const LinearArgs& args) override { queue_.push_back(args); }
  void GatedMlp(const GatedMlpArgs& args) override { queue_.push_back(args); }
  void Gather(const GatherArgs& args) override { queue_.push_back(args); }
  void Head(const HeadArgs& args) override { queue_.push_back(args); }
  void Sample(const SampleArgs& args) override { queue_.push_back(args); }
  void AllReduce(const AllReduceArgs&) override {}  // it is no rank

  absl::Status Submit() override;
  absl::Status Wait() override;
  int max_in_flight() const override { return 2; }

  // Rows submitted so far, and of them those beside a step in flight.
  int64_t num_rows() const { return num_rows_; }
  int64_t num_rows_ahead() const { return num_rows_ahead_; }

 private:
  using Operation =
      std::variant<EmbedArgs, QkvArgs, AttentionArgs, LinearArgs, GatedMlpArgs,
                   GatherArgs, HeadArgs, SampleArgs>;
  class Job;

  void RunJobs();

  int page_tokens_ = 0;
  std::vector<Operation> queue_;
  std::atomic<int64_t> num_rows_ = 0;
  std::atomic<int64_t> num_rows_ahead_ = 0;

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> jobs_ ABSL_GUARDED_BY(mu_);  // in flight
  size_t num_done_ ABSL_GUARDED_BY(mu_) = 0;                    // of them
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace strata

#endif  // TESTS_TESTING_ASYNC_CPU_BACKEND_H_
