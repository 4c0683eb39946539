#include "tests/load/load_watch.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"

namespace strata {

LoadWatch::LoadWatch(const Connection* connection)
    : connection_(connection),
      thread_([this](std::stop_token stop) { Poll(stop); }) {}

uint64_t LoadWatch::Stop() {
  thread_.request_stop();
  thread_.join();
  return peak_bytes_;
}

void LoadWatch::Poll(std::stop_token stop) {
  constexpr absl::Duration kPeriod = absl::Milliseconds(100);
  while (!stop.stop_requested()) {
    grpc::ClientContext context;
    connection_->Authorize(&context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    v1::GetLoadResponse load;
    if (connection_->stub()->GetLoad(&context, {}, &load).ok()) {
      peak_bytes_ = std::max(peak_bytes_, load.kv_used_bytes());
    }
    absl::SleepFor(kPeriod);
  }
}

}  // namespace strata
