#include "core/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/core/model/file_bytes.h"
#include "tests/core/model/temp_files.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using B = GgufBuilder;

std::string ArrayOf(uint32_t type, uint64_t count, const std::string& bytes) {
  return Bytes(type) + Bytes(count) + bytes;
}

TEST(GgufTest, ReadsEveryType) {
  const TempDirectory directory;
  B good;
  good.U32("u32", 4000000000u)
      .Strings("texts", {"x", "", "yz"})
      .Int32s("ints", {1, -2});
  good.Pair("u8", B::kU8, Bytes<uint8_t>(200))
      .Pair("i8", B::kI8, Bytes<int8_t>(-5));
  good.Pair("u16", B::kU16, Bytes<uint16_t>(60000))
      .Pair("i16", B::kI16, Bytes<int16_t>(-300));
  good.Pair("i32", B::kI32, Bytes<int32_t>(70000))
      .Pair("u64", B::kU64, Bytes<uint64_t>(7));
  good.Pair("i64", B::kI64, Bytes<int64_t>(8))
      .F32("f32", 0.5f)
      .Pair("f64", B::kF64, Bytes(0.1));
  good.Bool("yes", true).String("text", "abc");
  good.Pair("floats", B::kArray,
            ArrayOf(B::kF32, 2, Bytes(1.0f) + Bytes(2.0f)));
  good.Tensor("a", {3, 2}, 0, std::string(24, 'a'));
  good.Tensor("k", {256, 2}, 12, std::string(288, 'k'));
  for (const uint32_t version : {2u, 3u}) {
    good.version = version;
    auto good_file = MappedFile::Open(directory.Write("y.gguf", good.Build()));
    ASSERT_TRUE(good_file.ok());
    auto gguf = ReadGguf(**good_file);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    const GgufMetadata& m = gguf->metadata;
    EXPECT_EQ(m.Integer("u8").value(), 200);
    EXPECT_EQ(m.Integer("u16").value(), 60000);
    EXPECT_EQ(m.Integer("i32").value(), 70000);
    EXPECT_EQ(m.Integer("u64").value(), 7);
    EXPECT_EQ(m.IntegerOr("i64", 0).value(), 8);
    EXPECT_EQ(m.IntegerOr("absent", 9).value(), 9);
    EXPECT_EQ(m.Number("f32").value(), 0.5);
    EXPECT_EQ(m.NumberOr("f64", 0).value(), 0.1);
    EXPECT_TRUE(m.BoolOr("yes", false).value());
    EXPECT_EQ(m.StringOr("text", "").value(), "abc");
    EXPECT_THAT(m.Strings("texts").value(), ElementsAre("x", "", "yz"));
    EXPECT_THAT(m.Int32s("ints").value(), ElementsAre(1, -2));
    for (const char* key :
         {"u32", "i8", "i16", "f32", "text", "texts", "yes"}) {
      EXPECT_THAT(
          std::string(m.Integer(key).status().message()),
          HasSubstr(std::string(key) + " is not an integer in [0, 2^31)"));
    }
    EXPECT_THAT(std::string(m.Integer("absent").status().message()),
                HasSubstr("is missing"));
    EXPECT_FALSE(m.Number("u8").ok());
    EXPECT_FALSE(m.BoolOr("u8", false).ok());
    EXPECT_FALSE(m.StringOr("texts", "").ok());
    EXPECT_FALSE(m.Strings("ints").ok());
    EXPECT_FALSE(m.Strings("text").ok());
    EXPECT_FALSE(m.Int32s("floats").ok());
    EXPECT_FALSE(m.Int32s("texts").ok());

    const StoredTensor& a = gguf->tensors.at("a");
    EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(a.type, DType::kF32);
    EXPECT_EQ(a.bytes.size(), 24u);
    EXPECT_EQ(a.bytes[23], std::byte{'a'});
    const StoredTensor& k = gguf->tensors.at("k");
    EXPECT_EQ(k.type, std::nullopt);
    EXPECT_EQ(k.type_name, "Q4_K");
    EXPECT_EQ(k.bytes.size(), 288u);
    EXPECT_EQ(k.bytes[0], std::byte{'k'});
  }
}

TEST(GgufTest, ReadsOtherAlignments) {
  const TempDirectory directory;
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    B builder;
    builder.alignment = alignment;
    builder.U32("general.alignment", alignment)
        .Tensor("a", {1}, 0, "aaaa")
        .Tensor("b", {1}, 0, "bbbb");
    auto file = MappedFile::Open(directory.Write("x.gguf", builder.Build()));
    auto gguf = ReadGguf(**file);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    EXPECT_EQ(gguf->tensors.at("b").bytes[0], std::byte{'b'});
  }
}

struct Case {
  std::string file;
  const char* message;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

void ExpectRefused(const Case& c) {
  const TempDirectory directory;
  const std::string path = directory.Write("x.gguf", c.file);
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  const absl::Status status = ReadGguf(**file).status();
  EXPECT_EQ(status.code(), c.code) << c.message;
  EXPECT_THAT(std::string(status.message()), StartsWith(path + ": "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
}

std::string With(const std::function<void(B*)>& change) {
  B builder;
  builder.String("general.architecture", "llama");
  change(&builder);
  return builder.Build();
}

TEST(GgufTest, RefusesMalformedHeaders) {
  constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;
  for (const Case& c : {
           Case{"GGU", "does not begin with"},
           Case{"GGML" + std::string(100, '\0'), "does not begin with"},
           Case{"GGUF" + Bytes<uint32_t>(3) + Bytes<uint64_t>(0),
                "ends in the header"},
           Case{With([](B* b) { b->version = 1; }),
                "version 1 is not supported", kUnimplemented},
           Case{With([](B* b) { b->version = 4; }),
                "version 4 is not supported", kUnimplemented},
           Case{With([](B* b) { b->version = 0x03000000; }), "big-endian",
                kUnimplemented},
           Case{With([](B* b) { b->tensor_count = ~uint64_t{0}; }),
                "cannot hold 18446744073709551615 tensors"},
           Case{With([](B* b) { b->tensor_count = 100; }),
                "cannot hold 100 tensors"},
           Case{With([](B* b) { b->pair_count = uint64_t{1} << 40; }),
                "metadata keys"},
           Case{With([](B* b) { b->pair_count = 3; }),
                "metadata key \"\" has 0 bytes"},
       }) {
    ExpectRefused(c);
  }
}

TEST(GgufTest, RefusesMetadataThatEndsEarly) {
  const std::string head = B().U32("k", 1).U32("k2", 1).Head();
  ExpectRefused(
      {head.substr(0, head.size() - 1), "the value of metadata key \"k2\""});
  ExpectRefused(
      {head.substr(0, head.size() - 5), "ends in the metadata, after 1 keys"});
}

TEST(GgufTest, RefusesMalformedMetadata) {
  const auto pair = [](uint32_t type, const std::string& value) {
    return With([&](B* b) { b->Pair("k", type, value); });
  };
  for (const Case& c : {
           Case{pair(13, Bytes<uint32_t>(0)), "\"k\" has the unknown type 13"},
           Case{pair(B::kBool, Bytes<uint8_t>(2)), "\"k\" is malformed"},
           Case{pair(B::kString, Bytes<uint64_t>(1000)),
                "longer than the file"},
           Case{pair(B::kString, Bytes<uint64_t>(~uint64_t{0})),
                "longer than the file"},
           Case{pair(B::kString, Bytes<uint64_t>(uint64_t{1} << 30)),
                "longer than the file"},
           Case{pair(B::kArray, ArrayOf(B::kU8, uint64_t{1} << 40, "")),
                "longer than the file"},
           Case{pair(B::kArray, ArrayOf(B::kF64, uint64_t{1} << 61, "")),
                "longer than the file"},
           Case{pair(B::kArray, ArrayOf(B::kString, uint64_t{1} << 61, "")),
                "longer than the file"},
           Case{
               pair(B::kArray, ArrayOf(B::kString, 2,
                                       GgufString("a") + Bytes<uint64_t>(999))),
               "element 1 of array \"k\" is longer"},
           Case{pair(B::kArray, ArrayOf(B::kArray, 1, "")),
                "elements of type 9"},
           Case{pair(B::kArray, ArrayOf(77, 1, "")), "elements of type 77"},
           Case{With([](B* b) { b->U32("k", 1).U32("k", 1); }),
                "\"k\" is there twice"},
           Case{With([](B* b) { b->U32("", 1); }), "has 0 bytes"},
           Case{With([](B* b) { b->U32(std::string(65536, 'k'), 1); }),
                "has 65536 bytes"},
           Case{With([](B* b) { b->U32("general.alignment", 0); }),
                "general.alignment is 0"},
           Case{With([](B* b) { b->U32("general.alignment", 4); }),
                "general.alignment is 4"},
           Case{With([](B* b) { b->U32("general.alignment", 48); }),
                "general.alignment is 48"},
           Case{With([](B* b) { b->String("general.alignment", "32"); }),
                "is not an integer"},
       }) {
    ExpectRefused(c);
  }
}

TEST(GgufTest, RefusesMalformedTensors) {
  const auto at = [](const std::vector<uint64_t>& dims, uint32_t type,
                     uint64_t offset) {
    return With([&](B* b) {
      b->Tensor("pad", {16}, 0, std::string(64, 'p'))
          .TensorAt("t", dims, type, offset);
    });
  };
  constexpr uint64_t kHuge = uint64_t{1} << 33;
  for (const Case& c : {
           Case{at({}, 0, 0), "tensor \"t\": has 0 dimensions"},
           Case{at({1, 1, 1, 1, 1}, 0, 0), "has 5 dimensions"},
           Case{at({0}, 0, 0), "dimension 0 is 0"},
           Case{at({4, 0}, 0, 0), "dimension 1 is 0"},
           Case{at({kHuge, kHuge}, 0, 0),
                "product of its dimensions overflows"},
           Case{at({uint64_t{1} << 63}, 0, 0),
                "product of its dimensions overflows"},
           Case{at({uint64_t{1} << 62}, 0, 0), "its size overflows"},
           Case{at({uint64_t{1} << 62}, 8, 0), "are outside the 64 bytes"},
           Case{at({16}, 12, 0), "not whole blocks of 256 (Q4_K)"},
           Case{at({16}, 4, 0), "unknown type 4"},
           Case{at({16}, 1000, 0), "unknown type 1000"},
           Case{at({33}, 8, 0), "not whole blocks of 32 (Q8_0)"},
           Case{at({16, 2}, 2, 0), "not whole blocks of 32 (Q4_0)"},
           Case{at({1}, 0, 4), "offset 4 is not a multiple of 32"},
           Case{at({16}, 0, 64),
                "64 bytes at offset 64 are outside the 64 bytes"},
           Case{at({17}, 0, 0),
                "68 bytes at offset 0 are outside the 64 bytes"},
           Case{at({1}, 0, ~uint64_t{31}), "are outside the 64 bytes"},
           Case{at({1}, 0, 32), "\"pad\" and \"t\" overlap"},
           Case{at({1}, 0, 0), "overlap"},
           Case{With([](B* b) {
                  b->Tensor("t", {1}, 0, "1234").Tensor("t", {1}, 0, "1234");
                }),
                "\"t\" is there twice"},
       }) {
    ExpectRefused(c);
  }
}

TEST(GgufTest, RefusesEveryTruncation) {
  const TempDirectory directory;
  const std::string whole = B().String("general.name", "n")
                                .Strings("s", {"a", "b"})
                                .Tensor("t", {8}, 0, std::string(32, 't'))
                                .Build();
  for (size_t size = 1; size < whole.size(); ++size) {
    auto file =
        MappedFile::Open(directory.Write("x.gguf", whole.substr(0, size)));
    EXPECT_FALSE(ReadGguf(**file).ok()) << size;
  }
  auto file = MappedFile::Open(directory.Write("x.gguf", whole));
  EXPECT_TRUE(ReadGguf(**file).ok());
}

}  // namespace
}  // namespace strata
