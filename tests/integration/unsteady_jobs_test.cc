// SPDX-License-Identifier: Apache-2.0
// Jobs in mode adaptive over hostccl whose steps are not all alike. By the modelled times no config is faster
// than another. So NCCL's choice must stay, and the summary of `dynamiccl run` must state the one true
// reason.
#include <fmt/format.h>

#include "src/decision/site_store/site_store_file.h"
#include "tests/integration/job_fixture.h"
#include "tools/record/found_choices.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

class UnsteadyJobs : public JobTest {
 protected:
  // Runs a job of two ranks with `steps` steps of this kind.
  JobResult RunKind(const std::string& kind, int steps, const Environment& more = {}) {
    JobOptions options;
    options.rounds = std::to_string(steps);
    options.also_preload = DYNAMICCL_TEST_MODELLED_TIMES;
    options.environment = With({{"JOB_KIND", kind},
                                {"HOSTCCL_TOPOLOGY", "two-nodes-ethernet"},
                                {"DYNAMICCL_MODE", "adaptive"},
                                {"DYNAMICCL_LOG", "info"},
                                {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"},
                                {"DYNAMICCL_METRICS", "%d/m.%r.prom"},
                                {"DYNAMICCL_SITE_STORE", "%d/site.dcsite"},
                                {"MODEL_SLEEP", "2"},
                                {"NCCL_PROFILER_PLUGIN", DYNAMICCL_TEST_MODELLED_TIMES},
                                {"TEST_DYNAMICCL", DYNAMICCL_TEST_PRELOAD}},
                               more);
    JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    return job;
  }

  static size_t Versions(const JobResult& job, const std::string& reason) {
    return LinesWith(job.output[0], ": " + reason + "; ").size();
  }
  // Returns the sentence that the summary must contain. The versions in the guard's log decide which one it
  // is.
  static std::string TrueReason(const JobResult& job) {
    const size_t ended = Versions(job, "steps have changed");
    if (ended > 0)
      return fmt::format(
          "nothing was confirmed: steps came with other calls, which ended {} of its experiments", ended);
    if (Versions(job, "trials begin") > 0)
      return "nothing was confirmed: the job ended before its experiment had a result";
    return "nothing was confirmed: no experiment began, which takes seven steps in a row "
           "with the same calls, and 14 calls";
  }
  static std::string Summary(const JobResult& job) {
    const auto store = ReadSiteStore(job.folder + "/site.dcsite");
    EXPECT_TRUE(store);
    return DescribeFound({}, *store, "", ExperimentsIn({job.Text("m.0.prom"), job.Text("m.1.prom")}));
  }
  // Requires that all ranks decided the same, and that every call except trials was left to NCCL.
  static void ExpectNcclsChoice(const JobResult& job) {
    ExpectEqualLogs(job, 2);
    for (const std::string& line : LinesWith(job.Text("decisions.0"), " ")) {
      const bool is_ours = line.find(" - ") == std::string::npos;
      EXPECT_TRUE(!is_ours || line.find(" trial ") != std::string::npos) << line;
    }
    EXPECT_EQ(Versions(job, "a trial was better"), 0u) << job.output[0];
  }
};

class UnsteadySteps : public UnsteadyJobs, public ::testing::WithParamInterface<const char*> {};

TEST_P(UnsteadySteps, KeepNcclsChoiceAndTheSummarySaysWhy) {
  const JobResult job = RunKind(GetParam(), 160);
  ExpectNcclsChoice(job);
  EXPECT_EQ(Summary(job), TrueReason(job));
}
INSTANTIATE_TEST_SUITE_P(All, UnsteadySteps,
                         ::testing::Values("accumulation", "communicators", "evaluation", "changing", "late"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(UnsteadyJobs, ThatChangeTheirCallsEveryStepBeginNoExperiment) {
  const JobResult job = RunKind("changing", 160);
  EXPECT_EQ(Versions(job, "trials begin"), 0u);
  EXPECT_THAT(Summary(job), HasSubstr("no experiment began"));
  EXPECT_EQ(LinesWith(job.Text("decisions.0"), " trial ").size(), 0u);
}

TEST_F(UnsteadyJobs, OfTwentyStepsKeepNcclsChoice) {
  const JobResult job = RunKind("steady", 20);
  ExpectNcclsChoice(job);
  EXPECT_EQ(Summary(job), TrueReason(job));
}

TEST_F(UnsteadyJobs, WhoseDevicesClockJumpsKeepNcclsChoice) {
  const JobResult job = RunKind("steady", 160, {{"MODEL_JUMPS", "23"}});
  ExpectNcclsChoice(job);
  EXPECT_EQ(Summary(job), TrueReason(job));
}

}  // namespace
}  // namespace dynamiccl::testing
