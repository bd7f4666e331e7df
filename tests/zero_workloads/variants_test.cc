// SPDX-License-Identifier: Apache-2.0
// Other ways to exchange the same numbers: none of them changes a bit of what comes out.
#include <gtest/gtest.h>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

using Arguments = std::vector<std::string>;

TrainingReport Train(int ranks, Arguments arguments) {
  arguments.insert(arguments.end(), {"--steps", "10"});
  return TrainSmall(ranks, arguments, {{"HOSTCCL_SUM", "rank_order"}});
}

void ExpectEqual(const TrainingReport& reference, int ranks, const Arguments& arguments) {
  const TrainingReport report = Train(ranks, arguments);
  ASSERT_EQ(reference.losses.size(), 10u);
  EXPECT_EQ(report.losses, reference.losses) << arguments[1] << " on " << ranks;
  EXPECT_EQ(report.parameters_sha256, reference.parameters_sha256) << arguments[1] << " on " << ranks;
}

TEST(Variants, OwnersReduceAndBroadcastTheirParts) {
  for (const int ranks : {2, 3}) {
    const TrainingReport reference = Train(ranks, {"--stage", "0"});
    for (const char* stage : {"1", "2", "3"})
      ExpectEqual(reference, ranks, {"--stage", stage, "--exchange", "owner"});
  }
}

TEST(Variants, OneCollectiveAParameter) {
  const TrainingReport reference = Train(2, {"--stage", "0", "--unit", "parameter"});
  for (const char* stage : {"1", "2", "3"})
    ExpectEqual(reference, 2, {"--stage", stage, "--unit", "parameter"});
  ExpectEqual(reference, 2, {"--stage", "3", "--unit", "parameter", "--exchange", "owner", "--no-prefetch"});
  // Shards are other parts of the parameters than with blocks, so the norm is added up in another order.
  const TrainingReport blocks = Train(2, {"--stage", "0"});
  for (size_t step = 0; step < blocks.losses.size(); ++step)
    EXPECT_NEAR(std::stod(blocks.losses[step]), std::stod(reference.losses[step]), 1e-5);
}

}  // namespace
}  // namespace dynamiccl::zero
