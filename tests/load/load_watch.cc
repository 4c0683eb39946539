#include "tests/load/load_watch.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"

namespace strata {

LoadWatch::LoadWatch(const Connection* connection)
    : connection_(connection),
      thread_([this](std::stop_token stop) { Poll(stop); }) {}

LoadWatch::Seen LoadWatch::Stop() {
  thread_.request_stop();
  thread_.join();
  return seen_;
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
      seen_.kv_bytes_peak = std::max(seen_.kv_bytes_peak, load.kv_used_bytes());
      seen_.running_peak = std::max(seen_.running_peak, running);
      seen_.running_mean +=
          (running - seen_.running_mean) / static_cast<double>(++num_answers_);
    }
    absl::SleepFor(kPeriod);
  }
}

}  // namespace strata
