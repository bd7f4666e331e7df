// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/job_description.h"

#include <gmock/gmock.h>

#include "tools/advise/trainer_options.h"

namespace dynamiccl {
namespace {

TEST(JobDescription, NamesWhatIsRecognisedOfEachFramework) {
  WatchedRun ddp{.reports = {{.ddp = DdpReport{.constructed = 1, .bucket_cap_mb = 25}}},
                 .step = RecordedStep{.ranks = 4}};
  ddp.step->operations = {
      {.collective = Collective::kAllReduce, .data_type = DataType::kBfloat16, .elements = 64},
      {.collective = Collective::kAllReduce, .data_type = DataType::kInt32, .elements = 2}};
  EXPECT_EQ(DescribeJob(ddp, std::nullopt),
            fmt::format("buckets of 25 MiB, gradients summed as {}", Name(DataType::kBfloat16)));

  ddp.reports.front().ddp->static_graph = true;
  ddp.reports.front().ddp->find_unused_parameters = true;
  EXPECT_EQ(
      DescribeJob(ddp, std::nullopt),
      fmt::format("buckets of 25 MiB, static graph, unused parameters are looked for, gradients summed as {}",
                  Name(DataType::kBfloat16)));

  WatchedRun fsdp2{.reports = {{.fsdp2 = Fsdp2Report{.wrapped = 2}}},
                   .step = RecordedStep{.ranks = 8, .shard_ranks = 4}};
  for (const auto collective : {Collective::kAllGather, Collective::kAllGather, Collective::kReduceScatter})
    fsdp2.step->operations.push_back(
        {.collective = collective, .data_type = DataType::kFloat32, .elements = 8});
  EXPECT_EQ(
      DescribeJob(fsdp2, 0.314),
      "2 wrapped modules, parameters gathered again in the backward pass, states divided over 4 of 8 ranks, "
      "gradients summed as float, 31 % of a step waits for communication (simulated)");

  fsdp2.reports.front().fsdp2 =
      Fsdp2Report{.wrapped = 2, .largest_unit = 3, .forward_prefetch = 1, .backward_prefetch = 2};
  EXPECT_THAT(DescribeJob(fsdp2, std::nullopt),
              ::testing::StartsWith(
                  "2 units of at most 3 modules, forward prefetch 1, backward prefetch 2, parameters"));

  WatchedRun deepspeed{.reports = {{.deepspeed = DeepSpeedReport{.stage = 3,
                                                                 .values = {{"overlap_comm", true},
                                                                            {"reduce_bucket_size", 5000}}}}},
                       .step = RecordedStep{.ranks = 2}};
  EXPECT_EQ(DescribeJob(deepspeed, std::nullopt), "ZeRO stage 3, overlap_comm true, reduce_bucket_size 5000");

  WatchedRun trainer{.step = RecordedStep{.ranks = 2}};
  trainer.trainer = *TrainerJobOf({"--stage", "3", "--bucket-bytes", "256K", "--no-prefetch"}, 2);
  EXPECT_EQ(DescribeJob(trainer, std::nullopt), "ZeRO stage 3, buckets of 256K, overlap, no prefetch");
  trainer.trainer = *TrainerJobOf({"--stage", "2", "--bucket-bytes", "all", "--no-overlap"}, 2);
  EXPECT_EQ(DescribeJob(trainer, std::nullopt), "ZeRO stage 2, one bucket, no overlap");
}

}  // namespace
}  // namespace dynamiccl
