#include "server/process/flags.h"

#include <algorithm>
#include <iterator>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/flags.h"
#include "base/quote.h"
#include "server/process/config_file.h"

ABSL_FLAG(std::string, model, "",
          "a directory with config.json and safetensors, or a .gguf file");
ABSL_FLAG(std::string, adapter, "",
          "a LoRA adapter for the model, merged when it is loaded: a directory "
          "with adapter_config.json and adapter_model.safetensors (PEFT)");
ABSL_FLAG(std::string, served_model_name, "",
          "name that clients ask for; empty: that of the file or directory, "
          "and of --adapter after a +");
ABSL_FLAG(std::string, host, "127.0.0.1", "address to listen on");
ABSL_FLAG(int, grpc_port, 8001, "port of the gRPC API; 0: a free one");
ABSL_FLAG(
    int, http_port, 8002,
    "port of /metrics, /health, /health/live and /health/ready; 0: a free "
    "one");
ABSL_FLAG(std::string, backend, "auto", "what computes: auto, cpu, cuda");
ABSL_FLAG(int, threads, 0, "threads that compute; 0: all cores");
ABSL_FLAG(int, tensor_parallel, 1,
          "GPUs of this host that compute the model together, each with its "
          "part of heads, MLP and vocabulary: a number that divides the KV "
          "heads; on the CPU, parts of the threads, which gains nothing");
ABSL_FLAG(std::string, precision, "auto",
          "auto: what is fastest; f32: exact products and a KV cache in f32");
ABSL_FLAG(std::string, weight_type, "auto",
          "matrices of the model: auto: as its file has them; fp8: those of "
          "F32, F16 and BF16 as E4M3 with a scale for each row, on GPUs alone");
ABSL_FLAG(std::string, kv_type, "auto",
          "elements of the KV cache: auto: bf16, or f32 with --precision=f32; "
          "fp8: half of bf16, on GPUs alone");
ABSL_FLAG(std::string, kv_memory, "1GiB",
          "memory for the KV cache: bytes, KiB, MiB or GiB; or 90%: of what is "
          "free beside weights and workspace");
ABSL_FLAG(int, page_tokens, 16,
          "positions of a page of the KV cache: a power of two, 4 to 128");
ABSL_FLAG(int, max_sequences, 64, "sequences that run at once");
ABSL_FLAG(int, max_batched_tokens, 512, "rows of one step");
ABSL_FLAG(int, max_model_len, 0,
          "positions of prompt and generated tokens together; 0: the model's");
ABSL_FLAG(std::string, default_strategy, "full",
          "KV-sharing strategy of requests that name none: full, every=N, "
          "keep=R, prefix=K, leaders=..., sources=... or a name of "
          "--strategies");
ABSL_FLAG(std::string, strategies, "",
          "names for strategies: half=every=2;quarter=every=4");
ABSL_FLAG(std::string, admission, "reserve",
          "when a request starts: reserve: once the pool can hold it until its "
          "end; optimistic: once it can hold its prompt, and what does not fit "
          "later is pre-empted and recomputed");
ABSL_FLAG(bool, demote_under_pressure, true,
          "switch requests with a floor to it when memory runs out; those that "
          "can never fit otherwise start at it all the same");
ABSL_FLAG(double, pressure_threshold, 0.9,
          "part of the KV pool, above 0 to 1, from which on memory counts as "
          "running out");
ABSL_FLAG(int, max_queued_requests, 256,
          "requests that may wait; the next one is refused");
ABSL_FLAG(int, max_message_mib, 64, "largest gRPC message, in MiB");
ABSL_FLAG(int, max_concurrent_streams, 0,
          "calls at once on one connection; more wait at the client; 0: twice "
          "what can run and wait, and 256");
ABSL_FLAG(int, max_live_calls, 0,
          "requests at once of all connections, with those that have ended and "
          "whose reader is behind; the next one is refused; 0: twice what can "
          "run and wait, and 256");
ABSL_FLAG(absl::Duration, keepalive_time, absl::Seconds(60),
          "a connection that has been silent for so long is asked whether its "
          "client is still there");
ABSL_FLAG(absl::Duration, keepalive_timeout, absl::Seconds(20),
          "without an answer for so long, the connection and its calls end");
ABSL_FLAG(absl::Duration, stall_limit, absl::Seconds(30),
          "requests are there and no step has ended for so long: the server "
          "is no longer live");
ABSL_FLAG(absl::Duration, shutdown_delay, absl::ZeroDuration(),
          "after SIGTERM, how long new calls are still taken while the server "
          "says that it is not ready");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(30),
          "after that, how long running requests may go on");
ABSL_FLAG(std::string, reflection, "auto",
          "gRPC server reflection: auto (on), on, off");
ABSL_FLAG(std::string, tls_cert, "",
          "PEM file of the server's certificate and those that issued it: TLS "
          "on the gRPC port; read anew when it changes, as are the next four");
ABSL_FLAG(std::string, tls_key, "", "PEM file of its private key");
ABSL_FLAG(std::string, tls_client_ca, "",
          "PEM file: clients must show a certificate that it issued");
ABSL_FLAG(std::string, api_key_file, "",
          "keys of callers, one a line, # begins a comment: every call but "
          "those of grpc.health.v1 needs one, or an admin key");
ABSL_FLAG(std::string, admin_key_file, "",
          "keys of strata.v1.Admin; without, it is for callers on this host");
ABSL_FLAG(bool, metrics_need_key, false, "/metrics needs a key as well");
ABSL_FLAG(std::string, log_format, "text", "log lines on stderr: text, json");
ABSL_FLAG(std::string, config, "",
          "a YAML file whose keys are these flags; the command line wins");

namespace strata {
namespace {

// In the order of --help.
constexpr const char* kFlags[] = {
    "model",
    "adapter",
    "served_model_name",
    "host",
    "grpc_port",
    "http_port",
    "backend",
    "threads",
    "tensor_parallel",
    "precision",
    "weight_type",
    "kv_type",
    "kv_memory",
    "page_tokens",
    "max_sequences",
    "max_batched_tokens",
    "max_model_len",
    "default_strategy",
    "strategies",
    "admission",
    "demote_under_pressure",
    "pressure_threshold",
    "max_queued_requests",
    "max_message_mib",
    "max_concurrent_streams",
    "max_live_calls",
    "keepalive_time",
    "keepalive_timeout",
    "stall_limit",
    "shutdown_delay",
    "drain_timeout",
    "reflection",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "api_key_file",
    "admin_key_file",
    "metrics_need_key",
    "log_format",
    "config",
};

bool IsOurs(const std::string& name) {
  return std::find(std::begin(kFlags), std::end(kFlags), name) !=
         std::end(kFlags);
}

absl::Status SetFlagsFromFile(const std::string& path) {
  STRATA_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries,
                          ReadConfigFile(path));
  for (const ConfigEntry& entry : entries) {
    const std::string where = absl::StrCat(path, ":", entry.line, ": ");
    if (!IsOurs(entry.key) || entry.key == "config") {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "unknown key \"", entry.key,
                       "\"; keys are the flags of ", "strata_server --help"));
    }
    std::string error;
    if (!absl::FindCommandLineFlag(entry.key)->ParseFrom(entry.value, &error)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "\"", entry.value, "\" is no value for \"",
                       entry.key, "\"", error.empty() ? "" : ": ", error));
    }
  }
  return absl::OkStatus();
}

absl::Status SetFlagsFromArgs(const std::vector<std::string>& args) {
  STRATA_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                          SetFlags(args, FlagsNamed(kFlags)));
  if (words.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "unexpected argument ", Quote(words[0]), ": all flags are --name=value"));
}

// `result`, or its error with the flag's name in front.
template <typename T>
absl::StatusOr<T> OfFlag(const char* flag, absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", result.status().message()));
}

}  // namespace

std::string HelpText() {
  return absl::StrCat(
      "strata_server: serves a language model over gRPC, with a KV-sharing "
      "strategy for\neach request.\n\n"
      "  strata_server --model=PATH [--flag=value ...]\n\n",
      FlagHelp(FlagsNamed(kFlags)));
}

absl::StatusOr<ServerOptions> OptionsFromFlags(
    const std::vector<std::string>& args) {
  STRATA_RETURN_IF_ERROR(SetFlagsFromArgs(args));
  const std::string config = absl::GetFlag(FLAGS_config);
  if (!config.empty()) {
    STRATA_RETURN_IF_ERROR(SetFlagsFromFile(config));
    STRATA_RETURN_IF_ERROR(SetFlagsFromArgs(args));  // which win
  }

  ServerOptions options;
  options.model = absl::GetFlag(FLAGS_model);
  options.adapter = absl::GetFlag(FLAGS_adapter);
  options.served_model_name = absl::GetFlag(FLAGS_served_model_name);
  options.host = absl::GetFlag(FLAGS_host);
  options.grpc_port = absl::GetFlag(FLAGS_grpc_port);
  options.http_port = absl::GetFlag(FLAGS_http_port);
  options.backend = absl::GetFlag(FLAGS_backend);
  options.threads = absl::GetFlag(FLAGS_threads);
  options.tensor_parallel = absl::GetFlag(FLAGS_tensor_parallel);
  options.precision = absl::GetFlag(FLAGS_precision);
  options.weight_type = absl::GetFlag(FLAGS_weight_type);
  options.kv_type = absl::GetFlag(FLAGS_kv_type);
  STRATA_ASSIGN_OR_RETURN(
      options.kv_memory,
      OfFlag("kv_memory", ParseMemorySize(absl::GetFlag(FLAGS_kv_memory))));
  options.page_tokens = absl::GetFlag(FLAGS_page_tokens);
  options.max_sequences = absl::GetFlag(FLAGS_max_sequences);
  options.max_batched_tokens = absl::GetFlag(FLAGS_max_batched_tokens);
  options.max_model_len = absl::GetFlag(FLAGS_max_model_len);
  options.default_strategy = absl::GetFlag(FLAGS_default_strategy);
  STRATA_ASSIGN_OR_RETURN(
      options.strategies,
      OfFlag("strategies",
             ParseNamedStrategies(absl::GetFlag(FLAGS_strategies))));
  options.admission = absl::GetFlag(FLAGS_admission);
  options.demote_under_pressure = absl::GetFlag(FLAGS_demote_under_pressure);
  options.pressure_threshold = absl::GetFlag(FLAGS_pressure_threshold);
  options.max_queued_requests = absl::GetFlag(FLAGS_max_queued_requests);
  options.max_message_mib = absl::GetFlag(FLAGS_max_message_mib);
  options.max_concurrent_streams = absl::GetFlag(FLAGS_max_concurrent_streams);
  options.max_live_calls = absl::GetFlag(FLAGS_max_live_calls);
  options.keepalive_time = absl::GetFlag(FLAGS_keepalive_time);
  options.keepalive_timeout = absl::GetFlag(FLAGS_keepalive_timeout);
  options.stall_limit = absl::GetFlag(FLAGS_stall_limit);
  options.shutdown_delay = absl::GetFlag(FLAGS_shutdown_delay);
  options.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  options.reflection = absl::GetFlag(FLAGS_reflection);
  options.tls_cert = absl::GetFlag(FLAGS_tls_cert);
  options.tls_key = absl::GetFlag(FLAGS_tls_key);
  options.tls_client_ca = absl::GetFlag(FLAGS_tls_client_ca);
  options.api_key_file = absl::GetFlag(FLAGS_api_key_file);
  options.admin_key_file = absl::GetFlag(FLAGS_admin_key_file);
  options.metrics_need_key = absl::GetFlag(FLAGS_metrics_need_key);
  options.log_format = absl::GetFlag(FLAGS_log_format);
  STRATA_RETURN_IF_ERROR(options.Validate());
  return options;
}

}  // namespace strata
