#include "tests/testing/async_cpu_backend.h"

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"

namespace strata {

namespace {

struct Queue {
  Backend* cpu;
  void operator()(const EmbedArgs& args) const { cpu->Embed(args); }
  void operator()(const QkvArgs& args) const { cpu->Qkv(args); }
  void operator()(const AttentionArgs& args) const { cpu->Attention(args); }
  void operator()(const LinearArgs& args) const { cpu->Linear(args); }
  void operator()(const GatedMlpArgs& args) const { cpu->GatedMlp(args); }
  void operator()(const GatherArgs& args) const { cpu->Gather(args); }
  void operator()(const HeadArgs& args) const { cpu->Head(args); }
  void operator()(const SampleArgs& args) const { cpu->Sample(args); }
};

}  // namespace

// A step, with copies of what its operations read.
class AsyncCpuBackend::Job {
 public:
  explicit Job(int page_tokens) : page_tokens_(page_tokens) {}

  void Add(EmbedArgs args) {
    args.tokens = Keep(args.tokens);
    args.sampled = Keep(args.sampled);
    operations_.push_back(args);
  }
  void Add(QkvArgs args) {
    args.step = Keep(args.step);
    args.q_rows = Keep(args.q_rows);
    args.kv_rows = Keep(args.kv_rows);
    operations_.push_back(args);
  }
  void Add(AttentionArgs args) {
    args.step = Keep(args.step);
    operations_.push_back(args);
  }
  void Add(LinearArgs args) { operations_.push_back(args); }
  void Add(GatedMlpArgs args) { operations_.push_back(args); }
  void Add(GatherArgs args) {
    args.row_ids = Keep(args.row_ids);
    operations_.push_back(args);
  }
  void Add(HeadArgs args) {
    args.row_ids = Keep(args.row_ids);
    operations_.push_back(args);
  }
  void Add(SampleArgs args) {
    std::vector<SampleRow> rows(args.rows.begin(), args.rows.end());
    for (SampleRow& row : rows) {
      row.history = Keep(row.history);
      row.bias = Keep(row.bias);
      row.banned = Keep(row.banned);
      row.allowed = Keep(row.allowed);
    }
    args.rows = Keep(std::span<const SampleRow>(rows));
    outs_.push_back({args.out, rows.size()});
    args.out = nullptr;  // of sampled_, when it has its size
    num_sampled_ += rows.size();
    operations_.push_back(args);
  }

  // `before`: what the step before sampled.
  void Run(Backend* cpu, const std::vector<SampledToken>& before) {
    sampled_.resize(num_sampled_);
    SampledToken* out = sampled_.data();
    for (Operation& operation : operations_) {
      if (auto* embed = std::get_if<EmbedArgs>(&operation)) {
        Resolve(before, embed);
      } else if (auto* sample = std::get_if<SampleArgs>(&operation)) {
        sample->out = out;
        out += sample->rows.size();
      }
      std::visit(Queue{cpu}, operation);
    }
    STRATA_CHECK(cpu->Submit().ok() && cpu->Wait().ok());
  }

  const std::vector<SampledToken>& sampled() const { return sampled_; }
  void HandOut() const {
    const SampledToken* from = sampled_.data();
    for (const auto& [out, count] : outs_) {
      std::copy_n(from, count, out);
      from += count;
    }
  }

 private:
  void Resolve(const std::vector<SampledToken>& before, EmbedArgs* args) {
    std::vector<int32_t> tokens(args->tokens.begin(), args->tokens.end());
    for (size_t r = 0; r < args->sampled.size(); ++r) {
      const int32_t i = args->sampled[r];
      if (i < 0) continue;
      STRATA_CHECK(i < static_cast<int32_t>(before.size()));
      tokens[r] = before[i].token;
    }
    args->tokens = Keep(std::span<const int32_t>(tokens));
    args->sampled = {};
  }

  template <typename T>
  std::span<const T> Keep(std::span<const T> values) {
    auto copy =
        std::make_shared<const std::vector<T>>(values.begin(), values.end());
    memory_.push_back(copy);
    return *copy;
  }

  const Step* Keep(const Step* step) {
    const auto [it, is_new] = steps_.try_emplace(step);
    if (!is_new) return it->second.get();
    auto copy = std::make_unique<Step>(*step);
    copy->positions = Keep(step->positions);
    copy->chunk_of = Keep(step->chunk_of);
    std::vector<StepChunk> chunks(step->chunks.begin(), step->chunks.end());
    int num_strategies = 0;
    for (StepChunk& chunk : chunks) {
      num_strategies = std::max(num_strategies, chunk.strategy + 1);
      int last_slot = 0;
      for (int layer = 0; layer < step->num_layers; ++layer) {
        last_slot = std::max(last_slot, step->SlotOf(chunk, layer));
      }
      const int end = chunk.first_position + chunk.num_rows;
      const int64_t size = int64_t{last_slot} * chunk.blocks_stride +
                           (end + page_tokens_ - 1) / page_tokens_;
      chunk.page_table =
          Keep(std::span<const int32_t>(chunk.page_table, size)).data();
    }
    copy->chunks = Keep(std::span<const StepChunk>(chunks));
    copy->slot_of =
        Keep(std::span<const int32_t>(
                 step->slot_of, int64_t{num_strategies} * step->num_layers))
            .data();
    it->second = std::move(copy);
    return it->second.get();
  }

  const int page_tokens_;
  std::vector<Operation> operations_;
  std::vector<std::shared_ptr<const void>> memory_;
  std::map<const Step*, std::unique_ptr<Step>> steps_;
  std::vector<std::pair<SampledToken*, size_t>> outs_;
  size_t num_sampled_ = 0;
  std::vector<SampledToken> sampled_;
};

AsyncCpuBackend::AsyncCpuBackend(const cpu::CpuOptions& options)
    : ForwardingBackend(std::make_unique<cpu::CpuBackend>(options)),
      thread_([this] { RunJobs(); }) {}

AsyncCpuBackend::~AsyncCpuBackend() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

absl::StatusOr<int64_t> AsyncCpuBackend::Reserve(const KvLayout& layout) {
  for (const Operation& operation : queue_) {
    std::visit(Queue{&backend()}, operation);
  }
  queue_.clear();
  return ForwardingBackend::Reserve(layout);
}

absl::Status AsyncCpuBackend::CreateKvPages(const KvLayout& layout) {
  page_tokens_ = layout.page_tokens;
  return ForwardingBackend::CreateKvPages(layout);
}

absl::Status AsyncCpuBackend::Submit() {
  auto job = std::make_unique<Job>(page_tokens_);
  int64_t num_rows = 0;
  for (const Operation& operation : queue_) {
    if (const auto* embed = std::get_if<EmbedArgs>(&operation)) {
      num_rows += static_cast<int64_t>(embed->tokens.size());
    }
    std::visit([&](const auto& args) { job->Add(args); }, operation);
  }
  queue_.clear();
  num_rows_ += num_rows;
  std::lock_guard lock(mu_);
  STRATA_CHECK(static_cast<int>(jobs_.size()) < max_in_flight());
  if (!jobs_.empty()) num_rows_ahead_ += num_rows;
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status AsyncCpuBackend::Wait() {
  std::unique_lock lock(mu_);
  if (jobs_.empty()) return absl::OkStatus();
  changed_.wait(lock, [this] { return num_done_ > 0; });
  jobs_.front()->HandOut();
  jobs_.pop_front();
  --num_done_;
  return absl::OkStatus();
}

void AsyncCpuBackend::RunJobs() {
  std::mt19937 random(1);
  std::vector<SampledToken> before;
  while (true) {
    Job* job = nullptr;
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [this] { return stop_ || jobs_.size() > num_done_; });
      if (jobs_.size() == num_done_) return;
      job = jobs_[num_done_].get();
    }
    // Now the device is late, now the host.
    if (random() % 4 == 0) absl::SleepFor(absl::Microseconds(random() % 300));
    job->Run(&backend(), before);
    before = job->sampled();
    std::lock_guard lock(mu_);
    ++num_done_;
    changed_.notify_all();
  }
}

}  // namespace strata
