// SPDX-License-Identifier: Apache-2.0
// Tests settings of the project's trainer. The started command has them, the calls prove them, and the
// predictions equal those of `dynamiccl advise`.
#include "tools/tune/trainer_settings.h"

#include <gmock/gmock.h>

#include "tools/advise/advice.h"
#include "tools/advise/trainer_options.h"
#include "tools/tune/change_prediction.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const FrameworkValues kValues = {
    {"zero.bucket_bytes", 4 << 20}, {"zero.overlap", false}, {"zero.prefetch", true}};

TEST(TrainerSettings, TakeThePlaceOfTheOptionsOfTheCommand) {
  const CommandWords given = {"bin/dynamiccl-zero",
                              "train",
                              "--overlap-comm",
                              "--bucket-bytes=1M",
                              "--no-prefetch",
                              "--data",
                              "text"};
  EXPECT_THAT(WithTrainerValues(given, kValues),
              ElementsAre("bin/dynamiccl-zero", "train", "--data", "text", "--bucket-bytes", "4M",
                          "--no-overlap", "--prefetch"));
  EXPECT_THAT(WithTrainerValues({"torchrun", "--no-python", "dynamiccl-zero", "train", "--stage", "2"},
                                {{"zero.bucket_bytes", "all"}}),
              ElementsAre("torchrun", "--no-python", "dynamiccl-zero", "train", "--stage", "2",
                          "--bucket-bytes", "all"));
  EXPECT_THAT(
      WithTrainerValues({"dynamiccl", "zero", "--bucket-bytes", "64"}, {{"zero.bucket_bytes", 100001}}),
      ElementsAre("dynamiccl", "zero", "--bucket-bytes", "100001"));
}

TEST(TrainerSettings, LeaveOtherCommandsAndOtherFrameworksAlone) {
  const CommandWords script = {"python", "train.py", "--bucket-bytes", "1M"};
  EXPECT_EQ(WithTrainerValues(script, kValues), script);
  const CommandWords estimate = {"dynamiccl-zero", "estimate"};
  EXPECT_EQ(WithTrainerValues(estimate, kValues), estimate);
  const CommandWords trainer = {"dynamiccl-zero", "train", "--bucket-bytes", "1M"};
  EXPECT_EQ(WithTrainerValues(trainer, {{"ddp.bucket_cap_mb", 1}}), trainer);
}

CommandWords OptionsOfStage(int stage) {
  return {"--stage", std::to_string(stage), "--layers", "6", "--hidden", "256"};
}

std::vector<std::string> NamesOf(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(candidate.Name());
  return names;
}

TEST(TrainerCandidates, AreThoseThatKeepStageAndNumerics) {
  const auto sharded = TrainerJobOf(OptionsOfStage(3), 2);
  ASSERT_TRUE(sharded);
  EXPECT_THAT(NamesOf(TrainerCandidates(*sharded)),
              ElementsAre("bucket_bytes=64K", "bucket_bytes=256K", "bucket_bytes=1M", "bucket_bytes=16M",
                          "bucket_bytes=64M", "bucket_bytes=all", "prefetch=false", "overlap=false"));
  const auto gradients = TrainerJobOf(OptionsOfStage(2), 2);
  EXPECT_THAT(NamesOf(TrainerCandidates(*gradients)),
              AllOf(Contains("overlap=false"), Not(Contains("prefetch=false"))));
  CommandWords by_parameter = OptionsOfStage(2);
  by_parameter.insert(by_parameter.end(), {"--unit", "parameter", "--no-overlap"});
  const auto unbucketed = TrainerJobOf(by_parameter, 2);
  EXPECT_THAT(NamesOf(TrainerCandidates(*unbucketed)), ElementsAre("overlap=true"));
}

// Returns a run of the trainer with these options. A collective takes 0.1 ms plus 2 ms per megabyte.
WatchedRun RunWith(const CommandWords& options) {
  WatchedRun run;
  run.trainer = *TrainerJobOf(options, 2);
  run.step = RecordedStep{.ranks = 2, .ranks_per_node = 2, .operations = *OperationsOf(*run.trainer)};
  run.step->step_ns = 300'000'000;
  run.step->issued_ns.resize(run.step->operations.size(), 0);
  for (const auto collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const double megabytes : {0.0625, 1.0, 4.0, 16.0, 64.0})
      run.step->times.push_back({.collective = collective,
                                 .n_ranks = 2,
                                 .n_nodes = 1,
                                 .bytes = static_cast<uint64_t>(megabytes * (1 << 20)),
                                 .us = 100 + 2000 * megabytes});
  return run;
}

TEST(TrainerCandidates, ArePredictedAsAdvisePredictsThem) {
  const WatchedRun run = RunWith(OptionsOfStage(3));
  const auto prediction = ChangePrediction::From(run);
  ASSERT_TRUE(prediction) << prediction.error().message;
  const auto advice = Advise(*run.step, {.job = *run.trainer}, *SystemOfTimes(*run.step), 0);
  ASSERT_TRUE(advice);
  size_t compared = 0;
  for (const Candidate& candidate : TrainerCandidates(*run.trainer))
    for (const AdvisedChange& change : advice->changes) {
      if (change.change.how != fmt::format("{}", fmt::join(TrainerOptionsOf(candidate.values), " ")))
        continue;
      EXPECT_NEAR(
          *prediction->RatioOf(candidate),
          static_cast<double>(change.predicted.step_ns) / static_cast<double>(advice->simulated.step_ns),
          1e-6)
          << candidate.Name();
      ++compared;
    }
  EXPECT_EQ(compared, 8u);
}

TEST(TrainerCandidates, ThatMakeTheSameCallsAreTriedOnce) {
  const WatchedRun run = RunWith(OptionsOfStage(2));
  const auto prediction = ChangePrediction::From(run);
  ASSERT_TRUE(prediction);
  const auto forecasts = ForecastsOf(*prediction, TrainerCandidates(*run.trainer));
  const auto all = std::ranges::find(forecasts, "bucket_bytes=all", &Forecast::setting);
  ASSERT_NE(all, forecasts.end());
  EXPECT_THAT(all->not_tried, HasSubstr("the same calls as bucket_bytes="));
}

SettingReceipt Receipt(const std::string& setting, const Json& value, const CommandWords& given,
                       const WatchedRun& run) {
  CommandWords command = {"dynamiccl-zero", "train"};
  command.insert(command.end(), given.begin(), given.end());
  return ReceiptsOfWatched({{setting, value}}, WithTrainerValues(command, {{setting, value}}), run).front();
}

TEST(TrainerReceipt, IsInEffectWhereTheCallsAreThoseOfTheSetting) {
  CommandWords small = OptionsOfStage(3);
  small.insert(small.end(), {"--bucket-bytes", "256K", "--no-prefetch"});
  const WatchedRun run = RunWith(small);
  EXPECT_EQ(Receipt("zero.bucket_bytes", 256 << 10, small, run).standing, SettingStanding::kInEffect);
  EXPECT_EQ(Receipt("zero.prefetch", false, small, run).standing, SettingStanding::kInEffect);
  EXPECT_EQ(Receipt("zero.overlap", false, small, run).standing, SettingStanding::kNotProvable);
  // The recorded calls show buckets of 256K and no prefetching.
  EXPECT_EQ(Receipt("zero.bucket_bytes", 1 << 20, small, run).standing, SettingStanding::kNotInEffect);
  EXPECT_EQ(Receipt("zero.prefetch", true, small, run).standing, SettingStanding::kNotInEffect);
}

TEST(TrainerReceipt, SaysWhyASettingIsIgnored) {
  const WatchedRun run = RunWith(OptionsOfStage(2));
  EXPECT_THAT(Receipt("zero.prefetch", true, OptionsOfStage(2), run).how, HasSubstr("stage 2 gathers no"));
  CommandWords by_parameter = OptionsOfStage(2);
  by_parameter.insert(by_parameter.end(), {"--unit", "parameter"});
  EXPECT_THAT(Receipt("zero.bucket_bytes", 1, by_parameter, run).how, HasSubstr("there are no buckets"));
  const auto other = ReceiptsOfWatched({{"zero.overlap", false}}, {"python", "train.py"}, run);
  EXPECT_EQ(other.front().standing, SettingStanding::kNotInEffect);
  EXPECT_THAT(other.front().how, HasSubstr("does not start `dynamiccl-zero train`"));
  CommandWords from_file = OptionsOfStage(2);
  from_file.insert(from_file.end(), {"--config", "run.toml"});
  EXPECT_EQ(Receipt("zero.bucket_bytes", 1, from_file, run).standing, SettingStanding::kNotProvable);
}

}  // namespace
}  // namespace dynamiccl
