// SPDX-License-Identifier: Apache-2.0
// Tests settings of Megatron-LM: the flags of the started command, the candidates for flags, and receipts.
// Receipts compare with the calls that `dynamiccl trace generate` makes for Megatron-LM.
#include "tools/tune/megatron_settings.h"

#include <gmock/gmock.h>

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CommandWords kScript = {"torchrun", "pretrain_gpt.py", "--num-layers", "24"};

CommandWords With(const CommandWords& more) {
  CommandWords command = kScript;
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

TEST(MegatronSettings, AreOfCommandsThatStartMegatron) {
  EXPECT_TRUE(StartsMegatron(kScript));
  EXPECT_TRUE(StartsMegatron({"python", "mine.py", "--num-layers=4", "--micro-batch-size", "1"}));
  EXPECT_FALSE(StartsMegatron({"python", "train.py", "--num-layers", "4"}));
  const CommandWords other = {"python", "train.py", "--ddp-bucket-size", "5"};
  EXPECT_EQ(WithValues(other, {{"megatron.ddp_bucket_size", 7}}), other);
}

TEST(MegatronSettings, TakeThePlaceOfTheFlagsOfTheCommand) {
  EXPECT_EQ(WithValues(With({"--ddp-bucket-size", "5", "--ddp-num-buckets=3", "--overlap-grad-reduce"}),
                       {{"megatron.ddp_bucket_size", 7}, {"megatron.overlap_param_gather", true}}),
            With({"--overlap-grad-reduce", "--ddp-bucket-size", "7", "--overlap-param-gather"}));
  EXPECT_EQ(
      WithValues(With({"--overlap-grad-reduce", "--seed", "1"}), {{"megatron.overlap_grad_reduce", false}}),
      With({"--seed", "1"}));
  EXPECT_EQ(WithValues({"dynamiccl-zero", "train"}, {{"zero.overlap", false}}),
            (CommandWords{"dynamiccl-zero", "train", "--no-overlap"}));
}

TEST(MegatronSettings, AreLinesForTheUser) {
  FrameworkValues values;
  for (const char* const text : {"ddp_bucket_size=40000000", "overlap_grad_reduce=true"})
    ASSERT_TRUE(AddValue(text, values)) << text;
  EXPECT_EQ(DescribeValues(values), "ddp_bucket_size=40000000 overlap_grad_reduce=true");
  EXPECT_EQ(LinesForScript(values), "pretrain_gpt.py ... --ddp-bucket-size 40000000 --overlap-grad-reduce\n");
  EXPECT_EQ(LinesForScript({{"megatron.overlap_grad_reduce", false}}), "without --overlap-grad-reduce\n");
  const auto read = ParseFrameworkSettings(FrameworkSettingsText({.values = values}), "s.json");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->values, values);
  EXPECT_FALSE(AddValue("ddp_bucket_size=0", values));
}

std::vector<std::string> NamesFor(const CommandWords& flags, int ranks = 8) {
  CandidateList list;
  AddMegatronCandidates(With(flags), ranks, list);
  std::vector<std::string> names;
  for (const Candidate& candidate : list.framework) names.push_back(candidate.Name());
  return names;
}

TEST(MegatronCandidates, AreThoseThatTheFlagsLeaveOpen) {
  EXPECT_THAT(NamesFor({}), ElementsAre("overlap_grad_reduce=true"));
  EXPECT_THAT(NamesFor({"--use-distributed-optimizer"}),
              ElementsAre("overlap_grad_reduce=true", "overlap_grad_reduce=true overlap_param_gather=true"));
  // Megatron-LM's default is 40 million elements, or one million per data rank if that is more.
  EXPECT_THAT(NamesFor({"--overlap-grad-reduce", "--use-distributed-optimizer", "--overlap-param-gather"}),
              ElementsAre("ddp_bucket_size=10000000", "ddp_bucket_size=200000000"));
  EXPECT_THAT(NamesFor({"--overlap-grad-reduce", "--tensor-model-parallel-size", "2"}, 400),
              ElementsAre("ddp_bucket_size=10000000", "ddp_bucket_size=40000000"));
  EXPECT_THAT(NamesFor({"--overlap-grad-reduce", "--ddp-bucket-size=10000000"}),
              ElementsAre("ddp_bucket_size=40000000", "ddp_bucket_size=200000000"));
}

TEST(MegatronCandidates, AreNoneForOtherBucketsAndConfigurationFiles) {
  for (const char* const flag : {"--use-megatron-fsdp", "--yaml-cfg"}) {
    CandidateList list;
    AddMegatronCandidates(With({flag}), 8, list);
    EXPECT_THAT(list.framework, IsEmpty());
    EXPECT_THAT(list.left_out, ElementsAre(HasSubstr(flag)));
  }
}

// Returns a run with two gathers of parameters, two scalars, and sums of gradients with these numbers of
// elements.
WatchedRun RunOf(Collective sums, const std::vector<int64_t>& elements) {
  WatchedRun run;
  run.step.emplace();
  for (const int64_t count : elements)
    run.step->operations.push_back({.collective = sums, .elements = count});
  for (int i = 0; i < 2; ++i) {
    run.step->operations.push_back({.collective = Collective::kAllReduce, .elements = 1});
    run.step->operations.push_back({.collective = Collective::kAllGather, .elements = 3000000});
  }
  return run;
}

SettingReceipt ReceiptOf(const WatchedRun& run, const CommandWords& flags) {
  return ReceiptsOfCommand({{"megatron.ddp_bucket_size", 1000000}}, With(flags), run).at(0);
}

TEST(MegatronReceipts, AreByTheSizesOfSums) {
  const CommandWords overlap = {"--overlap-grad-reduce"};
  for (const Collective sums : {Collective::kReduceScatter, Collective::kAllReduce}) {
    const SettingReceipt buckets = ReceiptOf(RunOf(sums, {1200000, 1000000, 40000}), overlap);
    EXPECT_EQ(buckets.standing, SettingStanding::kInEffect);
    EXPECT_THAT(buckets.how, HasSubstr("2 of 3 sums of gradients"));
    EXPECT_EQ(ReceiptOf(RunOf(sums, {2240000}), overlap).standing, SettingStanding::kNotProvable);
    EXPECT_EQ(ReceiptOf(RunOf(sums, {1200000, 9000, 9000}), overlap).standing, SettingStanding::kNotProvable);
  }
  const SettingReceipt one = ReceiptOf(RunOf(Collective::kReduceScatter, {2240000}), {});
  EXPECT_EQ(one.standing, SettingStanding::kNotInEffect);
  EXPECT_THAT(one.how, HasSubstr("one bucket for all gradients"));
}

TEST(MegatronReceipts, OfOtherCommandsSayWhyNothingIsInEffect) {
  const WatchedRun run = RunOf(Collective::kAllReduce, {1});
  const auto receipts = ReceiptsOfCommand({{"megatron.overlap_grad_reduce", true}}, {"python", "t.py"}, run);
  EXPECT_EQ(receipts.at(0).standing, SettingStanding::kNotInEffect);
  EXPECT_THAT(receipts.at(0).how, AllOf(HasSubstr("does not start"), HasSubstr("Megatron-LM")));
}

// Without overlap there is one bucket. With overlap there is by default one bucket per 40 million elements.
TEST(MegatronReceipts, OfOverlapAreByTheBucketsThatItBrings) {
  const auto standing = [](const char* setting, const std::vector<int64_t>& sums, const CommandWords& flags) {
    const WatchedRun run = RunOf(Collective::kAllReduce, sums);
    return ReceiptsOfCommand({{setting, true}}, With(flags), run).at(0).standing;
  };
  const char* const reduce = "megatron.overlap_grad_reduce";
  EXPECT_EQ(standing(reduce, {41000000, 9000000}, {"--overlap-grad-reduce"}), SettingStanding::kInEffect);
  EXPECT_EQ(standing(reduce, {9000000}, {"--overlap-grad-reduce"}), SettingStanding::kNotProvable);
  EXPECT_EQ(standing(reduce, {50000000}, {}), SettingStanding::kNotInEffect);
  EXPECT_EQ(standing("megatron.overlap_param_gather", {9000000}, {"--overlap-param-gather"}),
            SettingStanding::kNotProvable);
}

}  // namespace
}  // namespace dynamiccl
