// The files of a model's folder as one zip file.
#include "server/vllm/tokenizer_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/vllm/zip_file.h"

namespace strata::vllm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class TokenizerBundleTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  fs::path folder_;
};

TEST_F(TokenizerBundleTest, HasTheTokenizersFilesAlone) {
  Write("tokenizer.json", "{\"a\": 1}");
  Write("config.json", "{}");
  Write("chat.jinja", "{{ x }}");
  Write("model.safetensors", "weights");
  Write("README.md", "words");
  fs::create_directory(folder_ / "vocab.json");
  const auto bundle = ReadTokenizerBundle(folder_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->zip, ZipFile({{"chat.jinja", "{{ x }}"},
                                  {"config.json", "{}"},
                                  {"tokenizer.json", "{\"a\": 1}"}}));
  EXPECT_THAT(bundle->zip, Not(HasSubstr("weights")));
  EXPECT_EQ(bundle->sha256.size(), 64u);
  EXPECT_EQ(ReadTokenizerBundle(folder_)->sha256, bundle->sha256);
}

TEST_F(TokenizerBundleTest, SaysWhyThereIsNone) {
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadTokenizerBundle(folder_).status()));
  Write("model.gguf", "GGUF");
  const auto of_gguf = ReadTokenizerBundle(folder_ / "model.gguf");
  EXPECT_TRUE(absl::IsUnimplemented(of_gguf.status())) << of_gguf.status();
  std::ofstream(folder_ / "huge.model").close();
  fs::resize_file(folder_ / "huge.model", (100 << 20) + 1);  // sparse
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadTokenizerBundle(folder_).status()));
}

}  // namespace
}  // namespace strata::vllm
