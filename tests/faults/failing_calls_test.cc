// SPDX-License-Identifier: Apache-2.0
// Lets the n-th call fail that the preloaded object makes of malloc, mmap, open and others. n counts up until
// the object makes fewer calls. The job's results must stay right, all ranks must end with 0, and nothing may
// hang. After kEach, n grows by a third each time; with ALL_FAULTS=1 it always grows by one.
#include <algorithm>
#include <cstdlib>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

constexpr int kEach = 6;
constexpr int kRanks = 2;

struct Fault {
  const char* call;
  const char* mode;
  bool all;  // all later calls fail too, as on a full disk
};

int After(int n) {
  const bool each = std::getenv("ALL_FAULTS") != nullptr;
  return each || n < kEach ? n + 1 : n + std::max(1, n / 3);
}

class FailingCalls : public JobTest, public ::testing::WithParamInterface<Fault> {
 protected:
  JobResult RunWith(int n, int rank) {
    const Fault& fault = GetParam();
    const std::string policy = PolicyFile("p", Algorithm::kRing, Protocol::kSimple);
    JobOptions options{.n_ranks = kRanks, .rounds = "3", .extras = {"split"}};
    options.environment = {{"DYNAMICCL_MODE", fault.mode},
                           {"DYNAMICCL_POLICY", policy},
                           {"DYNAMICCL_TRACE", "%d/%r.ctrace"},
                           {"DYNAMICCL_METRICS", "%d/%r.prom"},
                           {"DYNAMICCL_ATTEST_TIMEOUT_MS", "500"}};
    options.seconds = 20;
    options.also_preload = DYNAMICCL_TEST_FAILING_CALLS;
    options.environment_of[rank] = {
        {"FAILING_CALL", fault.call}, {"FAILING_FROM", std::to_string(n)}, {"FAILING_HIT", "%d/hit"}};
    if (fault.all) options.environment_of[rank]["FAILING_ALL"] = "1";
    return Run(options);
  }
};

TEST_P(FailingCalls, LeaveTheJobAsItIs) {
  const Fault& fault = GetParam();
  int hits = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int n = 1;; n = After(n)) {
      const JobResult job = RunWith(n, rank);
      EXPECT_TRUE(job.ok()) << fault.mode << ": " << fault.call << " number " << n << " of rank " << rank
                            << (fault.all ? " and all after it" : "") << " failed: exit codes "
                            << job.exit_codes[0] << " and " << job.exit_codes[1] << " after " << job.seconds
                            << " s\n"
                            << job.AllOutput();
      const bool reached = std::filesystem::exists(job.folder + "/hit");
      std::filesystem::remove_all(job.folder);
      if (!reached) break;
      ++hits;
    }
  }
  EXPECT_GT(hits, 0) << "nothing was failed";
  std::printf("%d faults injected\n", hits);
}

constexpr Fault kFaults[] = {
    {"malloc", "observe", false},        {"malloc", "frozen", false},         {"malloc", "adaptive", false},
    {"fallocate", "frozen", true},       {"mmap", "frozen", false},           {"mmap", "adaptive", true},
    {"send", "frozen", false},           {"send", "adaptive", false},         {"open", "frozen", false},
    {"open", "adaptive", true},          {"socket", "frozen", false},         {"socket", "adaptive", true},
    {"pthread_create", "frozen", false}, {"pthread_create", "adaptive", true}};
INSTANTIATE_TEST_SUITE_P(Calls, FailingCalls, ::testing::ValuesIn(kFaults), [](const auto& fault) {
  return std::string(fault.param.call) + "_" + fault.param.mode + (fault.param.all ? "_all" : "");
});

}  // namespace
}  // namespace dynamiccl::testing
