// Files changed at random, with fixed seeds: the loader answers with a model
// whose every byte can be read, or with an error of one line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/layer_tensors.h"
#include "core/model/lora_adapter.h"
#include "core/model/matrix_merger.h"
#include "tests/core/model/temp_files.h"
#include "tests/core/model/tiny_adapter.h"
#include "tests/core/model/tiny_model.h"

namespace strata {
namespace {

constexpr int kMutations = 2000;  // of each kind

// Reads every byte, which the sanitizers watch, and checks that they lie in a
// mapped file.
void ReadView(const Checkpoint& checkpoint, const WeightView& view,
              int64_t rows, int64_t cols) {
  if (view.data == nullptr) return;
  // An interleaved bias is a column.
  ASSERT_EQ(view.rows * view.cols, rows * cols);
  ASSERT_EQ(view.cols % BlockElements(view.type), 0);
  const bool is_inside =
      std::ranges::any_of(checkpoint.files, [&view](const auto& file) {
        const auto bytes = file->bytes();
        return view.data >= bytes.data() &&
               view.data + view.NumBytes() <= bytes.data() + bytes.size();
      });
  ASSERT_TRUE(is_inside);
  unsigned sum = 0;
  for (int64_t i = 0; i < view.NumBytes(); ++i)
    sum += std::to_integer<unsigned>(view.data[i]);
  volatile unsigned sink = sum;
  (void)sink;
}

void ReadAll(const Checkpoint& checkpoint) {
  const ModelConfig& c = checkpoint.config;
  ASSERT_TRUE(c.Validate().ok()) << c.Validate();
  const int64_t query = int64_t{c.num_heads} * c.head_dim;
  const int64_t key_value = int64_t{c.num_kv_heads} * c.head_dim;
  ReadView(checkpoint, checkpoint.embedding, c.vocab_size, c.hidden_size);
  ReadView(checkpoint, checkpoint.head, c.vocab_size, c.hidden_size);
  ReadView(checkpoint, checkpoint.final_norm, 1, c.hidden_size);
  ASSERT_EQ(checkpoint.layers.size(), static_cast<size_t>(c.num_layers));
  for (const LayerWeights& layer : checkpoint.layers) {
    ReadView(checkpoint, layer.attention_norm, 1, c.hidden_size);
    ReadView(checkpoint, layer.wq, query, c.hidden_size);
    ReadView(checkpoint, layer.wk, key_value, c.hidden_size);
    ReadView(checkpoint, layer.wv, key_value, c.hidden_size);
    ReadView(checkpoint, layer.wo, c.hidden_size, query);
    ReadView(checkpoint, layer.bq, 1, query);
    ReadView(checkpoint, layer.bk, 1, key_value);
    ReadView(checkpoint, layer.bv, 1, key_value);
    ReadView(checkpoint, layer.bo, 1, c.hidden_size);
    ReadView(checkpoint, layer.q_norm, 1, c.head_dim);
    ReadView(checkpoint, layer.k_norm, 1, c.head_dim);
    ReadView(checkpoint, layer.mlp_norm, 1, c.hidden_size);
    ReadView(checkpoint, layer.gate, c.intermediate_size, c.hidden_size);
    ReadView(checkpoint, layer.up, c.intermediate_size, c.hidden_size);
    ReadView(checkpoint, layer.down, c.hidden_size, c.intermediate_size);
  }
  for (const int32_t id : checkpoint.eos_ids) {
    ASSERT_GE(id, 0);
    ASSERT_LT(id, c.vocab_size);
  }
}

// One random change; most of them in the first `head` bytes, where the
// structure is.
std::string Mutate(std::string file, size_t head, std::mt19937_64* random) {
  const auto below = [random](size_t n) {
    return n == 0 ? 0 : (*random)() % n;
  };
  const auto place = [&] {
    return below(below(8) != 0 ? std::min(head, file.size()) : file.size());
  };
  switch (below(7)) {
    case 0:
      file.resize(place());
      break;
    case 1:
      file.append(1 + below(100), static_cast<char>((*random)()));
      break;
    case 2:
      file.erase(place(), 1 + below(16));
      break;
    case 3:
      file.insert(place(), 1 + below(16), static_cast<char>((*random)()));
      break;
    case 4: {
      constexpr uint64_t kSpecial[] = {0,
                                       1,
                                       2,
                                       31,
                                       255,
                                       0x7fffffff,
                                       0xffffffff,
                                       uint64_t{1} << 32,
                                       uint64_t{1} << 61,
                                       uint64_t{1} << 62,
                                       uint64_t{1} << 63,
                                       ~uint64_t{0},
                                       ~uint64_t{31}};
      const std::string bytes = Bytes(kSpecial[below(std::size(kSpecial))]);
      const size_t count = below(2) == 0 ? 4 : 8;
      file.replace(place(), count, bytes.substr(0, count));
      break;
    }
    case 5: {  // digits and types of JSON, small numbers of GGUF
      constexpr std::string_view kBytes =
          "0123456789-.eE,:[]{}\"ntf\\\0\1\2\3\4\5\6\7\10\11";
      if (!file.empty()) file[place()] = kBytes[below(kBytes.size())];
      break;
    }
    default:
      for (size_t i = 0; i <= below(4) && !file.empty(); ++i) {
        file[place()] ^= static_cast<char>(1 << below(8));
      }
  }
  return file;
}

// Counts what loading `path` gave: {models, errors}.
struct Outcome {
  int models = 0;
  int errors = 0;
};

void LoadMutant(const std::string& path, const std::string& mutated_path,
                Outcome* outcome) {
  auto checkpoint = LoadCheckpoint(path);
  if (checkpoint.ok()) {
    ++outcome->models;
    ReadAll(*checkpoint);
    return;
  }
  ++outcome->errors;
  const std::string message(checkpoint.status().message());
  EXPECT_EQ(message.rfind(path, 0), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), mutated_path.size() + 600) << message;
}

TEST(MutationTest, Gguf) {
  TinyModel model = TinyModel::Gguf("llama");
  for (const char* layer : {"0.", "1."}) {
    const std::string blk = std::string("blk.") + layer;
    model.tensors[blk + "attn_q.bias"] = {.type = "F16", .shape = {24}};
    model.tensors[blk + "attn_k.bias"] = {.shape = {12}};
    model.tensors[blk + "attn_v.bias"] = {.type = "BF16", .shape = {12}};
  }
  model.tensors["unused"] = {.type = "Q8_0", .shape = {32}};
  model.metadata.String("tokenizer.ggml.model", "gpt2")
      .String("tokenizer.ggml.pre", "smollm")
      .Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>"})
      .Int32s("tokenizer.ggml.token_type", {1, 1, 1, 3})
      .Strings("tokenizer.ggml.merges", {"a b"})
      .U32("tokenizer.ggml.eos_token_id", 3)
      .U32("general.alignment", 32)
      .Pair(
          "x.array", GgufBuilder::kArray,
          Bytes<uint32_t>(GgufBuilder::kF64) + Bytes<uint64_t>(1) + Bytes(0.5));
  const TempDirectory directory;
  const std::string original = model.GgufFile();
  size_t data_bytes = 0;
  for (const auto& [name, tensor] : model.tensors) {
    size_t bytes = 4;
    for (const int64_t dim : tensor.shape) bytes *= dim;
    data_bytes += bytes;
  }
  const size_t head =
      original.size() - std::min(original.size() / 2, data_bytes);
  Outcome outcome;
  for (int seed = 0; seed < kMutations; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::string path =
        directory.Write("m.gguf", Mutate(original, head, &random));
    LoadMutant(path, path, &outcome);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(outcome.models, kMutations / 20);
  EXPECT_GT(outcome.errors, kMutations / 4);
}

TEST(MutationTest, Directory) {
  const TempDirectory directory;
  TinyModel model = TinyModel::HuggingFace("qwen2");
  model.config_changes =
      R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,
          "original_max_position_embeddings":64},"rms_norm_eps":1e-5,"tie_word_embeddings":false})";
  const std::string weights = model.SafetensorsFile();
  const std::vector<std::pair<std::string, std::string>> files = {
      {"config.json", model.ConfigJson()},
      {"generation_config.json", R"({"eos_token_id":[1,3]})"},
      {"model.safetensors", weights},
  };
  for (const auto& [name, content] : files) directory.Write(name, content);
  Outcome outcome;
  for (int seed = 0; seed < kMutations; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    // Most of the time the weights.
    const auto& [name, content] = files[std::min<size_t>(2, random() % 6)];
    const size_t head =
        name == "model.safetensors" ? 8 + weights.find("}}") : content.size();
    const std::string path =
        directory.Write(name, Mutate(content, head, &random));
    LoadMutant(directory.path(), path, &outcome);
    directory.Write(name, content);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(outcome.models, kMutations / 20);
  EXPECT_GT(outcome.errors, kMutations / 4);
}

TEST(MutationTest, ShardIndex) {
  const TempDirectory directory;
  const TinyModel model = TinyModel::HuggingFace("llama");
  directory.Write("config.json", model.ConfigJson());
  directory.Write("a.safetensors", model.SafetensorsFile());
  std::string index = R"({"weight_map":{)";
  for (const auto& [name, tensor] : model.tensors)
    index += "\"" + name + R"(":"a.safetensors",)";
  index.back() = '}';
  index += "}";
  Outcome outcome;
  for (int seed = 0; seed < kMutations; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::string mutated =
        seed == 0 ? index : Mutate(index, index.size(), &random);
    const std::string path =
        directory.Write("model.safetensors.index.json", mutated);
    LoadMutant(directory.path(), path, &outcome);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(outcome.models, 0);
  EXPECT_GT(outcome.errors, kMutations / 4);
}

// Merges every update, which the sanitizers watch.
void MergeAll(const Checkpoint& checkpoint) {
  MatrixMerger merger(1);
  for (size_t i = 0; i < checkpoint.layers.size(); ++i) {
    const LayerUpdates updates = checkpoint.UpdatesOf(i);
    for (const LayerMatrix& entry : kLayerMatrices) {
      const LowRankUpdate& update = updates.*entry.update;
      if (!update.is_present()) continue;
      const WeightView& base = checkpoint.layers[i].*entry.view;
      ReadView(checkpoint, update.a, update.a.rows, base.cols);
      ReadView(checkpoint, update.b, base.rows, update.a.rows);
      ASSERT_EQ(merger.Merge(base, update).rows, base.rows);
    }
  }
}

TEST(MutationTest, Adapter) {
  const TempDirectory directory;
  const TinyModel model = TinyModel::HuggingFace("qwen3");
  directory.Write("config.json", model.ConfigJson());
  directory.Write("model.safetensors", model.SafetensorsFile());
  TinyAdapter adapter;
  adapter.config.merge_patch(nlohmann::json::parse(R"({
      "use_rslora": true, "modules_to_save": ["0.self_attn.q_norm"],
      "rank_pattern": {"down_proj": 2, "^model.*up_proj": 5},
      "alpha_pattern": {"layers.1.mlp.up_proj": 0.5}, "use_dora": false})"));
  adapter.AddPair("model.layers.0.mlp.down_proj", 8, 12, 2);
  adapter.AddPair("model.layers.1.mlp.up_proj", 12, 8, 5, DType::kF16);
  adapter.AddPair("model.layers.1.self_attn.q_proj", 24, 8, 3, DType::kBF16);
  adapter.Add("model.layers.0.self_attn.q_norm.weight", {6});
  const std::string config = adapter.config.dump();
  const std::string weights = adapter.SafetensorsFile();
  Outcome outcome;
  for (int seed = 0; seed < kMutations; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const bool is_config = random() % 2 == 0;
    directory.Write(
        "adapter_config.json",
        is_config ? Mutate(config, config.size(), &random) : config);
    directory.Write(
        "adapter_model.safetensors",
        is_config ? weights : Mutate(weights, 8 + weights.find("}}"), &random));
    auto checkpoint = LoadCheckpoint(directory.path());
    ASSERT_TRUE(checkpoint.ok());
    const absl::Status status =
        ApplyLoraAdapter(directory.path(), false, &*checkpoint).status();
    if (status.ok()) {
      ++outcome.models;
      ReadAll(*checkpoint);
      MergeAll(*checkpoint);
    } else {
      ++outcome.errors;
      const std::string message(status.message());
      EXPECT_EQ(message.rfind(directory.path(), 0), 0u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_LT(message.size(), directory.path().size() + 900) << message;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(outcome.models, kMutations / 50);
  EXPECT_GT(outcome.errors, kMutations / 4);
}

}  // namespace
}  // namespace strata
