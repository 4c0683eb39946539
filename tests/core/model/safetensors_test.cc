#include "core/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/core/model/file_bytes.h"
#include "tests/core/model/temp_files.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A header entry.
std::string Entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape +
         R"(],"data_offsets":[)" + offsets + "]}";
}

TEST(SafetensorsTest, FindsTensors) {
  const TempDirectory directory;
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             Entry("a", "F32", "2,1", "4,12") + "," +
                             Entry("b", "BF16", "2", "0,4") + "," +
                             Entry("c", "F8_E4M3", "3", "12,15") + "," +
                             Entry("scalar", "U8", "", "15,16") + "," +
                             Entry("none", "F16", "0,7", "16,16") + "}   ";
  const std::string path =
      directory.Write("x", Safetensors(header, "0123456789abcdef"));
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  auto tensors = ReadSafetensors(**file);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 5u);
  const StoredTensor& a = tensors->at("a");
  EXPECT_EQ(a.type, DType::kF32);
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(a.bytes.size(), 8u);
  EXPECT_EQ(a.bytes[0], std::byte{'4'});
  EXPECT_EQ(a.file, path);
  EXPECT_EQ(tensors->at("b").bytes[3], std::byte{'3'});
  EXPECT_EQ(tensors->at("c").type, std::nullopt);
  EXPECT_EQ(tensors->at("c").type_name, "F8_E4M3");
  EXPECT_TRUE(tensors->at("scalar").shape.empty());
  EXPECT_TRUE(tensors->at("none").bytes.empty());
}

TEST(SafetensorsTest, RefusesMalformedFiles) {
  const TempDirectory directory;
  const std::string ok = Entry("a", "F32", "2", "0,8");
  const std::string data = "01234567";
  struct Case {
    std::string file;
    const char* message;
  };
  const auto one = [&data](const std::string& entry) {
    return Safetensors("{" + entry + "}", data);
  };
  for (const Case& c : {
           Case{"1234567", "too short"},
           Case{Bytes<uint64_t>(3) + "{}", "longer than the file"},
           Case{Bytes<uint64_t>(100'000'001) + "{}", "longer than 100 MB"},
           Case{Bytes<uint64_t>(~uint64_t{0}) + "{}", "longer than 100 MB"},
           Case{Bytes<uint64_t>(0) + "{}", "not valid JSON"},
           Case{Safetensors("[]", ""), "not a JSON object"},
           Case{Safetensors("{\"a\":}", data), "not valid JSON"},
           Case{one("\"a\":7"), "tensor \"a\": its entry is not an object"},
           Case{one(ok + "," + Entry("a", "U8", "8", "0,8")),
                "doubled key \"a\""},
           Case{one(Entry("a", "F33", "2", "0,8")), "unknown dtype \"F33\""},
           Case{one(R"("a":{"shape":[2],"data_offsets":[0,8]})"),
                "unknown dtype \"\""},
           Case{one(R"("a":{"dtype":5,"shape":[2],"data_offsets":[0,8]})"),
                "expected a string"},
           Case{one(R"("a":{"dtype":"F32","data_offsets":[0,8]})"),
                "shape is not a list"},
           Case{one(R"("a":{"dtype":"F32","shape":2,"data_offsets":[0,8]})"),
                "shape is not a list"},
           Case{one(Entry("a", "F32", "-2", "0,8")), "shape is not a list"},
           Case{one(Entry("a", "F32", "2.0", "0,8")), "shape is not a list"},
           Case{one(Entry("a", "F32", "18446744073709551615", "0,8")),
                "shape is not a list"},
           Case{one(Entry("a", "F32", "1,1,1,1,1,1,1,1,2", "0,8")),
                "shape is not a list"},
           Case{one(R"("a":{"dtype":"F32","shape":[2]})"),
                "data_offsets is not a list"},
           Case{one(Entry("a", "F32", "2", "0")), "data_offsets is not a list"},
           Case{one(Entry("a", "F32", "2", "0,8,8")),
                "data_offsets is not a list"},
           Case{one(Entry("a", "F32", "2", "-8,0")),
                "data_offsets is not a list"},
           Case{one(Entry("a", "F32", "2", "8,0")), "outside the 8 bytes"},
           Case{one(Entry("a", "F32", "2", "1,9")), "outside the 8 bytes"},
           Case{one(Entry("a", "F32", "2", "0,9223372036854775807")),
                "outside the 8 bytes"},
           Case{one(Entry("a", "F32", "3", "0,8")),
                "F32 [3] does not take the 8 bytes"},
           Case{one(Entry("a", "F16", "2", "0,8")),
                "does not take the 8 bytes"},
           Case{one(Entry("a", "F4", "3", "0,1")), "does not take the 1 bytes"},
           Case{one(Entry("a", "F32", "4294967296,4294967296,2", "0,8")),
                "overflows"},
           // 2^61 elements of 32 bits are 2^66 bits, 0 modulo 2^64.
           Case{one(Entry("a", "F32", "2305843009213693952", "0,0")),
                "overflows"},
           Case{one(Entry("a", "U8", "5", "0,5") + "," +
                    Entry("b", "U8", "4", "4,8")),
                "tensors \"a\" and \"b\" overlap"},
           Case{one(Entry("a", "U8", "8", "0,8") + "," +
                    Entry("b", "U8", "2", "3,5")),
                "tensors \"a\" and \"b\" overlap"},
           Case{one(ok + "," + Entry("b", "F32", "2", "0,8")), "overlap"},
           Case{one(Entry("a", "U8", "3", "0,3") + "," +
                    Entry("b", "U8", "4", "4,8")),
                "has 8 bytes of data, its tensors take 7"},
           Case{Safetensors("{" + ok + "}", data + "8"), "has 9 bytes of data"},
       }) {
    const std::string path = directory.Write("model.safetensors", c.file);
    auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok());
    const absl::Status status = ReadSafetensors(**file).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), StartsWith(path + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(SafetensorsTest, NamesStayInOneLine) {
  const TempDirectory directory;
  const std::string path = directory.Write(
      "x",
      Safetensors(
          "{" + Entry("a\\nb" + std::string(1000, 'c'), "F32", "3", "0,8") +
              "}",
          "01234567"));
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  const std::string message(ReadSafetensors(**file).status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), path.size() + 200);
  EXPECT_THAT(message, HasSubstr("a\\nbccc"));
}

class ShardsTest : public ::testing::Test {
 protected:
  void WriteShards() {
    directory_.Write("one.safetensors",
                     Safetensors("{" + Entry("a", "U8", "2", "0,2") + "," +
                                     Entry("both", "U8", "1", "2,3") + "}",
                                 "aax"));
    directory_.Write("two.safetensors",
                     Safetensors("{" + Entry("b", "U8", "1", "0,1") + "," +
                                     Entry("both", "U8", "1", "1,2") + "}",
                                 "by"));
  }
  absl::StatusOr<SafetensorsSet> Open(const std::string& weight_map) {
    directory_.Write(
        "model.safetensors.index.json",
        R"({"metadata":{"total_size":5},"weight_map":)" + weight_map + "}");
    return OpenSafetensors(directory_.path());
  }
  TempDirectory directory_;
};

TEST_F(ShardsTest, TakesEachTensorFromItsShard) {
  WriteShards();
  auto set = Open(
      R"({"a":"one.safetensors","b":"two.safetensors","both":"two.safetensors"})");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->files.size(), 2u);
  EXPECT_EQ(set->tensors.size(), 3u);
  EXPECT_EQ(set->tensors.at("a").bytes[1], std::byte{'a'});
  EXPECT_EQ(set->tensors.at("b").bytes[0], std::byte{'b'});
  EXPECT_EQ(set->tensors.at("both").bytes[0], std::byte{'y'});
  EXPECT_EQ(set->tensors.at("b").file, directory_.Path("two.safetensors"));
}

TEST_F(ShardsTest, RefusesBadIndices) {
  WriteShards();
  struct Case {
    const char* weight_map;
    const char* message;
  };
  for (const Case& c : {
           Case{"{}", "weight_map is missing or empty"},
           Case{"7", "weight_map is missing or empty"},
           Case{R"({"a":7})", "not the plain name of a file"},
           Case{R"({"a":""})", "not the plain name of a file"},
           Case{R"({"a":".."})", "not the plain name of a file"},
           Case{R"({"a":"../one.safetensors"})",
                "not the plain name of a file"},
           Case{R"({"a":"/etc/passwd"})", "not the plain name of a file"},
           Case{R"({"a":"one.safetensors\u0000"})",
                "not the plain name of a file"},
           Case{R"({"c":"one.safetensors"})",
                "puts \"c\" into \"one.safetensors\", which lacks it"},
           Case{R"({"a":"three.safetensors"})", "three.safetensors: open"},
       }) {
    const absl::Status status = Open(c.weight_map).status();
    EXPECT_FALSE(status.ok()) << c.weight_map;
    EXPECT_THAT(std::string(status.message()), StartsWith(directory_.path()));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST_F(ShardsTest, PrefersTheSingleFileAndMissesBoth) {
  const absl::Status missing = OpenSafetensors(directory_.path()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              StartsWith(directory_.path() + ": has neither"));
  WriteShards();
  directory_.Write(
      "model.safetensors",
      Safetensors("{" + Entry("single", "U8", "1", "0,1") + "}", "s"));
  auto set = Open(R"({"a":"one.safetensors"})");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->tensors.size(), 1u);
  EXPECT_TRUE(set->tensors.contains("single"));
}

}  // namespace
}  // namespace strata
