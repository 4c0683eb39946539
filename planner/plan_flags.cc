#include "planner/plan_flags.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/flags.h"
#include "base/quote.h"
#include "client/strategy_list.h"
#include "server/process/options.h"

ABSL_FLAG(std::string, model, "",
          "a directory with config.json, with or without safetensors, or a "
          ".gguf file");
ABSL_FLAG(std::string, shape, "",
          "instead of --model: a public model by name (qwen3-8b); a wrong name "
          "lists them");
ABSL_FLAG(std::string, weight_type, "",
          "of --shape, or of a --model without weights: bf16 (the default), "
          "f16, f32, q8_0, q4_0, q4_1; of any model, fp8: the server's "
          "--weight_type=fp8, on a GPU");
ABSL_FLAG(std::string, device, "h100",
          "what computes: a100, h100, h200, l4, ... by their data sheets, cpu "
          "(this one, measured), gpu (another one, as given); a wrong name "
          "lists them");
ABSL_FLAG(std::string, memory, "",
          "for weights, workspace and KV cache: bytes, MB, GB, TB (powers of "
          "1000), KiB, MiB, GiB (of 1024); empty: the GPU's");
ABSL_FLAG(std::string, workspace, "",
          "of it, what is neither weights nor KV cache; empty: the activations "
          "of a step, and on a GPU 1GiB for driver and libraries");
ABSL_FLAG(double, read_bandwidth, 0, "of the memory, GB/s; 0: the device's");
ABSL_FLAG(double, flops, 0,
          "dense products at the precision used, TFLOP/s; 0: the device's");
ABSL_FLAG(int, threads, 0, "of --device=cpu; 0: all cores");
ABSL_FLAG(int, tensor_parallel, 1,
          "the server's: GPUs that compute the model together; --memory, "
          "--read_bandwidth and --flops are those of each");
ABSL_FLAG(std::string, kv_type, "bf16",
          "elements of the KV cache: bf16, f32 (the CPU's --precision=f32) or "
          "fp8 (the GPU's --kv_type=fp8)");
ABSL_FLAG(int, page_tokens, strata::ServerOptions().page_tokens,
          "the server's: positions of a page");
ABSL_FLAG(int, max_batched_tokens, strata::ServerOptions().max_batched_tokens,
          "the server's: rows of one step");
ABSL_FLAG(int, context, 0,
          "tokens of each prompt; 0: 32768, or what the model was made for "
          "less --output_tokens");
ABSL_FLAG(int, output_tokens, 128, "tokens generated after each prompt");
ABSL_FLAG(std::string, strategies, "full;every=2;every=4;every=8",
          "strategies to plan for, separated by ';' or ','");
ABSL_FLAG(std::string, batch, "1,4,16",
          "sequences at once to estimate the speed of, separated by ','");
ABSL_FLAG(std::string, json, "", "file that the plan is written to as JSON");

namespace strata {
namespace {

constexpr const char* kFlags[] = {
    "model",           "shape",   "weight_type",    "device",
    "memory",          "context", "output_tokens",  "strategies",
    "batch",           "kv_type", "page_tokens",    "max_batched_tokens",
    "workspace",       "threads", "read_bandwidth", "flops",
    "tensor_parallel", "json"};

template <typename T>
absl::Status Refuse(const char* flag, const T& value,
                    const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": allowed are ", allowed));
}

absl::StatusOr<std::optional<int64_t>> MemoryOf(const char* flag,
                                                const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto bytes = ParseMemory(text);
  if (!bytes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": ", bytes.status().message()));
  }
  constexpr int64_t kMost = int64_t{1} << 54;  // of many GPUs, still in range
  if (*bytes > kMost) return Refuse(flag, text, "up to 16777216GiB");
  return *bytes;
}

absl::StatusOr<std::optional<DType>> WeightTypeOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0,
                           DType::kQ4_0, DType::kQ4_1}) {
    if (absl::EqualsIgnoreCase(text, DTypeName(type))) return type;
  }
  return Refuse("weight_type", Quote(text),
                "bf16, f16, f32, q8_0, q4_0, q4_1, fp8");
}

absl::StatusOr<std::vector<int>> BatchesOf(const std::string& text) {
  std::vector<int> batches;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int batch = 0;
    if (!absl::SimpleAtoi(item, &batch) || batch < 1 || batch > 65536) {
      return Refuse("batch", Quote(text),
                    "numbers of 1 to 65536, separated by ','");
    }
    batches.push_back(batch);
  }
  return batches;
}

absl::Status CheckRate(const char* flag, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return Refuse(flag, value, "0 and more");
}

absl::Status CheckNumbers(const PlanFlags& flags, int threads) {
  STRATA_RETURN_IF_ERROR(CheckRate("read_bandwidth", flags.read_gb_per_second));
  STRATA_RETURN_IF_ERROR(CheckRate("flops", flags.teraflops));
  if (flags.context < 0) {
    return Refuse("context", flags.context, "1 and more, or 0");
  }
  if (flags.output_tokens < 1) {
    return Refuse("output_tokens", flags.output_tokens, "1 and more");
  }
  // The others are the server's flags, with its limits.
  ServerOptions options;
  options.model = "planned";
  options.max_sequences = 1;
  options.threads = threads;
  options.tensor_parallel = flags.tensor_parallel;
  options.page_tokens = flags.page_tokens;
  options.max_batched_tokens = flags.max_batched_tokens;
  return options.Validate();
}

absl::StatusOr<PlannedKvType> KvTypeOf(const std::string& text) {
  for (const PlannedKvType type :
       {PlannedKvType::kF32, PlannedKvType::kBF16, PlannedKvType::kFp8}) {
    if (text == NameOf(type)) return type;
  }
  return Refuse("kv_type", Quote(text), "bf16, f32, fp8");
}

absl::Status CheckChoices(const PlanFlags& flags) {
  if (flags.model.empty() == flags.shape.empty()) {
    return absl::InvalidArgumentError(
        "either --model or --shape is needed: a directory with config.json, a "
        ".gguf file, or the name of a public model");
  }
  const bool is_cpu = flags.device == "cpu";
  if (flags.kv_type == PlannedKvType::kF32 && !is_cpu) {
    return Refuse("kv_type", "f32", "bf16, fp8, but with --device=cpu");
  }
  if (flags.kv_type == PlannedKvType::kFp8 && is_cpu) {
    return Refuse("kv_type", "fp8", "bf16, f32, with --device=cpu");
  }
  if (flags.tensor_parallel > 1 && flags.device == "cpu") {
    return Refuse("tensor_parallel", flags.tensor_parallel,
                  "1, with --device=cpu");
  }
  return absl::OkStatus();
}

}  // namespace

std::string PlanHelp() {
  const std::string text =
      "What a model needs and how fast it can be at best, for every "
      "KV-sharing strategy: its KV cache, the\nsequences that memory holds at "
      "once, and upper limits of its speed.\n\n"
      "  ./strata plan --model=PATH --memory=80GB --context=32768 [flags]\n\n";
  return text + FlagHelp(FlagsNamed(kFlags));
}

absl::StatusOr<PlanFlags> PlanFlagsFrom(const std::vector<std::string>& args) {
  STRATA_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                          SetFlags(args, FlagsNamed(kFlags)));
  if (!words.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unexpected argument ", Quote(words[0]), ": all are --name=value"));
  }
  PlanFlags flags;
  flags.model = absl::GetFlag(FLAGS_model);
  flags.shape = absl::GetFlag(FLAGS_shape);
  flags.device = absl::GetFlag(FLAGS_device);
  flags.read_gb_per_second = absl::GetFlag(FLAGS_read_bandwidth);
  flags.teraflops = absl::GetFlag(FLAGS_flops);
  flags.tensor_parallel = absl::GetFlag(FLAGS_tensor_parallel);
  flags.page_tokens = absl::GetFlag(FLAGS_page_tokens);
  flags.max_batched_tokens = absl::GetFlag(FLAGS_max_batched_tokens);
  flags.context = absl::GetFlag(FLAGS_context);
  flags.output_tokens = absl::GetFlag(FLAGS_output_tokens);
  flags.strategies = SplitStrategies(absl::GetFlag(FLAGS_strategies));
  flags.json = absl::GetFlag(FLAGS_json);
  STRATA_ASSIGN_OR_RETURN(flags.kv_type,
                          KvTypeOf(absl::GetFlag(FLAGS_kv_type)));
  STRATA_RETURN_IF_ERROR(CheckChoices(flags));
  ServerOptions options;
  options.threads = absl::GetFlag(FLAGS_threads);
  STRATA_RETURN_IF_ERROR(CheckNumbers(flags, options.threads));
  flags.threads = options.NumThreads();
  const std::string weight_type = absl::GetFlag(FLAGS_weight_type);
  flags.fp8_weights = absl::EqualsIgnoreCase(weight_type, "fp8");
  if (flags.fp8_weights && flags.device == "cpu") {
    return Refuse("weight_type", weight_type, "others, with --device=cpu");
  }
  if (!flags.fp8_weights) {
    STRATA_ASSIGN_OR_RETURN(flags.weight_type, WeightTypeOf(weight_type));
  }
  STRATA_ASSIGN_OR_RETURN(flags.memory_bytes,
                          MemoryOf("memory", absl::GetFlag(FLAGS_memory)));
  STRATA_ASSIGN_OR_RETURN(
      flags.workspace_bytes,
      MemoryOf("workspace", absl::GetFlag(FLAGS_workspace)));
  STRATA_ASSIGN_OR_RETURN(flags.batches, BatchesOf(absl::GetFlag(FLAGS_batch)));
  return flags;
}

absl::StatusOr<int64_t> ParseMemory(const std::string& text) {
  struct Unit {
    const char* suffix;
    int64_t bytes;
  };
  for (const Unit& unit : {Unit{"MB", 1'000'000}, Unit{"GB", 1'000'000'000},
                           Unit{"TB", 1'000'000'000'000}}) {
    absl::string_view digits = text;
    if (!absl::ConsumeSuffix(&digits, unit.suffix)) continue;
    const auto count = ParseByteSize(std::string(digits));
    const bool has_unit = digits.find('B') != digits.npos;  // "1KiBGB"
    int64_t bytes = 0;
    if (count.ok() && !has_unit &&
        !__builtin_mul_overflow(*count, unit.bytes, &bytes)) {
      return bytes;
    }
  }
  const auto bytes = ParseByteSize(text);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(
      Quote(text),
      " is no size: allowed are whole numbers of bytes, MB, GB, TB (powers of "
      "1000), KiB, MiB or GiB (of 1024)"));
}

}  // namespace strata
