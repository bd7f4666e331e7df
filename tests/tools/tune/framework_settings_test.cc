// SPDX-License-Identifier: Apache-2.0
// Tests settings files. A written file reads back, and a cut or changed file is refused.
#include "tools/tune/framework_settings.h"

#include <gmock/gmock.h>

#include <filesystem>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

const FrameworkValues kValues = {{"ddp.bucket_cap_mb", 0.5},
                                 {"fsdp2.reshard_after_forward", false},
                                 {"zero.bucket_bytes", "all"},
                                 {"zero.overlap", false}};

std::string WholeText() {
  return FrameworkSettingsText({.values = kValues, .rules = "tuned.rules.toml", .origin = {{"ranks", 2}}});
}

Error ErrorOf(const std::string& text) {
  const auto read = ParseFrameworkSettings(text, "s.json");
  return read ? Error{} : read.error();
}

TEST(FrameworkSettings, AreReadAsTheyWereWritten) {
  const auto read = ParseFrameworkSettings(WholeText(), "s.json");
  ASSERT_TRUE(read) << Describe(read.error());
  EXPECT_EQ(read->values, kValues);
  EXPECT_EQ(read->rules, "tuned.rules.toml");
  EXPECT_EQ(read->origin["ranks"], 2);
}

TEST(FrameworkSettings, CutAnywhereAreNotTaken) {
  const std::string whole = WholeText();
  // The last byte is the end of the line. The file is complete without it.
  for (size_t length = 0; length + 1 < whole.size(); ++length)
    EXPECT_FALSE(ParseFrameworkSettings(whole.substr(0, length), "s.json")) << length;
}

TEST(FrameworkSettings, ChangedInAnyByteAreNotTaken) {
  const std::string whole = WholeText();
  for (size_t place = 0; place + 1 < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    EXPECT_FALSE(ParseFrameworkSettings(damaged, "s.json")) << damaged;
  }
}

TEST(FrameworkSettings, WrittenByHandNeedNoChecksum) {
  const auto read = ParseFrameworkSettings(
      R"({"format": "dynamiccl-settings", "version": 1, "ddp": {"bucket_cap_mb": 100}})", "s.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->values.at("ddp.bucket_cap_mb"), 100);
}

TEST(FrameworkSettings, ErrorsSayWhatAndWhere) {
  const auto text = [](const std::string& rest, int version = 1) {
    return fmt::format(R"({{"format": "dynamiccl-settings", "version": {}, {}}})", version, rest);
  };
  EXPECT_THAT(ErrorOf(text(R"("ddp": {})", 2)).message, HasSubstr("s.json: version 2, this build reads 1"));
  EXPECT_THAT(ErrorOf(text(R"("ddp": {"bucket_mb": 1})")).message, HasSubstr("no setting ddp.bucket_mb"));
  EXPECT_THAT(ErrorOf(text(R"("ddp": {"bucket_cap_mb": 0})")).message, HasSubstr("not a number above 0"));
  EXPECT_THAT(ErrorOf(text(R"("fsdp2": {"forward_prefetch": 1.5})")).message, HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf(text(R"("zero": {"bucket_bytes": "big"})")).message,
              HasSubstr("a number of bytes, or all"));
  EXPECT_THAT(ErrorOf(text(R"("other": {})")).message, HasSubstr("\"other\" is not known"));
  EXPECT_THAT(ErrorOf("{}").message, HasSubstr("no settings file"));
  EXPECT_EQ(ErrorOf(WholeText().substr(0, 40)).kind, ErrorKind::kCorrupt);
  EXPECT_THAT(ErrorOf(WholeText().replace(WholeText().find("0.5"), 3, "0.6")).hint,
              HasSubstr("dynamiccl tune"));
}

TEST(FrameworkSettings, RulesLieBesideTheFile) {
  const std::string path = ::testing::TempDir() + "tuned.settings.json";
  ASSERT_TRUE(WriteTextFile(path, WholeText()));
  const auto read = ReadFrameworkSettings(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rules, std::filesystem::path(path).parent_path() / "tuned.rules.toml");
}

TEST(FrameworkSettings, AreNamedAsInAScript) {
  FrameworkValues values;
  ASSERT_TRUE(AddValue("bucket_cap_mb=100", values));
  ASSERT_TRUE(AddValue("reshard_after_forward=false", values));
  EXPECT_EQ(DescribeValues(values), "bucket_cap_mb=100 reshard_after_forward=false");
  EXPECT_EQ(
      LinesForScript(values),
      "DistributedDataParallel(..., bucket_cap_mb=100)\nfully_shard(..., reshard_after_forward=False)\n");
  EXPECT_THAT(AddValue("bucket=1", values).error().hint, HasSubstr("bucket_cap_mb"));
  EXPECT_FALSE(AddValue("static_graph=1", values));
}

TEST(FrameworkSettings, OfEachFrameworkAreLinesOfItsOwn) {
  FrameworkValues values;
  for (const char* const text :
       {"first_bucket_mb=0.25", "modules_per_unit=2", "shard_ranks=4", "overlap_comm=true"})
    ASSERT_TRUE(AddValue(text, values)) << text;
  EXPECT_EQ(LinesForScript(values),
            "DistributedDataParallel(..., bucket_cap_mb_list=[0.25, the size of further buckets])\n"
            "fully_shard(..., mesh=init_device_mesh(device, (ranks // 4, 4), mesh_dim_names=(\"replicate\", "
            "\"shard\")))\n"
            "fully_shard([2 modules that run one after the other], ...)\n"
            "\"zero_optimization\": {\"overlap_comm\": true}\n");
  EXPECT_FALSE(AddValue("modules_per_unit=0", values));
  EXPECT_FALSE(AddValue("shard_ranks=1.5", values));
  EXPECT_TRUE(AddValue("stage3_prefetch_bucket_size=0", values));
  EXPECT_FALSE(AddValue("reduce_bucket_size=0", values));
}

TEST(FrameworkSettings, OfTheTrainerAreItsOptions) {
  FrameworkValues values;
  for (const char* const text : {"bucket_bytes=4M", "overlap=false", "prefetch=true"})
    ASSERT_TRUE(AddValue(text, values)) << text;
  EXPECT_EQ(values.at("zero.bucket_bytes"), 4 << 20);
  EXPECT_EQ(DescribeValues(values), "bucket_bytes=4M overlap=false prefetch=true");
  EXPECT_EQ(LinesForScript(values), "dynamiccl-zero train ... --bucket-bytes 4M --no-overlap --prefetch\n");
  ASSERT_TRUE(AddValue("bucket_bytes=all", values));
  EXPECT_EQ(BucketBytesOf(values.at("zero.bucket_bytes")), kBytesOfOneBucket);
  EXPECT_EQ(DescribeValues(values), "bucket_bytes=all overlap=false prefetch=true");
  EXPECT_THAT(AddValue("bucket_bytes=big", values).error().message, HasSubstr("a number of bytes, or all"));
  EXPECT_FALSE(AddValue("bucket_bytes=0", values));
}

}  // namespace
}  // namespace dynamiccl
