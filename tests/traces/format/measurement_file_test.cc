// SPDX-License-Identifier: Apache-2.0
#include "traces/format/measurement_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <random>

namespace dynamiccl {
namespace {

using testing::HasSubstr;

// Returns a number with random bits that is finite. So round trips include denormals and long fractions.
float AnyFloat(std::mt19937_64& random) {
  const float value = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffu);
  return std::isfinite(value) ? value : 1.5f;
}

double AnyDouble(std::mt19937_64& random) {
  const double value = std::bit_cast<double>(random());
  return std::isfinite(value) ? value : -0.1;
}

MeasurementContext AnyContext(std::mt19937_64& random, const std::string& topology) {
  MeasurementContext context{topology, {}};
  const auto any = [&] { return std::fabs(AnyDouble(random)); };
  context.model.fabric = {8, 2, 4, {any(), any()}, {any(), any()}};
  CostConstants& constants = context.model.constants;
  for (size_t a = 0; a < kAlgorithms; ++a) {
    for (size_t p = 0; p < kProtocols; ++p) {
      constants.base_latency_us[a][p] = AnyDouble(random);
      constants.intra_latency_us[a][p] = AnyDouble(random);
      constants.inter_latency_us[a][p] = AnyDouble(random);
    }
  }
  constants.ll_max_bandwidth = AnyDouble(random);
  constants.ring_ll128_channel_bandwidth = AnyDouble(random);
  constants.tree_ll128_channel_bandwidth = AnyDouble(random);
  constants.tree_channel_bandwidth = AnyDouble(random);
  return context;
}

MeasurementFile AnyFile(uint64_t seed) {
  std::mt19937_64 random(seed);
  MeasurementFile file{"hostccl 0.1.0", "2 \"cores\"\n\u00e9", "dynamiccl sweep", {}, {}};
  file.contexts = {AnyContext(random, "two_nodes"), AnyContext(random, "one node")};
  for (int i = 0; i < 20; ++i) {
    Measurement row;
    row.topology = file.contexts[random() % 2].topology;
    row.collective = static_cast<Collective>(random() % kTunableCollectives);
    row.bytes = random() >> (1 + random() % 50);
    if (i % 5 != 0) {
      row.config = {static_cast<Algorithm>(random() % kAlgorithms),
                    static_cast<Protocol>(random() % kProtocols), 8};
    }
    row.is_default = random() % 2 == 0;
    for (uint64_t r = 0; r <= random() % 5; ++r) row.microseconds.push_back(AnyFloat(random));
    file.rows.push_back(row);
  }
  return file;
}

// Draws a number between -1 and 1.
double Unit(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(-1, 1)(random);
}

MeasuredEffect AnyEffect(std::mt19937_64& random, const std::string& topology) {
  MeasuredEffect effect;
  effect.topology = topology;
  effect.collectives = static_cast<uint8_t>(1 + random() % 31);
  effect.bytes = random() >> (1 + random() % 50);
  effect.role = static_cast<Role>(random() % kRoles);
  effect.phase = static_cast<Phase>(random() % kPhases);
  effect.memory = static_cast<MemoryPressure>(random() % kMemoryPressures);
  if (random() % 2 == 0) effect.exposed = std::abs(Unit(random));
  if (random() % 2 == 0) {
    effect.slowness = 10 * Unit(random);
    effect.share = std::abs(2 * Unit(random));
  }
  effect.config = {static_cast<Algorithm>(random() % kAlgorithms),
                   static_cast<Protocol>(random() % kProtocols), static_cast<uint8_t>(random() % 65)};
  effect.channel_count = static_cast<ChannelCount>(random() % kChannelCounts);
  effect.log_ratio = Unit(random);
  effect.error = std::abs(Unit(random)) + 1e-9;
  effect.steps = static_cast<uint32_t>(1 + random() % 1000);
  return effect;
}

// Returns a file with times of calls and with effects on steps.
MeasurementFile AnyFileWithEffects(uint64_t seed) {
  std::mt19937_64 random(seed);
  MeasurementFile file = AnyFile(seed);
  for (int i = 0; i < 20; ++i)
    file.effects.push_back(AnyEffect(random, file.contexts[random() % 2].topology));
  return file;
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseMeasurements(text, "x.measurements");
  return parsed ? "no error" : parsed.error().message;
}

TEST(MeasurementFile, EveryNumberComesBackBitForBit) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const MeasurementFile file = AnyFile(seed);
    const auto text = FormatMeasurements(file);
    ASSERT_TRUE(text) << text.error().message;
    const auto parsed = ParseMeasurements(*text, "x");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, file) << "seed " << seed;
  }
}

TEST(MeasurementFile, EffectsComeBackBitForBit) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const MeasurementFile file = AnyFileWithEffects(seed);
    const auto text = FormatMeasurements(file);
    ASSERT_TRUE(text) << text.error().message;
    const auto parsed = ParseMeasurements(*text, "x");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, file) << "seed " << seed;
  }
}

TEST(MeasurementFile, OnlyFilesWithEffectsNeedTheNewVersion) {
  EXPECT_THAT(*FormatMeasurements(AnyFile(1)), HasSubstr("\"version\":1"));
  EXPECT_THAT(*FormatMeasurements(AnyFileWithEffects(1)), HasSubstr("\"version\":2"));
}

TEST(MeasurementFile, RefusesEffectsThatNoExperimentMeasures) {
  struct Case {
    const char* expected;
    void (*spoil)(MeasuredEffect&);
  };
  const Case cases[] = {
      {"'collectives' is empty", [](MeasuredEffect& effect) { effect.collectives = 0; }},
      {"'error' is 0, not between", [](MeasuredEffect& effect) { effect.error = 0; }},
      {"'log_ratio' is 9, not between -8 and 8", [](MeasuredEffect& effect) { effect.log_ratio = 9; }},
      {"'exposed' is 1.5, not between 0 and 1", [](MeasuredEffect& effect) { effect.exposed = 1.5; }},
      {"known together", [](MeasuredEffect& effect) { effect.slowness.reset(), effect.share = 1; }},
      {"steps", [](MeasuredEffect& effect) { effect.steps = 0; }},
      {"which has no context", [](MeasuredEffect& effect) { effect.topology = "elsewhere"; }},
  };
  for (const Case& each : cases) {
    MeasurementFile file = AnyFileWithEffects(7);
    each.spoil(file.effects[3]);
    const auto text = FormatMeasurements(file);
    ASSERT_FALSE(text) << each.expected;
    EXPECT_THAT(text.error().message, HasSubstr(each.expected));
  }
}

TEST(MeasurementFile, IsWrittenToAndReadFromDisk) {
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("{}.measurements", ::getpid());
  ASSERT_TRUE(WriteMeasurementFile(path, AnyFile(1)));
  const auto read = ReadMeasurementFile(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, AnyFile(1));
}

TEST(MeasurementFile, OneThatCannotBeWrittenWholeLeavesTheOldOneAndNoOther) {
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("measurements_{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string path = folder / "sweep.measurements";
  ASSERT_TRUE(WriteMeasurementFile(path, AnyFile(1)));
  // A limit on the size of files takes the place of a full disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{.rlim_cur = 100, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status written = WriteMeasurementFile(path, AnyFile(2));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("cannot write '" + path + "'"));
  EXPECT_EQ(*ReadMeasurementFile(path), AnyFile(1));
  const std::filesystem::directory_iterator files(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  std::filesystem::remove_all(folder);
}

TEST(MeasurementFile, EveryTruncationIsAnError) {
  const std::string text = *FormatMeasurements(AnyFileWithEffects(2));
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(ParseMeasurements(std::string_view(text).substr(0, length), "x")) << "length " << length;
  }
}

TEST(MeasurementFile, EveryFlippedBitIsAnError) {
  const std::string text = *FormatMeasurements(AnyFileWithEffects(3));
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text;
    damaged[random() % text.size()] ^= static_cast<char>(1 << (random() % 7));
    const auto parsed = ParseMeasurements(damaged, "x");
    // A flipped bit in the end line may leave the meaning unchanged, but not one that changes the case of a
    // hex digit. If the file is still read, nothing may be lost.
    if (parsed) {
      EXPECT_EQ(*parsed, AnyFileWithEffects(3));
    }
  }
}

TEST(MeasurementFile, ErrorsNameTheLine) {
  std::string text = *FormatMeasurements(AnyFile(4));
  const size_t row = text.find("\"kind\":\"row\"");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(row), '\n');
  text.replace(row, 12, "\"kind\":\"cow\"");
  EXPECT_THAT(ErrorOf(text), HasSubstr(fmt::format("x.measurements:{}: unknown kind 'cow'", line)));
}

TEST(MeasurementFile, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf("{}\n"), HasSubstr("not a measurement file"));
  EXPECT_THAT(ErrorOf("hello\n"), HasSubstr("x.measurements:1:"));
  EXPECT_THAT(ErrorOf("{\"magic\":\"dynamiccl-measurements\",\"version\":3}\n"),
              HasSubstr("version 3, this build reads 1 and 2"));
  std::string older = *FormatMeasurements(AnyFileWithEffects(5));
  older.replace(older.find("\"version\":2"), 11, "\"version\":1");
  EXPECT_THAT(ErrorOf(older), HasSubstr("unknown kind 'effect'"));
  EXPECT_THAT(ErrorOf(*FormatMeasurements(AnyFile(5)) + "{}\n"), HasSubstr("after the end line"));
}

TEST(MeasurementFile, RefusesToWriteWhatItCouldNotRead) {
  MeasurementFile file = AnyFile(6);
  file.rows[3].microseconds[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(FormatMeasurements(file));
  file = AnyFile(6);
  file.rows[0].topology = "elsewhere";
  EXPECT_FALSE(FormatMeasurements(file));
}

TEST(MeasurementFile, RefusesLinksBelowZero) {
  MeasurementFile file = AnyFile(6);
  file.contexts[1].model.fabric.inter.bandwidth_gbps = -5;
  const auto text = FormatMeasurements(file);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message,
              HasSubstr("the context of 'one node': 'bandwidth_gbps' of 'inter' is below 0"));
  std::string lines = *FormatMeasurements(AnyFile(6));
  lines.replace(lines.find("\"latency_us\":"), 13, "\"latency_us\":-");
  EXPECT_THAT(ErrorOf(lines), HasSubstr("x.measurements:2: 'latency_us' of "));
}

TEST(MeasurementFile, MissingFileIsNotFound) {
  const auto read = ReadMeasurementFile("/nonexistent/a.measurements");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace dynamiccl
