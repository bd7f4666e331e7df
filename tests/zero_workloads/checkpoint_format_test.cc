// SPDX-License-Identifier: Apache-2.0
// Tests checkpoints as files. A checkpoint that was written with any division of tensors among ranks can be
// read with any other. Whatever is cut, changed or mixed up must be found and named.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/zero_workloads/checkpoint_samples.h"
#include "zero_workloads/checkpoint/checkpoint_reader.h"

namespace dynamiccl::zero {
namespace {

namespace fs = std::filesystem;

std::vector<char> Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void PutBytes(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
}

Status VerifyAt(const std::string& path) {
  auto reader = CheckpointReader::Open(path);
  return reader ? reader->Verify() : tl::unexpected<Error>(reader.error());
}

void ExpectDamage(const std::string& path, const std::string& named) {
  const Status status = VerifyAt(path);
  ASSERT_FALSE(status) << named;
  EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(status.error().message.find(named), std::string::npos) << status.error().message;
}

CheckpointIndex SampleIndex() {
  CheckpointIndex index;
  index.values = {{"step", "7"}, {"loss_scale.scale", "65536"}};
  index.states = kSampleStates;
  index.tensors = {{"w", {2, 3}}, {"b", {3}}};
  index.files = {{"rank-00000.data", 300'000, {1, 2}}, {"rank-00001.data", 40, {3}}};
  index.ranges = {{0, 1, 0, 32, {3, 3, 0}, 0, 6}, {1, 2, 1, 32, {1, 3, 2}, 0, 1}};
  return index;
}

TEST(TensorSlice, AgreesWithIndicesByDimension) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> shape(std::uniform_int_distribution<size_t>(1, 4)(random));
    for (int64_t& extent : shape) extent = std::uniform_int_distribution<int64_t>(1, 3)(random) * 2;
    const size_t dimension = std::uniform_int_distribution<size_t>(0, shape.size() - 1)(random);
    const int64_t part = std::uniform_int_distribution<int64_t>(0, 1)(random);
    const TensorSlice slice = SliceAlong(shape, dimension, 2, part);
    const int64_t elements = CheckpointTensor{"", shape}.Elements(), half = shape[dimension] / 2;
    int64_t local = 0;
    for (int64_t global = 0; global < elements; ++global) {
      int64_t inner = 1;
      for (size_t i = dimension + 1; i < shape.size(); ++i) inner *= shape[i];
      const int64_t index = global / inner % shape[dimension];
      const bool inside = index >= part * half && index < (part + 1) * half;
      ASSERT_EQ(slice.LocalIndex(global).has_value(), inside) << "round " << round;
      if (!inside) continue;
      ASSERT_EQ(*slice.LocalIndex(global), local);
      ASSERT_EQ(slice.GlobalIndex(local), global);
      ++local;
    }
    EXPECT_EQ(local, elements / 2);
  }
}

TEST(CheckpointIndex, ReadsWhatItWrote) {
  const CheckpointIndex index = SampleIndex();
  const auto read = DecodeIndex(EncodeIndex(index));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->values, index.values);
  EXPECT_EQ(read->states, index.states);
  EXPECT_EQ(read->tensors, index.tensors);
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].block_hashes, index.files[0].block_hashes);
  ASSERT_EQ(read->ranges.size(), 2u);
  EXPECT_EQ(read->ranges[1].slice.base, 2);
  EXPECT_EQ(EncodeIndex(*read), EncodeIndex(index));
}

TEST(CheckpointIndex, EveryChangedByteIsFound) {
  const std::vector<std::byte> good = EncodeIndex(SampleIndex());
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::vector<std::byte> bytes = good;
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      const auto read = DecodeIndex(bytes);
      ASSERT_FALSE(read) << "byte " << i;
      EXPECT_EQ(read.error().kind, ErrorKind::kCorrupt);
      EXPECT_NE(read.error().message.find("offset"), std::string::npos) << read.error().message;
    }
  }
}

TEST(CheckpointIndex, EveryTruncationAndTailIsFound) {
  std::vector<std::byte> bytes = EncodeIndex(SampleIndex());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeIndex(std::span(bytes).first(size))) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(DecodeIndex(bytes));
}

TEST(CheckpointIndex, AnotherVersionIsNamed) {
  std::vector<std::byte> bytes = EncodeIndex(SampleIndex());
  bytes[8] = std::byte{2};
  EXPECT_NE(DecodeIndex(bytes).error().message.find("version 2, this build reads 1"), std::string::npos);
}

TEST(CheckpointIndex, ContentThatMakesNoSenseIsRefusedThoughItsChecksumIsRight) {
  const auto refuses = [](auto change) {
    CheckpointIndex index = SampleIndex();
    change(&index);
    return !DecodeIndex(EncodeIndex(index));
  };
  EXPECT_FALSE(refuses([](CheckpointIndex*) {}));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[0].tensor = 2; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[0].file = 2; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[0].end = 7; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[0].begin = -1; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[1].offset = 38; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[1].slice.base = 3; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->ranges[0].slice.run = 0; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->tensors[0].shape = {int64_t{1} << 40, 1 << 30}; }));
  EXPECT_TRUE(refuses([](CheckpointIndex* index) { index->files[0].name = "../secret"; }));
}

// Returns the tensors of one tensor rank. Each is sliced along its dimension, or is whole if that is
// negative.
std::vector<SlicedTensor> TensorsOf(const std::vector<CheckpointTensor>& tensors,
                                    const std::vector<int>& dimensions, int64_t degree, int64_t rank) {
  std::vector<SlicedTensor> sliced = Whole(tensors);
  for (size_t i = 0; i < sliced.size(); ++i) {
    if (dimensions[i] < 0) continue;
    sliced[i].slice = SliceAlong(tensors[i].shape, static_cast<size_t>(dimensions[i]), degree, rank);
    sliced[i].elements /= degree;
  }
  return sliced;
}

void WriteGrid(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
               const std::vector<int>& dimensions, uint32_t data_ranks, uint32_t degree) {
  const uint32_t world = data_ranks * degree;
  for (uint32_t rank = 0; rank < world; ++rank) {
    std::vector<SlicedTensor> own = TensorsOf(tensors, dimensions, degree, rank % degree);
    // Only the first tensor rank writes whole tensors.
    for (size_t i = 0; i < own.size(); ++i) {
      if (dimensions[i] < 0 && rank % degree != 0) own[i].elements = 0;
    }
    const SamplePart part = MakePart(own, {5, rank, world}, rank / degree, data_ranks);
    const Status written = WritePart(folder, part.content);
    ASSERT_TRUE(written) << written.error().message;
  }
  const Status index = WriteIndexOfParts(folder, world);
  ASSERT_TRUE(index) << index.error().message;
}

void ExpectReadable(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                    const std::vector<int>& dimensions, int64_t data_ranks, int64_t degree) {
  auto reader = CheckpointReader::Open(folder);
  ASSERT_TRUE(reader) << reader.error().message;
  for (int64_t rank = 0; rank < data_ranks * degree; ++rank) {
    const auto own = TensorsOf(tensors, dimensions, degree, rank % degree);
    for (size_t i = 0; i < own.size(); ++i) {
      const int64_t begin = own[i].elements * (rank / degree) / data_ranks;
      const int64_t end = own[i].elements * (rank / degree + 1) / data_ranks;
      for (size_t state = 0; state < kSampleStates.size(); ++state) {
        std::vector<float> numbers(static_cast<size_t>(end - begin));
        const Status read =
            reader->Read(reader->index().TensorNumber(tensors[i].name), static_cast<int64_t>(state),
                         own[i].slice, begin, end, numbers.data());
        ASSERT_TRUE(read) << read.error().message;
        for (int64_t local = begin; local < end; ++local) {
          ASSERT_EQ(numbers[static_cast<size_t>(local - begin)],
                    NumberAt(i, state, own[i].slice.GlobalIndex(local)));
        }
      }
    }
  }
}

TEST(CheckpointLayout, AnyGridReadsWhatAnyOtherWrote) {
  std::mt19937 random(11);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  constexpr uint32_t kDegrees[] = {1, 2, 4};
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const TemporaryFolder folder;
    std::vector<CheckpointTensor> tensors;
    std::vector<int> dimensions;
    for (int i = draw(1, 5); i > 0; --i) {
      CheckpointTensor tensor{"tensor." + std::to_string(i), {}};
      for (int left = draw(1, 3); left > 0; --left) tensor.shape.push_back(draw(1, 6) * 4);
      dimensions.push_back(draw(-1, static_cast<int>(tensor.shape.size()) - 1));
      tensors.push_back(tensor);
    }
    const std::string path = folder / "checkpoint";
    WriteGrid(path, tensors, dimensions, static_cast<uint32_t>(draw(1, 5)), kDegrees[draw(0, 2)]);
    ExpectReadable(path, tensors, dimensions, draw(1, 5), kDegrees[draw(0, 2)]);
  }
}

TEST(CheckpointLayout, AMissingElementIsNoCheckpoint) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint";
  for (uint32_t rank = 0; rank < 2; ++rank) {
    SamplePart part = MakePart(Whole(SampleTensors()), {5, rank, 2}, rank, 2);
    part.content.ranges[1].end -= rank;
    ASSERT_TRUE(WritePart(path, part.content));
  }
  const Status index = WriteIndexOfParts(path, 2);
  ASSERT_FALSE(index);
  EXPECT_NE(index.error().message.find("block.0.bias: 23 of 24"), std::string::npos) << index.error().message;
}

TEST(CheckpointLayout, AnElementTwiceIsNoCheckpointThoughTheCountIsRight) {
  CheckpointIndex index;
  index.states = {"master"};
  index.tensors = {{"w", {4, 6}}};
  index.files = {{"rank-00000.data", 128, {1}}};
  // The columns 0 to 2 are in two pieces, and the columns 3 to 5 in one.
  index.ranges = {
      {0, 0, 0, 32, {3, 6, 0}, 0, 5}, {0, 0, 0, 32, {3, 6, 3}, 0, 12}, {0, 0, 0, 32, {3, 6, 0}, 5, 12}};
  EXPECT_TRUE(CheckComplete(index));
  const auto refused = [&](auto change) {
    CheckpointIndex changed = index;
    change(&changed);
    const Status status = CheckComplete(changed);
    return status ? std::string() : status.error().message;
  };
  const std::string twice = "master: w: elements are there twice";
  EXPECT_EQ(refused([](auto* changed) { changed->ranges[2] = {0, 0, 0, 32, {3, 6, 0}, 4, 11}; }), twice);
  EXPECT_EQ(refused([](auto* changed) { changed->ranges[1].slice.base = 0; }), twice);
  EXPECT_EQ(refused([](auto* changed) { changed->ranges[1].slice.base = 2; }), twice);
  EXPECT_EQ(refused([](auto* changed) { changed->ranges[1].slice = {12, 24, 12}; }), twice);
  EXPECT_EQ(refused([](auto* changed) { changed->ranges.pop_back(); }),
            "master: w: 17 of 24 elements are there");
}

TEST(CheckpointLayout, AskedForMoreThanItHasAnIndexIsRefusedAtOnce) {
  CheckpointIndex index;
  index.states.resize(1'000'000, "s");
  index.tensors.resize(1'000'000, {"w", {1}});
  EXPECT_FALSE(CheckComplete(index));
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  // Each of the two data files has three blocks.
  void SetUp() override {
    WriteSample(folder_, 30, 2, {100}, {{"large", {1000, 100}}, {"small", {3}}});
    ASSERT_TRUE(VerifyAt(path()));
  }
  std::string path() const { return folder_.PathOf(30); }
  std::string data() const { return path() + "/rank-00001.data"; }

  TemporaryFolder place_;
  CheckpointFolder folder_{(place_ / "checkpoints").string()};
};

TEST_F(DamagedCheckpoint, AChangedByteAnywhereIsNamedWithItsBlock) {
  const std::vector<char> good = Bytes(data());
  ASSERT_GT(good.size(), 2 * kCheckpointBlockBytes);
  for (size_t i = 0; i < good.size(); i += i < 64 ? 1 : 9973) {
    std::vector<char> bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    PutBytes(data(), bytes);
    const size_t block = i / kCheckpointBlockBytes * kCheckpointBlockBytes;
    // The bytes that identify the file are checked first.
    const std::string offset = i < 8 ? "offset 0" : i < 16 ? "offset 8" : fmt::format("offset {}", block);
    ExpectDamage(path(), data() + ": " + offset);
  }
}

TEST_F(DamagedCheckpoint, ATruncatedFileIsNamedWithWhereItEnds) {
  const std::vector<char> good = Bytes(data());
  for (size_t size = 0; size < good.size(); size += size < 64 ? 1 : 7919) {
    fs::resize_file(data(), size);
    ExpectDamage(path(), fmt::format("{}: offset {}", data(), size));
    PutBytes(data(), good);
  }
}

TEST_F(DamagedCheckpoint, AMissingFileIsNamed) {
  fs::remove(data());
  ExpectDamage(path(), data());
}

TEST_F(DamagedCheckpoint, WhatCannotBeReadIsNotCalledDamaged) {
  const fs::path saved = data() + ".saved";
  for (const std::string& file : {data(), path() + "/index"}) {
    fs::rename(file, saved);
    fs::create_directory(file);
    const Status status = VerifyAt(path());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kUnavailable) << status.error().message;
    EXPECT_NE(status.error().message.find(file), std::string::npos) << status.error().message;
    fs::remove(file);
    fs::rename(saved, file);
  }
  EXPECT_TRUE(VerifyAt(path()));
}

TEST_F(DamagedCheckpoint, WithoutDescriptorsNothingIsCalledDamagedOrMissing) {
  auto reader = CheckpointReader::Open(path());
  ASSERT_TRUE(reader);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto steps = folder_.Steps();
  const Status opened = VerifyAt(path()), read = reader->Verify();
  setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_FALSE(steps || opened || read);
  for (const Error& error : {steps.error(), opened.error(), read.error()}) {
    EXPECT_EQ(error.kind, ErrorKind::kUnavailable) << error.message;
    EXPECT_NE(error.message.find("Too many open files"), std::string::npos) << error.message;
  }
}

TEST_F(DamagedCheckpoint, AFileOfAnotherStepIsNamedAsSuch) {
  WriteSample(folder_, 40, 2, {100}, {{"large", {1000, 100}}, {"small", {3}}});
  fs::copy_file(folder_.PathOf(40) + "/rank-00001.data", data(), fs::copy_options::overwrite_existing);
  ExpectDamage(path(), "the file is of step 40, the index of step 30");
}

TEST_F(DamagedCheckpoint, TwoRanksFilesSwappedAreFound) {
  fs::rename(path() + "/rank-00000.data", path() + "/other");
  fs::rename(data(), path() + "/rank-00000.data");
  fs::rename(path() + "/other", data());
  ExpectDamage(path(), "rank-00000.data: offset");
}

TEST_F(DamagedCheckpoint, ARankThatReadsOtherBlocksOnlyDoesNotSeeTheDamage) {
  std::vector<char> bytes = Bytes(data());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  PutBytes(data(), bytes);
  auto reader = CheckpointReader::Open(path());
  ASSERT_TRUE(reader);
  std::vector<float> numbers(50'000);
  EXPECT_TRUE(reader->Read(0, 0, {100'000, 100'000, 0}, 0, 50'000, numbers.data()));
  EXPECT_FALSE(reader->Read(1, 2, {3, 3, 0}, 0, 3, numbers.data()));
}

TEST(CheckpointFolder, KeepsTheNewestAndSetsLaterOnesAside) {
  const TemporaryFolder place;
  const CheckpointFolder folder((place / "checkpoints").string());
  EXPECT_TRUE(folder.Steps()->empty());
  for (const int64_t step : {10, 20, 30}) WriteSample(folder, step, 1, {2});
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{20, 30}));
  WriteSample(folder, 25, 1, {2});  // of a run that continued from step 20
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{20, 25}));
  EXPECT_TRUE(fs::exists(folder.path() + "/set-aside-step-00000030/index"));
  WriteSample(folder, 25, 1, {2});
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{20, 25}));
  EXPECT_TRUE(VerifyAt(folder.PathOf(25)));
}

TEST(CheckpointFolder, SetsAsideAllThatIsNewerThanTheNewestOwn) {
  const TemporaryFolder place;
  const CheckpointFolder folder((place / "checkpoints").string());
  for (const int64_t step : {10, 20, 30}) WriteSample(folder, step, 1);
  WriteSample(folder, 40, 1, {.keep = 9, .newest_own = 10});  // of a run that continued from step 10
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{10, 40}));
  EXPECT_TRUE(fs::exists(folder.path() + "/set-aside-step-00000020/index"));
  EXPECT_TRUE(fs::exists(folder.path() + "/set-aside-step-00000030/index"));
}

TEST(CheckpointFolder, IsRefusedAtOnceIfItCannotBeWritten) {
  const TemporaryFolder place;
  const std::string path = (place / "checkpoints").string();
  fs::create_directory(path);
  ASSERT_EQ(::chmod((place / "").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0555), 0);
  // The superuser may write everywhere, so another user claims the folder.
  constexpr uid_t kNobody = 65534;
  const bool super = ::geteuid() == 0;
  if (super) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const Status claimed = CheckpointFolder(path).Claim();
  if (super) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(claimed);
  EXPECT_NE(claimed.error().message.find(path + ": Permission denied"), std::string::npos)
      << claimed.error().message;
}

// Three runs save step 20, each after continuing from step 10. Each sets aside what the run before it saved.
TEST(CheckpointFolder, WhatWasSetAsideStays) {
  const TemporaryFolder place;
  const CheckpointFolder folder((place / "checkpoints").string());
  const std::string aside = folder.path() + "/set-aside-step-00000020";
  WriteSample(folder, 10, 1, {9});
  for (const char* run : {"first", "second", "third"}) {
    WriteSample(folder, 20, 1, {9});
    std::ofstream(folder.PathOf(20) + "/" + run) << "marks the run";
  }
  WriteSample(folder, 15, 1, {9});
  EXPECT_TRUE(fs::exists(aside + "/first"));
  EXPECT_TRUE(fs::exists(aside + ".2/second"));
  EXPECT_TRUE(fs::exists(aside + ".3/third"));
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{10, 15}));
}

TEST(CheckpointFolder, AnOldCheckpointThatCannotBeRemovedFailsNoSave) {
  const TemporaryFolder place;
  const CheckpointFolder folder((place / "checkpoints").string());
  WriteSample(folder, 10, 1, {1});
  fs::create_directories(folder.path() + "/removed-step-00000010/in the way");
  testing::internal::CaptureStderr();
  WriteSample(folder, 20, 1, {1});
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("the checkpoint of step 10 stays"), std::string::npos) << told;
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{10, 20}));
  WriteSample(folder, 30, 1, {2});
  EXPECT_EQ(*folder.Steps(), (std::vector<int64_t>{10, 20, 30})) << "tried again, in vain";
}

TEST(CheckpointFolder, IsClaimedByOneAndCleaned) {
  const TemporaryFolder place;
  CheckpointFolder first((place / "checkpoints").string()), second((place / "checkpoints").string());
  fs::create_directories(first.PartialPathOf(3));
  fs::create_directories(first.path() + "/removed-step-00000001");
  fs::create_directories(first.path() + "/notes");
  ASSERT_TRUE(first.Claim());
  EXPECT_FALSE(fs::exists(first.PartialPathOf(3)));
  EXPECT_FALSE(fs::exists(first.path() + "/removed-step-00000001"));
  EXPECT_TRUE(fs::exists(first.path() + "/notes"));
  const Status refused = second.Claim();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another run"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl::zero
