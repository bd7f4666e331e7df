// SPDX-License-Identifier: Apache-2.0
// The preloaded object in jobs of several processes over hostccl: what it changes, and what it must not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/nccl_job_run.h"

namespace dynamiccl::testing {
namespace {

TEST(PreloadOverHostccl, WithoutAnySettingTheJobRunsInSilence) {
  const JobResult job = RunJob({.n_ranks = 2});
  EXPECT_TRUE(job.ok()) << job.AllErrors();
  EXPECT_EQ(job.AllErrors(), "");
}

}  // namespace
}  // namespace dynamiccl::testing
