// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/settings_file.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/settings_arguments.h"

namespace dynamiccl::zero {
namespace {

using Words = std::vector<std::string>;

class SettingsFiles : public testing::Test {
 protected:
  SettingsFiles() {
    AddSettingsFileOptions(&command_);
    command_.add_option("--stage,--zero-stage", stage_);
    command_.add_option("--data", data_);
    command_.add_option("--bucket-bytes", bucket_);
    command_.add_flag("--overlap,!--no-overlap", overlap_);
    command_.add_flag("--eval-at-end");
    for (const char* name :
         {"--weight-decay", "--micro-steps", "--batch", "--dtype", "--exchange", "--loss-scale",
          "--first-loss-scale", "--learning-rate", "--reduce-type", "--accumulation-type", "--beta1",
          "--beta2", "--offload-optimizer", "--activation-checkpoints", "--clip-norm", "--tensor-parallel",
          "--shard-group", "--secondary-group", "--warmup"}) {
      command_.add_option(name, other_[name]);
    }
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  Result<SettingsArguments> Toml(const std::string& text, Words own = {}) {
    own.insert(own.begin(), {"--config", Write("run.toml", text)});
    return WithSettingsFiles(command_, own, 1);
  }
  Result<SettingsArguments> DeepSpeed(const std::string& text, int world = 1) {
    return WithSettingsFiles(command_, {"--deepspeed_config=" + Write("ds.json", text)}, world);
  }
  // Returns the arguments that a file added to the program's own.
  static Words Added(const Result<SettingsArguments>& result, size_t own) {
    return {result->arguments.begin() + static_cast<std::ptrdiff_t>(own), result->arguments.end()};
  }
  // Returns the value of an option; empty if there is none.
  static std::string ValueOf(const Result<SettingsArguments>& result, const std::string& option) {
    const auto place = std::find(result->arguments.begin(), result->arguments.end(), option);
    return place == result->arguments.end() || place + 1 == result->arguments.end() ? "" : *(place + 1);
  }
  void ExpectError(const Result<SettingsArguments>& result, const std::string& text) {
    ASSERT_FALSE(result);
    EXPECT_NE(Describe(result.error()).find(text), std::string::npos) << Describe(result.error());
  }

  CLI::App command_;
  TemporaryFolder folder_;
  int stage_ = 0;
  bool overlap_ = true;
  std::string bucket_;
  Words data_;
  std::map<std::string, std::string> other_;
};

TEST_F(SettingsFiles, TomlKeysAreOptions) {
  const auto result =
      Toml("stage = 3\n[zero]\noverlap = false\nbucket_bytes = \"64K\"\n[text]\ndata = [\"a\", \"b\"]\n");
  ASSERT_TRUE(result) << Describe(result.error());
  Words all = result->arguments;
  std::reverse(all.begin(), all.end());
  command_.parse(all);
  EXPECT_EQ(stage_, 3);
  EXPECT_FALSE(overlap_);
  EXPECT_EQ(bucket_, "64K");
  EXPECT_EQ(data_, (Words{"a", "b"}));
}

TEST_F(SettingsFiles, TheCommandLineWinsUnderAnyOfAnOptionsNames) {
  for (const Words& own : {Words{"--stage", "1"}, Words{"--stage=1"}, Words{"--zero-stage", "1"}}) {
    const auto result = Toml("stage = 3\noverlap = true\n", own);
    ASSERT_TRUE(result);
    EXPECT_EQ(Added(result, 2 + own.size()), Words{"--overlap"});
  }
  const auto result = Toml("overlap = true\n", {"--no-overlap"});
  ASSERT_TRUE(result);
  EXPECT_EQ(Added(result, 3), Words{});
}

TEST_F(SettingsFiles, WrongTomlIsNamedWithItsPlace) {
  ExpectError(Toml("stage = 1\nstgae = 3\n"), "run.toml: line 2, column 1: 'stgae' is no setting");
  ExpectError(Toml("stgae = 3\n"), "'stage' is one");
  ExpectError(Toml("stage = true\n"), "'stage' has a value that is not true or false");
  ExpectError(Toml("overlap = 3\n"), "'overlap' is true or false");
  ExpectError(Toml("stage = \n"), "line 1");
  ExpectError(Toml("stage = 1979-05-27\n"), "a number, a text, true or false");
  ExpectError(Toml("config = \"other.toml\"\n"), "'config' is no setting");
  ExpectError(WithSettingsFiles(command_, {"--config", (folder_ / "absent.toml").string()}, 1),
              "No such file");
}

TEST_F(SettingsFiles, DeepSpeedsBatchSizesAreOneEquation) {
  const auto expect = [&](const std::string& text, const std::string& batch, const std::string& micro_steps) {
    const auto result = DeepSpeed(text, 4);
    ASSERT_TRUE(result) << Describe(result.error());
    EXPECT_EQ(ValueOf(result, "--batch"), batch) << text;
    EXPECT_EQ(ValueOf(result, "--micro-steps"), micro_steps) << text;
  };
  expect(R"({"train_batch_size": 32})", "32", "1");
  expect(R"({"train_batch_size": 32, "gradient_accumulation_steps": 2})", "16", "2");
  expect(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})", "8", "4");
  expect(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})", "8", "3");
  expect(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})",
         "8", "3");
  expect(R"({"train_batch_size": "auto", "gradient_accumulation_steps": 3})", "", "3");
  expect(R"({"train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 2}})", "4", "1");
  ExpectError(DeepSpeed(R"({"train_batch_size": 33})", 4), "train_batch_size 33 is not");
  ExpectError(DeepSpeed(R"({"train_batch_size": 2})", 4), "train_batch_size 2 is not");
}

TEST_F(SettingsFiles, DeepSpeedsPrecision) {
  const auto fp16 =
      DeepSpeed(R"({"fp16": {"enabled": true, "initial_scale_power": 10}, "communication_data_type": "fp32",
                                  "zero_optimization": {"reduce_bucket_size": 1e6}})");
  ASSERT_TRUE(fp16) << Describe(fp16.error());
  EXPECT_EQ(ValueOf(fp16, "--dtype"), "fp16");
  EXPECT_EQ(ValueOf(fp16, "--loss-scale"), "dynamic");
  EXPECT_EQ(ValueOf(fp16, "--first-loss-scale"), "1024");
  EXPECT_EQ(ValueOf(fp16, "--reduce-type"), "fp32");
  EXPECT_EQ(ValueOf(fp16, "--bucket-bytes"), "4000000");
  const auto bf16 =
      DeepSpeed(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2, "overlap_comm": false,
                                  "reduce_bucket_size": 1e6, "allgather_bucket_size": 5}})");
  ASSERT_TRUE(bf16);
  EXPECT_EQ(ValueOf(bf16, "--dtype"), "bf16");
  EXPECT_EQ(ValueOf(bf16, "--bucket-bytes"), "2000000");
  EXPECT_NE(std::find(bf16->arguments.begin(), bf16->arguments.end(), "--no-overlap"), bf16->arguments.end());
  ASSERT_EQ(bf16->notes.size(), 5u);
  EXPECT_NE(bf16->notes[0].find("allgather_bucket_size: makes no difference"), std::string::npos);
  ExpectError(DeepSpeed(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})"), "both enabled");
  ExpectError(DeepSpeed(R"({"bf16": {"enabled": true}, "communication_data_type": "fp16"})"),
              "the trainer has bf16 and fp32");
}

TEST_F(SettingsFiles, DeepSpeedsKeysThatHaveNoEffectAreNoted) {
  const auto notes = [&](const std::string& text) {
    const auto result = DeepSpeed(text);
    EXPECT_TRUE(result) << Describe(result.error());
    Words found;
    for (const std::string& note : result->notes)
      if (const size_t at = note.find("ds.json: "); note.find("makes no difference") != std::string::npos)
        found.push_back(note.substr(at));
    return found;
  };
  EXPECT_EQ(
      notes(R"({"fp16": {"enabled": false, "loss_scale": 8, "initial_scale_power": 4, "hysteresis": 2}})"),
      (Words{"ds.json: fp16.loss_scale: makes no difference: fp16 is not enabled",
             "ds.json: fp16.initial_scale_power: makes no difference: fp16 is not enabled",
             "ds.json: fp16.hysteresis: makes no difference: fp16 is not enabled"}));
  EXPECT_EQ(
      notes(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu", "nvme_path": "/tmp"}}})"),
      Words{"ds.json: zero_optimization.offload_optimizer.nvme_path: makes no difference: the device is "
            "not nvme"});
}

// The command line also decides whether a setting has an effect. So ineffective_options.h checks this when
// all options are known.
TEST_F(SettingsFiles, DeepSpeedsScaleIsTranslatedBesideAFixedOneWithItsPlace) {
  const auto result = DeepSpeed(R"({"fp16": {"enabled": true, "loss_scale": 8, "initial_scale_power": 4}})");
  ASSERT_TRUE(result) << Describe(result.error());
  EXPECT_EQ(ValueOf(result, "--first-loss-scale"), "16");
  EXPECT_TRUE(result->translated.at("--first-loss-scale").ends_with("ds.json: fp16.initial_scale_power"));
}

TEST_F(SettingsFiles, DeepSpeedsSumsByAllReduce) {
  const auto all_reduce = DeepSpeed(R"({"zero_optimization": {"stage": 1, "reduce_scatter": false}})");
  ASSERT_TRUE(all_reduce) << Describe(all_reduce.error());
  EXPECT_EQ(ValueOf(all_reduce, "--exchange"), "all_reduce");
  const auto scatter = DeepSpeed(R"({"zero_optimization": {"stage": 1, "reduce_scatter": true}})");
  ASSERT_TRUE(scatter);
  EXPECT_EQ(std::ranges::count(scatter->arguments, "--exchange"), 0);
}

TEST_F(SettingsFiles, DeepSpeedsGroupsOfHybridSharding) {
  const auto read = [&](const std::string& text) {
    return DeepSpeed("{\"zero_optimization\": " + text + "}", 8);
  };
  const auto mics = read(R"({"mics_shard_size": 4, "mics_hierarchical_params_gather": false})");
  ASSERT_TRUE(mics) << Describe(mics.error());
  EXPECT_EQ(ValueOf(mics, "--shard-group"), "4");
  EXPECT_EQ(ValueOf(mics, "--secondary-group"), "");
  const auto hpz = read(R"({"stage": 3, "zero_hpz_partition_size": 8})");
  ASSERT_TRUE(hpz) << Describe(hpz.error());
  EXPECT_EQ(ValueOf(hpz, "--secondary-group"), "8");
  EXPECT_EQ(ValueOf(hpz, "--shard-group"), "");
  // DeepSpeed's defaults ask for nothing.
  const auto none = read(R"({"mics_shard_size": -1, "zero_hpz_partition_size": 1})");
  ASSERT_TRUE(none) << Describe(none.error());
  EXPECT_EQ(ValueOf(none, "--shard-group") + ValueOf(none, "--secondary-group"), "");
  for (const char* wrong : {"0", "-2", "1.5", "true", "\"4\""}) {
    ExpectError(read(std::string("{\"mics_shard_size\": ") + wrong + "}"), "a number of ranks, at least 1");
  }
  ExpectError(read(R"({"mics_hierarchical_params_gather": true})"), "the trainer has false only");
}

TEST_F(SettingsFiles, WhatDeepSpeedHasAndTheTrainerHasNotIsAnError) {
  ExpectError(DeepSpeed(R"({"zero_optimization": {"stage": 3, "sub_group_size": 8}})"),
              "zero_optimization.sub_group_size: the trainer has nothing for it");
  ExpectError(DeepSpeed(R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})"),
              "the trainer has false only");
  ExpectError(DeepSpeed(R"({"optimizer": {"type": "Lamb"}})"), "the trainer has \"AdamW\" only");
  ExpectError(DeepSpeed(R"({"zero_optimization": {"reduce_scatter": 3}})"), "ds.json");
  ExpectError(DeepSpeed(R"({"zero_optimization": {"overlap_comm": 1}})"), "neither true nor false");
  ExpectError(DeepSpeed(R"({"zero_optimization": )"), "ds.json");
  ExpectError(DeepSpeed(R"({"fp16": {"enabled": 3}})"), "ds.json");
  ExpectError(DeepSpeed(R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})"),
              "nvme_path is missing");
}

TEST_F(SettingsFiles, AFlagWithoutAnOppositeMayBeFalse) {
  const auto result = Toml("eval-at-end = false\noverlap = false\n");
  ASSERT_TRUE(result) << Describe(result.error());
  EXPECT_EQ(Added(result, 2), Words{"--no-overlap"});
  ExpectError(Toml("no-such-flag = false\n"), "is no setting");
}

TEST_F(SettingsFiles, DefaultsThatDifferFromDeepSpeedsAreTold) {
  const auto bare = DeepSpeed("{}");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->notes.size(), 4u);
  const auto full = DeepSpeed(
      R"({"optimizer": {"params": {"betas": [0.9, 0.999], "weight_decay": 0}}, "gradient_clipping": 1,
                                  "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 10,
                                    "warmup_type": "linear", "cos_min_ratio": 0.1}}})");
  ASSERT_TRUE(full) << Describe(full.error());
  EXPECT_EQ(full->notes, Words{});
  // DeepSpeed's default schedule warms up logarithmically for 1000 steps, and ends near 0.
  const auto schedule = DeepSpeed(R"({"optimizer": {"params": {"betas": [0.9, 0.999], "weight_decay": 0}},
                                      "gradient_clipping": 1, "scheduler": {"type": "WarmupCosineLR"}})");
  ASSERT_TRUE(schedule) << Describe(schedule.error());
  ASSERT_EQ(schedule->notes.size(), 3u);
  EXPECT_NE(schedule->notes[0].find("warmup_num_steps is not there"), std::string::npos);
  EXPECT_NE(schedule->notes[1].find("linear, where DeepSpeed has log"), std::string::npos);
  EXPECT_NE(schedule->notes[2].find("0.1, where DeepSpeed has 0.0001"), std::string::npos);
}

TEST_F(SettingsFiles, OneFileAtATime) {
  ExpectError(WithSettingsFiles(command_, {"--config", "a", "--deepspeed-config", "b"}, 1),
              "one of them at a time");
}

}  // namespace
}  // namespace dynamiccl::zero
