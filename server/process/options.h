#ifndef SERVER_PROCESS_OPTIONS_H_
#define SERVER_PROCESS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace strata {

// Memory as a flag names it: bytes, or a part of what is free.
struct MemorySize {
  int64_t bytes = 0;  // where percent is 0
  int percent = 0;    // 1 to 99, or 0

  // In whole bytes, where `free_bytes` are free.
  int64_t BytesOf(int64_t free_bytes) const {
    return percent > 0 ? free_bytes / 100 * percent : bytes;
  }
};

// What strata_server is told on its command line and in its configuration file
// (server/process/flags.h): one field for each flag, with its default.
struct ServerOptions {
  std::string model;              // a directory or a .gguf file
  std::string adapter;            // a PEFT LoRA directory; empty: none
  std::string served_model_name;  // empty: by the names of model and adapter
  std::string host = "127.0.0.1";
  int grpc_port = 8001;              // 0: a free one
  int http_port = 8002;              // 0: a free one
  std::string backend = "auto";      // auto, cpu, cuda
  int threads = 0;                   // 0: all cores
  int tensor_parallel = 1;           // devices that compute one model together
  std::string precision = "auto";    // auto, f32
  std::string weight_type = "auto";  // auto, fp8
  std::string kv_type = "auto";      // auto, fp8
  MemorySize kv_memory = {.bytes = int64_t{1} << 30};
  int page_tokens = 16;
  int max_sequences = 64;
  int max_batched_tokens = 512;
  int max_model_len = 0;  // 0: the model's
  std::string default_strategy = "full";
  // Name and spec, in the order given.
  std::vector<std::pair<std::string, std::string>> strategies;
  std::string admission = "reserve";  // reserve, optimistic
  bool demote_under_pressure = true;
  double pressure_threshold = 0.9;  // of the KV pool, in (0, 1]
  int max_queued_requests = 256;
  int max_message_mib = 64;
  int max_concurrent_streams = 0;  // 0: more than can run and wait
  int max_live_calls = 0;          // 0: more than can run and wait
  absl::Duration keepalive_time = absl::Seconds(60);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  absl::Duration stall_limit = absl::Seconds(30);
  absl::Duration shutdown_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);
  std::string reflection = "auto";  // auto, on, off
  // PEM files; empty: none.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  // Files of keys, one a line; empty: none.
  std::string api_key_file;
  std::string admin_key_file;
  bool metrics_need_key = false;
  std::string log_format = "text";  // text, json

  // INVALID_ARGUMENT naming the flag, its value and what is allowed.
  absl::Status Validate() const;
  int MaxMessageBytes() const { return max_message_mib << 20; }
  // --max_concurrent_streams, or so many that the queue's limit is met first.
  int MaxConcurrentStreams() const;
  // --max_live_calls, or the same.
  int MaxLiveCalls() const;

  // --served_model_name, or the last part of --model without .gguf and, after a
  // +, that of --adapter.
  std::string ModelName() const;
  // --threads, or the cores that this process may use.
  int NumThreads() const;
};

// "1GiB", "512MiB", "64KiB" or "1048576": bytes.
absl::StatusOr<int64_t> ParseByteSize(const std::string& text);

// A byte size, or "90%".
absl::StatusOr<MemorySize> ParseMemorySize(const std::string& text);

// As it is parsed.
std::string FormatMemorySize(const MemorySize& size);

// In the largest unit of which it is a whole number: "1GiB", "100 bytes".
std::string FormatByteSize(int64_t bytes);

// "half=every=2;quarter=every=4": names and specs.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
ParseNamedStrategies(const std::string& text);

}  // namespace strata

#endif  // SERVER_PROCESS_OPTIONS_H_
