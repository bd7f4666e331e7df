// SPDX-License-Identifier: Apache-2.0
// Tests saving on background threads, the check which checkpoints a run may continue from, and safetensors
// files.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/zero_workloads/checkpoint_samples.h"
#include "zero_workloads/checkpoint/background_save.h"
#include "zero_workloads/checkpoint/checkpoint_settings.h"
#include "zero_workloads/checkpoint/resume_check.h"
#include "zero_workloads/checkpoint/safetensors.h"

namespace dynamiccl::zero {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::string>;

std::string Text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// An independent reader of the safetensors format: the length of the header, the header as JSON, the numbers.
struct Weights {
  nlohmann::json header;
  std::string data;

  explicit Weights(const std::string& path) {
    const std::string text = Text(path);
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof(bytes));
    EXPECT_EQ(bytes % 8, 0u);
    header = nlohmann::json::parse(text.substr(8, bytes));
    data = text.substr(8 + bytes);
  }
  std::vector<float> Floats(const std::string& name) const {
    const uint64_t begin = header[name]["data_offsets"][0], end = header[name]["data_offsets"][1];
    std::vector<float> numbers((end - begin) / sizeof(float));
    std::memcpy(numbers.data(), data.data() + begin, end - begin);
    return numbers;
  }
};

class Saves : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(folder_.Claim()); }
  SamplePart Part(uint32_t rank, uint32_t world) const {
    return MakePart(Whole(SampleTensors()), {10, rank, world}, rank, world);
  }

  TemporaryFolder place_;
  CheckpointFolder folder_{(place_ / "checkpoints").string()};
};

TEST_F(Saves, AreCompleteOnceEveryRankHasWritten) {
  const SamplePart first = Part(0, 2), second = Part(1, 2);
  BackgroundSave zero(folder_, {}, first.content);
  EXPECT_TRUE(zero.WaitForPart());
  EXPECT_TRUE(folder_.Steps()->empty());
  BackgroundSave one(folder_, {}, second.content);
  EXPECT_TRUE(one.WaitForPart());
  EXPECT_TRUE(one.WaitForCommit());
  EXPECT_TRUE(zero.WaitForCommit());
  EXPECT_EQ(*folder_.Steps(), (std::vector<int64_t>{10}));
}

TEST_F(Saves, AreNotCompleteWithoutAPart) {
  const SamplePart first = Part(0, 2);
  { BackgroundSave abandoned(folder_, {}, first.content); }
  EXPECT_TRUE(folder_.Steps()->empty());
  BackgroundSave alone(folder_, {}, first.content, std::chrono::milliseconds(50));
  EXPECT_TRUE(alone.WaitForPart());
  const Status missing = alone.WaitForCommit();
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().hint.find("share"), std::string::npos);
  EXPECT_TRUE(folder_.Steps()->empty());
}

// On a network file system, a rank's file may become visible only after the rank's message has arrived.
TEST_F(Saves, WaitForAPartThatIsSeenLate) {
  const SamplePart first = Part(0, 2), second = Part(1, 2);
  BackgroundSave zero(folder_, {}, first.content);
  EXPECT_TRUE(zero.WaitForPart());
  std::future<Status> committed = std::async(std::launch::async, [&] { return zero.WaitForCommit(); });
  EXPECT_EQ(committed.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  ASSERT_TRUE(WritePart(folder_.PartialPathOf(10), second.content));
  EXPECT_TRUE(committed.get());
  EXPECT_EQ(*folder_.Steps(), (std::vector<int64_t>{10}));
}

TEST_F(Saves, SayWhyTheyFailed) {
  fs::create_directories(folder_.PartialPathOf(10) + "/rank-00000.data");  // a folder with the file's name
  const SamplePart part = Part(0, 1);
  BackgroundSave save(folder_, {}, part.content);
  EXPECT_FALSE(save.WaitForPart());
  EXPECT_NE(save.Failure().error().message.find("rank-00000.data: Is a directory"), std::string::npos);
}

// A limit on file sizes takes the place of a full disk.
TEST_F(Saves, ThatDoNotFitSayWhere) {
  WriteSample(folder_, 5, 1);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{1000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const SamplePart part = Part(0, 1);
  const Status written = WritePart(folder_.PartialPathOf(10), part.content);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(written.error().message.find("rank-00000.data: File too large"), std::string::npos)
      << written.error().message;
  EXPECT_EQ(*folder_.Steps(), (std::vector<int64_t>{5}));
  auto earlier = CheckpointReader::Open(folder_.PathOf(5));
  EXPECT_TRUE(earlier && earlier->Verify());
}

TEST(Resuming, WantsTheSameModelTextAndPlaceInTheData) {
  const Values saved = {
      {"settings", "stage=1 layers=2 heads=4 dtype=fp32"}, {"text.xxh3", "aa"}, {"data.next_row", "120"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Values own = saved;
    own[name] = value;
    return CheckResumable(saved, own);
  };
  EXPECT_TRUE(with("step", "1")->empty());
  EXPECT_EQ(*with("settings", "stage=3 layers=2 heads=4 dtype=fp32"),
            (std::vector<std::string>{"stage 1 -> 3"}));
  EXPECT_NE(with("settings", "layers=2 heads=2").error().message.find("--heads 4, this run has 2"),
            std::string::npos);
  EXPECT_EQ(with("text.xxh3", "bb").error().kind, ErrorKind::kInvalidArgument);
  EXPECT_NE(with("data.next_row", "240").error().hint.find("--micro-steps"), std::string::npos);
  EXPECT_TRUE(CheckResumable({{"imported", "x"}}, saved)) << "what was imported has nothing to compare";
}

TEST(Resuming, ValuesOfTheEngineAreNumbers) {
  const Values good = {{"optimizer.steps", "12"},
                       {"loss_scale.value", "0x1p+16"},
                       {"loss_scale.clean_steps", "3"},
                       {"loss_scale.overflows_left", "2"}};
  EXPECT_TRUE(CheckEngineValues(good));
  EXPECT_TRUE(CheckEngineValues({}));
  for (const auto& [name, value] : good) {
    for (const char* bad : {"", "x", "-1", "1x", "99999999999999999999x", "nan", "1e999"}) {
      Values values = good;
      values[name] = bad;
      const Status status = CheckEngineValues(values);
      ASSERT_FALSE(status) << name << "=" << bad;
      EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
      EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
    }
  }
  Values part = good;
  part.erase("loss_scale.clean_steps");
  EXPECT_FALSE(CheckEngineValues(part));
}

// Version 0.1.0 also saved the loss scale if it was fixed.
TEST(Resuming, TheScaleOfARunWithAFixedOneIsDropped) {
  const auto scale_of = [](const std::string& settings) {
    Values values = {{"settings", settings},
                     {"optimizer.steps", "4"},
                     {"loss_scale.value", "0x1p+3"},
                     {"loss_scale.clean_steps", "0"},
                     {"loss_scale.overflows_left", "2"}};
    DropFixedLossScale(values);
    EXPECT_EQ(values.at("optimizer.steps"), "4");
    return values.contains("loss_scale.value") && values.contains("loss_scale.clean_steps");
  };
  EXPECT_FALSE(scale_of("stage=1 dtype=fp16 loss_scale=8"));
  EXPECT_FALSE(scale_of("stage=1 dtype=bf16 loss_scale=default"));
  EXPECT_TRUE(scale_of("stage=1 dtype=bf16 loss_scale=dynamic"));
  EXPECT_TRUE(scale_of("stage=1 dtype=fp16 loss_scale=default"));
  EXPECT_TRUE(scale_of("stage=1")) << "nothing says that it was fixed";
}

TEST(Resuming, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_TRUE(Validate(CheckpointSettings{}));
  EXPECT_TRUE(Validate(CheckpointSettings{.directory = "d", .every = 1, .async = true, .resume = "30"}));
  EXPECT_FALSE(Validate(CheckpointSettings{.every = 1}));
  EXPECT_FALSE(Validate(CheckpointSettings{.resume = "latest"}));
  EXPECT_FALSE(Validate(CheckpointSettings{.directory = "d", .resume = "newest"}));
  EXPECT_FALSE(Validate(CheckpointSettings{.directory = "d", .resume = "-3"}));
  EXPECT_FALSE(Validate(CheckpointSettings{.directory = "d", .every = -1}));
  EXPECT_FALSE(Validate(CheckpointSettings{.directory = "d", .keep = 0}));
}

class Safetensors : public Saves {
 protected:
  void SetUp() override {
    Saves::SetUp();
    WriteSample(folder_, 10, 3);
  }
  Status Export(const std::string& path, const ExportSettings& settings) const {
    auto reader = CheckpointReader::Open(folder_.PathOf(10));
    return reader ? ExportSafetensors(&*reader, path, settings) : tl::unexpected<Error>(reader.error());
  }
  std::string path() const { return (place_ / "weights.safetensors").string(); }
};

TEST_F(Safetensors, HaveNamesShapesAndNumbers) {
  ASSERT_TRUE(Export(path(), {.optimizer_state = true}));
  const Weights weights(path());
  EXPECT_EQ(weights.header["__metadata__"]["format"], "pt");
  EXPECT_EQ(weights.header.size(), 1 + 3 * SampleTensors().size());
  EXPECT_EQ(weights.header["block.0.weight"]["shape"], (std::vector<int64_t>{6, 4, 5}));
  EXPECT_EQ(weights.header["block.0.weight"]["dtype"], "F32");
  const std::vector<float> weight = weights.Floats("block.0.weight");
  const std::vector<float> moment = weights.Floats("second_moment.block.0.bias");
  for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(weight[static_cast<size_t>(i)], NumberAt(0, 0, i));
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(moment[static_cast<size_t>(i)], NumberAt(1, 2, i));
}

TEST_F(Safetensors, AreTheSameBytesWhoeverWroteTheCheckpoint) {
  ASSERT_TRUE(Export(path(), {.optimizer_state = true}));
  const std::string bytes = Text(path());
  for (const uint32_t ranks : {1u, 2u, 7u}) {
    WriteSample(folder_, 10, ranks);
    ASSERT_TRUE(Export(path(), {.optimizer_state = true}));
    EXPECT_EQ(Text(path()), bytes) << ranks;
  }
}

TEST_F(Safetensors, BecomeTheCheckpointOfStep0) {
  ASSERT_TRUE(Export(path(), {.optimizer_state = true}));
  const auto file = SafetensorsFile::Open(path());
  ASSERT_TRUE(file) << file.error().message;
  CheckpointFolder imported((place_ / "imported").string());
  const auto tensors = ImportSafetensors(*file, "weights", &imported);
  ASSERT_TRUE(tensors) << tensors.error().message;
  EXPECT_EQ(*tensors, SampleTensors().size());
  auto reader = CheckpointReader::Open(imported.PathOf(0));
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE(reader->Verify());
  float number = 0.0f;
  EXPECT_TRUE(
      reader->Read(reader->index().TensorNumber("block.0.weight"), 0, {120, 120, 0}, 17, 18, &number));
  EXPECT_EQ(number, NumberAt(0, 0, 17));
  CheckpointFolder again((place_ / "imported").string());
  EXPECT_FALSE(ImportSafetensors(*file, "weights", &again)) << "not over what is there";
}

// Numbers with known encodings in each type.
TEST_F(Safetensors, AreReadInEveryFloatingType) {
  const auto write = [&](const std::string& type, const std::string& bytes) {
    const std::string header = "{\"x\":{\"dtype\":\"" + type + "\",\"shape\":[3],\"data_offsets\":[0," +
                               std::to_string(bytes.size()) + "]}}";
    const uint64_t length = header.size();
    std::ofstream file(path(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << header << bytes;
  };
  const auto read = [&] {
    const auto file = SafetensorsFile::Open(path());
    std::vector<float> numbers(3);
    EXPECT_TRUE(file && file->Read(file->entries().front(), 0, numbers));
    return numbers;
  };
  const std::vector<float> expected = {1.5f, -2.0f, 0.25f};
  write("F16", std::string("\x00\x3e\x00\xc0\x00\x34", 6));
  EXPECT_EQ(read(), expected);
  write("BF16", std::string("\xc0\x3f\x00\xc0\x80\x3e", 6));
  EXPECT_EQ(read(), expected);
  const double doubles[] = {1.5, -2.0, 0.25};
  write("F64", std::string(reinterpret_cast<const char*>(doubles), sizeof(doubles)));
  EXPECT_EQ(read(), expected);
  // The smallest and the largest subnormal number, and infinity.
  write("F16", std::string("\x01\x00\xff\x03\x00\xfc", 6));
  EXPECT_EQ(read(), (std::vector<float>{0x1p-24f, 0x1.ff8p-15f, -std::numeric_limits<float>::infinity()}));
  write("I64", std::string(24, '\0'));
  const auto file = SafetensorsFile::Open(path());
  std::vector<float> numbers(3);
  EXPECT_EQ(file->Read(file->entries().front(), 0, numbers).error().kind, ErrorKind::kUnsupported);
}

TEST_F(Safetensors, AnImportThatFailsLeavesNothing) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"I64","shape":[1],"data_offsets":[4,12]}})";
  const uint64_t length = header.size();
  std::ofstream(path(), std::ios::binary)
      .write(reinterpret_cast<const char*>(&length), 8)
      .write(header.data(), std::ssize(header))
      .write("000011112222", 12);
  const auto file = SafetensorsFile::Open(path());
  ASSERT_TRUE(file) << file.error().message;
  CheckpointFolder imported((place_ / "imported").string());
  EXPECT_EQ(ImportSafetensors(*file, "weights", &imported).error().kind, ErrorKind::kUnsupported);
  EXPECT_TRUE(fs::is_empty(imported.path()));
}

TEST_F(Safetensors, NamesThatAreNoTextAreRefused) {
  WriteSample(folder_, 10, 1, {100}, {{"w\xff", {2}}});
  EXPECT_EQ(Export(path(), {}).error().kind, ErrorKind::kUnsupported);
}

TEST_F(Safetensors, InBf16AreRoundedToTheNearest) {
  ASSERT_TRUE(Export(path(), {.bf16 = true}));
  const auto file = SafetensorsFile::Open(path());
  ASSERT_TRUE(file);
  std::vector<float> numbers(120);
  for (const SafetensorsEntry& entry : file->entries()) {
    if (entry.name != "block.0.weight") continue;
    EXPECT_EQ(entry.type, "BF16");
    ASSERT_TRUE(file->Read(entry, 0, numbers));
  }
  for (int64_t i = 0; i < 120; ++i) {
    const float exact = NumberAt(0, 0, i);
    EXPECT_NEAR(numbers[static_cast<size_t>(i)], exact, exact / 256);  // half a step of the 8-bit mantissa
  }
}

TEST_F(Safetensors, ATruncatedOrForeignFileIsRefused) {
  ASSERT_TRUE(Export(path(), {}));
  const uint64_t bytes = fs::file_size(path());
  for (uint64_t size = 0; size < bytes; size += 1 + size / 40) {
    ASSERT_TRUE(Export(path(), {}));
    fs::resize_file(path(), size);
    const auto file = SafetensorsFile::Open(path());
    ASSERT_FALSE(file) << size;
    EXPECT_NE(file.error().message.find("offset"), std::string::npos) << file.error().message;
  }
  for (const char* header :
       {"[]", "{", "{\"x\":1}", "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
        "{\"x\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
        // 2^61 numbers of 8 bytes are 0 bytes modulo 2^64.
        "{\"x\":{\"dtype\":\"F64\",\"shape\":[1073741824,2147483648],\"data_offsets\":[0,0]}}"}) {
    const uint64_t length = std::strlen(header);
    std::ofstream(path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(&length), 8)
        .write(header, static_cast<std::streamsize>(length))
        .write("0000", 4);
    EXPECT_FALSE(SafetensorsFile::Open(path())) << header;
  }
}

}  // namespace
}  // namespace dynamiccl::zero
