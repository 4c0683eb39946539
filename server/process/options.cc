#include "server/process/options.h"

#include <sched.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"

namespace strata {
namespace {

struct Unit {
  const char* suffix;
  int shift;
};
constexpr Unit kUnits[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

template <typename T>
absl::Status Refuse(const char* flag, const T& value,
                    const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": allowed are ", allowed));
}

absl::Status CheckRange(const char* flag, int64_t value, int64_t low,
                        int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Refuse(flag, value, absl::StrCat(low, " to ", high));
}

absl::Status CheckOneOf(const char* flag, const std::string& value,
                        std::initializer_list<const char*> allowed) {
  for (const char* choice : allowed) {
    if (value == choice) return absl::OkStatus();
  }
  return Refuse(flag, value, absl::StrJoin(allowed, ", "));
}

absl::Status CheckPeriod(const char* flag, absl::Duration period) {
  if (period >= absl::Milliseconds(1) && period <= absl::Hours(24)) {
    return absl::OkStatus();
  }
  return Refuse(flag, absl::FormatDuration(period), "1ms to 24h");
}

absl::Status CheckWait(const char* flag, absl::Duration wait) {
  if (wait >= absl::ZeroDuration()) return absl::OkStatus();
  return Refuse(flag, absl::FormatDuration(wait), "0 and more");
}

std::string LastPart(const std::string& path) {
  const absl::string_view whole = absl::StripSuffix(path, "/");
  return std::string(whole.substr(whole.rfind('/') + 1));
}

int MoreThanRunAndWait(const ServerOptions& options) {
  const int64_t max_live =
      int64_t{options.max_sequences} + options.max_queued_requests;
  return static_cast<int>(
      std::min<int64_t>(2 * max_live + 256, std::numeric_limits<int>::max()));
}

// Of files that only make sense together.
absl::Status CheckSecurity(const ServerOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError(
        "--tls_cert and --tls_key: both are needed for TLS, or neither");
  }
  if (!options.tls_client_ca.empty() && options.tls_cert.empty()) {
    return absl::InvalidArgumentError(
        "--tls_client_ca: needs --tls_cert and --tls_key");
  }
  if (options.metrics_need_key && options.api_key_file.empty() &&
      options.admin_key_file.empty()) {
    return absl::InvalidArgumentError(
        "--metrics_need_key: needs --api_key_file or --admin_key_file");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServerOptions::Validate() const {
  constexpr int kAny = std::numeric_limits<int>::max();
  if (model.empty()) {
    return absl::InvalidArgumentError(
        "--model is needed: a directory with config.json and safetensors, or a "
        ".gguf file");
  }
  if (host.empty()) {
    return absl::InvalidArgumentError("--host is empty: an address is needed");
  }
  STRATA_RETURN_IF_ERROR(CheckRange("grpc_port", grpc_port, 0, 65535));
  STRATA_RETURN_IF_ERROR(CheckRange("http_port", http_port, 0, 65535));
  if (grpc_port != 0 && grpc_port == http_port) {
    return Refuse("http_port", http_port, "ports other than --grpc_port");
  }
  STRATA_RETURN_IF_ERROR(
      CheckOneOf("backend", backend, {"auto", "cpu", "cuda"}));
  STRATA_RETURN_IF_ERROR(CheckRange("threads", threads, 0, 1024));
  STRATA_RETURN_IF_ERROR(CheckRange("tensor_parallel", tensor_parallel, 1, 64));
  STRATA_RETURN_IF_ERROR(CheckOneOf("precision", precision, {"auto", "f32"}));
  if (backend == "cuda" && precision == "f32") {
    return Refuse("precision", precision, "auto, with --backend=cuda");
  }
  for (const auto& [flag, value] :
       {std::pair{"weight_type", weight_type}, std::pair{"kv_type", kv_type}}) {
    STRATA_RETURN_IF_ERROR(CheckOneOf(flag, value, {"auto", "fp8"}));
    if (value == "auto" || (backend != "cpu" && precision == "auto")) continue;
    return Refuse(
        flag, value,
        absl::StrCat("auto, with ",
                     backend == "cpu" ? "--backend=cpu" : "--precision=f32"));
  }
  if (kv_memory.percent == 0 && kv_memory.bytes <= 0) {
    return Refuse("kv_memory", kv_memory.bytes, "1 byte and more");
  }
  if (page_tokens < 4 || page_tokens > 128 ||
      (page_tokens & (page_tokens - 1)) != 0) {
    return Refuse("page_tokens", page_tokens, "4, 8, 16, 32, 64, 128");
  }
  STRATA_RETURN_IF_ERROR(CheckRange("max_sequences", max_sequences, 1, 4096));
  STRATA_RETURN_IF_ERROR(
      CheckRange("max_batched_tokens", max_batched_tokens, 1, 65536));
  if (max_batched_tokens < max_sequences) {
    return Refuse("max_batched_tokens", max_batched_tokens,
                  absl::StrCat("--max_sequences (", max_sequences,
                               ") and more: each may need a row in a step"));
  }
  STRATA_RETURN_IF_ERROR(CheckRange("max_model_len", max_model_len, 0, kAny));
  STRATA_RETURN_IF_ERROR(
      CheckOneOf("admission", admission, {"reserve", "optimistic"}));
  if (!(pressure_threshold > 0 && pressure_threshold <= 1)) {
    return Refuse("pressure_threshold", pressure_threshold, "above 0 to 1");
  }
  STRATA_RETURN_IF_ERROR(
      CheckRange("max_queued_requests", max_queued_requests, 0, kAny));
  STRATA_RETURN_IF_ERROR(
      CheckRange("max_message_mib", max_message_mib, 1, 2047));
  STRATA_RETURN_IF_ERROR(
      CheckRange("max_concurrent_streams", max_concurrent_streams, 0, kAny));
  STRATA_RETURN_IF_ERROR(CheckRange("max_live_calls", max_live_calls, 0, kAny));
  STRATA_RETURN_IF_ERROR(CheckPeriod("keepalive_time", keepalive_time));
  STRATA_RETURN_IF_ERROR(CheckPeriod("keepalive_timeout", keepalive_timeout));
  STRATA_RETURN_IF_ERROR(CheckPeriod("stall_limit", stall_limit));
  STRATA_RETURN_IF_ERROR(CheckWait("shutdown_delay", shutdown_delay));
  STRATA_RETURN_IF_ERROR(CheckWait("drain_timeout", drain_timeout));
  STRATA_RETURN_IF_ERROR(CheckSecurity(*this));
  STRATA_RETURN_IF_ERROR(
      CheckOneOf("reflection", reflection, {"auto", "on", "off"}));
  return CheckOneOf("log_format", log_format, {"text", "json"});
}

int ServerOptions::MaxConcurrentStreams() const {
  return max_concurrent_streams > 0 ? max_concurrent_streams
                                    : MoreThanRunAndWait(*this);
}

int ServerOptions::MaxLiveCalls() const {
  return max_live_calls > 0 ? max_live_calls : MoreThanRunAndWait(*this);
}

std::string ServerOptions::ModelName() const {
  if (!served_model_name.empty()) return served_model_name;
  const std::string last = LastPart(model);
  const absl::string_view stem = absl::StripSuffix(last, ".gguf");
  const std::string name(stem.empty() ? "model" : stem);
  const std::string added = LastPart(adapter);
  return added.empty() ? name : absl::StrCat(name, "+", added);
}

int ServerOptions::NumThreads() const {
  if (threads > 0) return threads;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

absl::StatusOr<int64_t> ParseByteSize(const std::string& text) {
  absl::string_view digits = text;
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (absl::ConsumeSuffix(&digits, unit.suffix)) {
      shift = unit.shift;
      break;
    }
  }
  uint64_t count = 0;
  const bool is_number =
      !digits.empty() &&
      digits.find_first_not_of("0123456789") == digits.npos &&
      absl::SimpleAtoi(digits, &count);
  const uint64_t max = std::numeric_limits<int64_t>::max() >> shift;
  if (!is_number || count > max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text,
        "\" is no size: allowed are whole numbers of bytes, KiB, MiB or GiB "
        "(1GiB)"));
  }
  return static_cast<int64_t>(count << shift);
}

absl::StatusOr<MemorySize> ParseMemorySize(const std::string& text) {
  absl::string_view digits = text;
  if (!absl::ConsumeSuffix(&digits, "%")) {
    STRATA_ASSIGN_OR_RETURN(const int64_t bytes, ParseByteSize(text));
    return MemorySize{.bytes = bytes};
  }
  MemorySize size;
  const bool is_number =
      digits.find_first_not_of("0123456789") == digits.npos &&
      absl::SimpleAtoi(digits, &size.percent);
  if (is_number && size.percent >= 1 && size.percent <= 99) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\": allowed are 1% to 99%"));
}

std::string FormatMemorySize(const MemorySize& size) {
  return size.percent > 0 ? absl::StrCat(size.percent, "%")
                          : FormatByteSize(size.bytes);
}

std::string FormatByteSize(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    const int64_t whole = bytes >> unit.shift;
    if (whole > 0 && whole << unit.shift == bytes) {
      return absl::StrCat(whole, unit.suffix);
    }
  }
  return absl::StrCat(bytes, " bytes");
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
ParseNamedStrategies(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> strategies;
  for (const absl::string_view entry :
       absl::StrSplit(text, ';', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> named =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    if (named.first.empty() || named.second.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" is no NAME=SPEC (half=every=2;quarter=every=4)"));
    }
    for (const auto& [name, spec] : strategies) {
      if (name == named.first) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", name, "\" is named twice"));
      }
    }
    strategies.push_back(named);
  }
  return strategies;
}

}  // namespace strata
