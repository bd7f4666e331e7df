// SPDX-License-Identifier: Apache-2.0
// A profiler plugin that the job would have had without DynamICCL must get the same events with it, in every
// version, while collectives are timed.
#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Counting(int version) {
  return std::string(DYNAMICCL_TEST_PLUGIN_FOLDER) + "/counting_v" + std::to_string(version) +
         "/libcounting.so";
}

class ChainedProfilers : public JobTest {
 protected:
  // 20 rounds of 17 calls: one timing window.
  JobOptions Options(const Environment& environment) {
    JobOptions options{.n_ranks = 2, .rounds = "20"};
    options.environment =
        With({{"TEST_MASK", "65535"}, {"DYNAMICCL_LOG", "info"}, {"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}},
             environment);
    for (int rank = 0; rank < 2; ++rank)
      options.environment_of[rank] = {{"TEST_COUNTS", "%d/counts." + std::to_string(rank)}};
    return options;
  }

  void ExpectSameEvents(JobOptions options) {
    options.preload = false;
    const JobResult alone = Run(options);
    options.preload = true;
    options.environment["DYNAMICCL_TIMES"] = "1";
    const JobResult with = Run(options);
    EXPECT_TRUE(alone.ok() && with.ok()) << alone.AllOutput() << with.AllOutput();
    EXPECT_THAT(alone.Text("counts.0"), HasSubstr("strangers 0"));
    for (const char* counts : {"counts.0", "counts.1"}) EXPECT_EQ(with.Text(counts), alone.Text(counts));
    EXPECT_EQ(LinesWith(with.output[0], "dynamiccl: timed 2 of 360 calls (0.56 %), 2 to their end").size(),
              1u)
        << with.output[0];
  }
};

TEST_F(ChainedProfilers, OfEveryVersionGetTheSameEventsInBothFamiliesOfReleases) {
  for (const char* release : {"2.30", "2.32"}) {
    for (int version = 1; version <= 7; ++version) {
      SCOPED_TRACE(release + (" version " + std::to_string(version)));
      ExpectSameEvents(Options({{"NCCL_PROFILER_PLUGIN", Counting(version)}, {"HOSTCCL_EMULATE", release}}));
    }
  }
}

TEST_F(ChainedProfilers, GetNoEventFromAReleaseWithoutProfilers) {
  JobOptions options =
      Options({{"NCCL_PROFILER_PLUGIN", Counting(1)}, {"HOSTCCL_EMULATE", "2.22"}, {"DYNAMICCL_TIMES", "1"}});
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(job.Text("counts.0"), "");
  EXPECT_THAT(job.output[0], Not(HasSubstr("calls (0.56 %), 2 to their end")));
}

// Events that NCCL sends only because DynamICCL asked for them must not reach the plugin.
TEST_F(ChainedProfilers, GetNoEventThatTheyDidNotWant) {
  for (const char* mask : {"0", "2", "64", "512"}) {
    SCOPED_TRACE(mask);
    ExpectSameEvents(Options({{"NCCL_PROFILER_PLUGIN", Counting(7)}, {"TEST_MASK", mask}}));
  }
}

TEST_F(ChainedProfilers, AreFoundInsideTheNetworkPluginAndByDefaultName) {
  ExpectSameEvents(Options({{"NCCL_NET_PLUGIN", Counting(5)}}));
  std::filesystem::create_symlink(Counting(6), folder_ + "/libnccl-profiler.so");
  ExpectSameEvents(Options({{"LD_LIBRARY_PATH", folder_}}));
}

}  // namespace
}  // namespace dynamiccl::testing
