// SPDX-License-Identifier: Apache-2.0
// Runs jobs with the object under valgrind's memcheck. It also checks how the C library, the dynamic linker
// and the program use the object's memory. There must be no error, and no memory without a pointer to it.
#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

constexpr int kFound = 99;

class Memcheck : public JobTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Memcheck, FindsNothing) {
  if (std::system("valgrind --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "valgrind is not installed";
  JobOptions options{.n_ranks = 2, .extras = {"split", "many", "peers"}};
  options.under = {"valgrind",
                   "--quiet",
                   "--leak-check=full",
                   "--show-leak-kinds=definite,indirect",
                   "--errors-for-leak-kinds=definite,indirect",
                   "--error-exitcode=" + std::to_string(kFound)};
  options.environment = {{"DYNAMICCL_MODE", GetParam()},
                         {"DYNAMICCL_POLICY", PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple)},
                         {"DYNAMICCL_TRACE", "%d/trace.%r"},
                         {"DYNAMICCL_METRICS", "%d/metrics.%r"},
                         {"DYNAMICCL_SITE_STORE", "%d/store"},
                         {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}};
  options.seconds = 250;
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(LinesWith(job.AllOutput(), "=="), ::testing::IsEmpty()) << job.AllOutput();
}

INSTANTIATE_TEST_SUITE_P(Modes, Memcheck, ::testing::Values("observe", "frozen", "adaptive"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace dynamiccl::testing
