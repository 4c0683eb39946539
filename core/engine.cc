#include "core/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"
#include "core/switch_requests.h"

namespace strata {
namespace {

// The warm-up's results.
class NullSink final : public TokenSink {
 public:
  void OnDelta(SequenceDelta) override {}
  void OnEnd(absl::Status) override {}
};

// A client cancels when its deadline has passed, and that may come before the
// server's: the way there takes time, and gRPC rounds the time given up by 1 %.
absl::Duration DeadlineSlack(const LiveRequest& live) {
  return absl::Milliseconds(10) + (live.request.deadline - live.arrival) / 100;
}

// Of an idle loop: how often gauges and rates are brought up to date.
constexpr absl::Duration kIdlePeriod = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Options& options,
                                                       Parts parts) {
  auto engine = std::unique_ptr<Engine>(new Engine(options, std::move(parts)));
  STRATA_RETURN_IF_ERROR(engine->WarmUp());
  engine->Publish();
  engine->thread_ = std::thread([e = engine.get()] { e->Loop(); });
  return engine;
}

Engine::Engine(const Options& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      limits_{.vocab_size = parts_.transformer->config().vocab_size,
              .max_model_len = options.max_model_len,
              .num_pages = options.num_pages,
              .page_tokens = options.scheduler.page_tokens,
              .optimistic = options.scheduler.optimistic},
      pool_(options.num_pages, options.scheduler.page_tokens),
      scheduler_(options.scheduler, &pool_),
      meter_(options.page_bytes, parts_.strategies),
      delivery_(&scheduler_, &table_, &meter_, parts_.metrics,
                options.page_bytes),
      pipeline_(std::move(parts_.transformer)) {
  scheduler_.SetPolicy(options.pressure);
}

Engine::~Engine() { Drain(absl::ZeroDuration()); }

absl::Status Engine::WarmUp() {
  Request request(parts_.strategies->default_strategy());
  request.prompt = {0};
  request.stopping.max_tokens = 1;
  // A pool that cannot hold a single token under the default strategy stays
  // cold.
  if (!FitRequest(limits_, 1, &request).ok()) return absl::OkStatus();
  LiveRequest live(0, request, std::make_shared<NullSink>(), parts_.now());
  Sequence sequence(
      &live, live.request, 0,
      SequenceOutput(parts_.tokenizer, live.request, parts_.eos_ids));
  scheduler_.Add(&sequence, parts_.now());
  scheduler_.Plan(parts_.now(), &pipeline_.next().plan);
  absl::Status status = pipeline_.Launch();
  if (status.ok()) status = pipeline_.Wait().status();
  scheduler_.TakeEvents(&events_);  // of nobody's interest
  scheduler_.Remove(&sequence);
  return status;
}

RequestId Engine::Submit(Request request, std::shared_ptr<TokenSink> sink) {
  const RequestId id = next_id_.fetch_add(1, std::memory_order_relaxed);
  auto live = std::make_shared<std::unique_ptr<LiveRequest>>(
      std::make_unique<LiveRequest>(id, std::move(request), sink,
                                    parts_.now()));
  if (!inbox_.Post([this, live] { Accept(std::move(*live)); })) {
    parts_.metrics->RecordRejection(Metrics::Rejection::kDraining);
    sink->OnEnd(absl::UnavailableError("the server is shutting down"));
  }
  return id;
}

void Engine::Accept(std::unique_ptr<LiveRequest> accepted) {
  const absl::Time now = parts_.now();
  if (!device_.ok()) {
    Refuse(*accepted, absl::UnavailableError("the device has failed"),
           Metrics::Rejection::kDraining);
    return;
  }
  if (draining_) {
    Refuse(*accepted, absl::UnavailableError("the server is shutting down"),
           Metrics::Rejection::kDraining);
    return;
  }
  LiveRequest* live = table_.Add(std::move(accepted));
  const Request& request = live->request;
  live->num_live = request.num_sequences;
  for (int i = 0; i < request.num_sequences; ++i) {
    live->sequences.push_back(std::make_unique<Sequence>(
        live, request, i,
        SequenceOutput(parts_.tokenizer, request, parts_.eos_ids)));
    if (i > 0) live->sequences[i]->state = Sequence::State::kHeld;
  }
  for (const auto& sequence : live->sequences) {
    scheduler_.Add(sequence.get(), now);
  }
  if (live->sequences[0]->num_pending() == 0) {
    delivery_.EndEmpty(live, now);
    return;
  }
  if (table_.num_waiting() <= options_.max_queued_requests) return;
  // Full, unless what has come since the last step can start at once.
  while (scheduler_.AdmitNext() != nullptr) {
  }
  RecordEvents();
  if (live->is_running ||
      table_.num_waiting() <= options_.max_queued_requests) {
    return;
  }
  for (const auto& sequence : live->sequences) {
    scheduler_.Remove(sequence.get());
  }
  Refuse(*table_.Remove(live),
         absl::ResourceExhaustedError(absl::StrCat(
             "the queue is full: --max_queued_requests=",
             options_.max_queued_requests, " may wait; try again later")),
         Metrics::Rejection::kQueueFull);
}

void Engine::Refuse(LiveRequest& live, absl::Status status,
                    Metrics::Rejection reason) {
  parts_.metrics->RecordRejection(reason);
  live.sink->OnEnd(std::move(status));
}

void Engine::Cancel(RequestId id) {
  inbox_.Post([this, id] {
    LiveRequest* live = table_.Find(id);
    if (live == nullptr) return;
    const absl::Time now = parts_.now();
    if (live->request.deadline - DeadlineSlack(*live) <= now) {
      Expire(live, now);
    } else {
      delivery_.Fail(live, absl::CancelledError("the client cancelled"),
                     Metrics::Finish::kCancelled, now);
    }
  });
}

void Engine::Abort(std::string label, std::function<void(int)> done) {
  const bool posted = inbox_.Post([this, label = std::move(label), done] {
    const std::vector<LiveRequest*> found = table_.FindLabel(label);
    for (LiveRequest* live : found) delivery_.Abort(live, parts_.now());
    done(static_cast<int>(found.size()));
  });
  if (!posted) done(0);
}

void Engine::SwitchStrategy(std::string label, SharingStrategy strategy,
                            int strategy_label, bool recompute,
                            std::function<void(absl::StatusOr<int64_t>)> done) {
  const bool posted = inbox_.Post([this, label = std::move(label),
                                   strategy = std::move(strategy),
                                   strategy_label, recompute, done] {
    // So that it is as far as its client knows, and has not come to its end.
    while (pipeline_.num_in_flight() > 0) FinishStep();
    const std::vector<LiveRequest*> found = table_.FindLabel(label);
    if (found.empty()) {
      done(absl::NotFoundError(
          absl::StrCat("no live request has the request_id ", Quote(label))));
      return;
    }
    absl::StatusOr<int64_t> freed =
        SwitchRequests(found, strategy, strategy_label, recompute,
                       options_.num_pages, &scheduler_);
    RecordEvents();
    if (freed.ok()) *freed *= options_.page_bytes;
    done(std::move(freed));
  });
  if (!posted) done(absl::UnavailableError("the server is shutting down"));
}

void Engine::SetPolicy(std::optional<bool> demote_under_pressure,
                       std::optional<double> pressure_threshold) {
  inbox_.Post([this, demote_under_pressure, pressure_threshold] {
    PressurePolicy policy = scheduler_.policy();
    if (demote_under_pressure) {
      policy.demote_under_pressure = *demote_under_pressure;
    }
    if (pressure_threshold) policy.pressure_threshold = *pressure_threshold;
    scheduler_.SetPolicy(policy);
  });
}

void Engine::Loop() {
  std::vector<Inbox::Action> actions;
  bool is_idle = true;
  while (!stop_.load(std::memory_order_acquire)) {
    inbox_.Take(is_idle ? kIdlePeriod : absl::ZeroDuration(), &actions);
    for (Inbox::Action& action : actions) action();
    actions.clear();
    EndExpired();
    // The step of requests that found an idle engine may never end: health()
    // and GetLoad() shall know of them before.
    if (table_.num_live() > 0 && !busy_.load()) Publish();
    is_idle = !RunStep();
    Publish();
    pipeline_.Drop(delivery_.TakeEnded());
  }
  inbox_.Close();
  draining_ = true;
  inbox_.Take(absl::ZeroDuration(), &actions);
  for (Inbox::Action& action : actions) action();
  EndAll(absl::UnavailableError("the server is shutting down"));
  Publish();
}

bool Engine::RunStep() {
  if (pipeline_.num_in_flight() > 0 && scheduler_.NeedsTokens()) FinishStep();
  if (!device_.ok()) return false;
  const StepPipeline::Step* const launched = LaunchStep();
  // The device runs it while the tokens of the one before are delivered.
  const bool has_before =
      pipeline_.num_in_flight() > (launched != nullptr ? 1 : 0);
  if (has_before) FinishStep();
  if (launched != nullptr) scheduler_.Commit(launched->plan);
  if (pipeline_.is_full()) FinishStep();
  return launched != nullptr || has_before;
}

const StepPipeline::Step* Engine::LaunchStep() {
  StepPipeline::Step& step = pipeline_.next();
  step.begin = parts_.now();
  scheduler_.Plan(step.begin, &step.plan);
  RecordEvents();
  if (step.plan.empty()) return nullptr;
  const absl::Status status = pipeline_.Launch();
  if (status.ok()) return &step;
  LoseDevice(status);
  return nullptr;
}

void Engine::FinishStep() {
  const absl::StatusOr<StepPipeline::Step*> finished = pipeline_.Wait();
  if (!finished.ok()) {
    LoseDevice(finished.status());
    return;
  }
  StepPipeline::Step& step = **finished;
  const absl::Time begin = std::max(step.begin, step_end_);
  step_end_ = parts_.now();
  meter_.AddPromptRows(step.num_prompt_rows, step_end_);
  parts_.metrics->RecordStep(
      {.duration = step_end_ - begin,
       .prompt_rows = step.num_prompt_rows,
       .decode_rows = step.plan.num_rows - step.num_prompt_rows});
  delivery_.Deliver(step.plan, step.sampled, step_end_);
  step.ended.clear();
  last_progress_ms_.store(absl::ToUnixMillis(step_end_));
}

void Engine::LoseDevice(const absl::Status& status) {
  device_ = status;
  device_lost_.store(true);
  if (parts_.on_device_lost) parts_.on_device_lost(status);
  while (pipeline_.num_in_flight() > 0) (void)pipeline_.Wait();
  EndAll(absl::InternalError(
      absl::StrCat("the device failed: ", status.message())));
}

void Engine::RecordEvents() {
  scheduler_.TakeEvents(&events_);
  delivery_.Record(events_);
}

void Engine::EndExpired() {
  const absl::Time now = parts_.now();
  while (LiveRequest* live = table_.FirstExpired(now)) Expire(live, now);
}

void Engine::Expire(LiveRequest* live, absl::Time now) {
  delivery_.Fail(
      live, absl::DeadlineExceededError("the deadline of the call has passed"),
      Metrics::Finish::kDeadline, now);
}

void Engine::EndAll(const absl::Status& status) {
  for (LiveRequest* live : table_.All()) {
    delivery_.Fail(live, status, Metrics::Finish::kError, parts_.now());
  }
}

void Engine::Publish() {
  const absl::Time now = parts_.now();
  LoadReport report = meter_.Measure(pool_, table_, scheduler_.running(), now);
  parts_.metrics->SetGauges(ToGauges(report));
  const bool busy = table_.num_live() > 0;
  if (busy && !busy_.load()) last_progress_ms_.store(absl::ToUnixMillis(now));
  busy_.store(busy);
  std::lock_guard lock(mu_);
  report_ = std::move(report);
  drained_ = draining_ && !busy;
  if (drained_) changed_.notify_all();
}

LoadReport Engine::GetLoad() const {
  std::lock_guard lock(mu_);
  return report_;
}

EngineHealth Engine::health() const {
  if (device_lost_.load()) return EngineHealth::kDeviceLost;
  const absl::Duration silence =
      parts_.now() - absl::FromUnixMillis(last_progress_ms_.load());
  const bool is_stalled = busy_.load() && silence > options_.stall_limit;
  return is_stalled ? EngineHealth::kStalled : EngineHealth::kGood;
}

void Engine::Drain(absl::Duration timeout) {
  std::lock_guard drain_lock(drain_mu_);
  if (!thread_.joinable()) return;
  inbox_.Post([this] { draining_ = true; });
  {
    std::unique_lock lock(mu_);
    changed_.wait_for(
        lock, absl::ToChronoMicroseconds(std::min(timeout, absl::Hours(24))),
        [this] { return drained_; });
  }
  stop_.store(true, std::memory_order_release);
  inbox_.Post([] {});  // wakes an idle loop
  thread_.join();
}

}  // namespace strata
