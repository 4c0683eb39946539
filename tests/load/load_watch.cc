#include "tests/load/load_watch.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"
#include "tests/load/server_page.h"

namespace strata {

LoadWatch::LoadWatch(const Connection* connection, std::string metrics_address)
    : connection_(connection),
      metrics_address_(std::move(metrics_address)),
      start_(absl::Now()),
      thread_([this](std::stop_token stop) { Poll(stop); }) {}

LoadWatch::Seen LoadWatch::Stop() {
  thread_.request_stop();
  thread_.join();
  return std::move(seen_);
}

void LoadWatch::Poll(std::stop_token stop) {
  constexpr absl::Duration kPeriod = absl::Milliseconds(100);
  while (!stop.stop_requested()) {
    grpc::ClientContext context;
    connection_->Authorize(&context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    v1::GetLoadResponse load;
    if (connection_->stub()->GetLoad(&context, {}, &load).ok()) {
      const int running = static_cast<int>(load.running());
      seen_.kv_pool_bytes = load.kv_pool_bytes();
      seen_.kv_bytes_peak = std::max(seen_.kv_bytes_peak, load.kv_used_bytes());
      seen_.running_peak = std::max(seen_.running_peak, running);
      seen_.running_mean +=
          (running - seen_.running_mean) / static_cast<double>(++num_answers_);
      AddSample(load);
    }
    absl::SleepFor(kPeriod);
  }
}

void LoadWatch::AddSample(const v1::GetLoadResponse& load) {
  const double now_s = absl::ToDoubleSeconds(absl::Now() - start_);
  if (!seen_.samples.empty() && now_s < seen_.samples.back().at_s + 1) return;
  Sample sample = {
      .at_s = now_s,
      .running = static_cast<int>(load.running()),
      .waiting = static_cast<int>(load.waiting()),
      .kv_used_bytes = load.kv_used_bytes(),
      .kv_cached_bytes = load.kv_cached_bytes(),
      .generated_tokens_per_s = load.generated_tokens_per_second()};
  if (!metrics_address_.empty()) {
    const auto page = ScrapeServerPage(metrics_address_);
    if (page.ok()) sample.resident_bytes = page->resident_bytes;
  }
  seen_.samples.push_back(sample);
}

double MemoryGrowth(const std::vector<LoadWatch::Sample>& samples) {
  std::vector<LoadWatch::Sample> known;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(known),
               [](const auto& sample) { return sample.resident_bytes > 0; });
  known.erase(known.begin(), known.begin() + known.size() / 2);
  if (known.size() < 2) return 0;
  const double count = static_cast<double>(known.size());
  double mean_at = 0;
  double mean_bytes = 0;
  for (const auto& sample : known) {
    mean_at += sample.at_s / count;
    mean_bytes += sample.resident_bytes / count;
  }
  double products = 0;
  double squares = 0;
  for (const auto& sample : known) {
    products += (sample.at_s - mean_at) * (sample.resident_bytes - mean_bytes);
    squares += (sample.at_s - mean_at) * (sample.at_s - mean_at);
  }
  const double slope = squares > 0 ? products / squares : 0;
  return slope * (known.back().at_s - known.front().at_s);
}

}  // namespace strata
