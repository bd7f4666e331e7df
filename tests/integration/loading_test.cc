// SPDX-License-Identifier: Apache-2.0
// Tests the ways in which programs load NCCL, with the preloaded object and with the shim for LD_AUDIT. Each
// call must reach the right copy of NCCL. What the object cannot see must be logged.
#include "tests/integration/job_fixture.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kCalls = 3;  // each is an AllReduce and a Bcast

class Loading : public JobTest {
 protected:
  JobResult Load(const std::vector<std::string>& way, bool audit) {
    JobOptions options{.n_ranks = 1, .rounds = std::to_string(kCalls), .extras = way};
    options.audit = audit;
    options.environment = {{"DYNAMICCL_TRACE", "%d/t.ctrace"}};
    JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << way[0] << ": " << job.exit_codes[0] << job.AllOutput();
    return job;
  }

  static size_t SeenCalls(const JobResult& job) {
    const auto trace = ReadTrace(job.folder + "/t.ctrace");
    if (!trace) return 0;
    size_t calls = 0;
    for (const TraceSection& section : trace->sections) {
      for (const TraceRecord& record : section.records)
        calls += record.kind == static_cast<uint16_t>(RecordKind::kCollective) ? 1 : 0;
    }
    return calls;
  }
};

TEST_F(Loading, ExtensionThatIsLinkedToNcclIsSeenThoughItIsLoadedPrivately) {
  const JobResult job = Load({"extension", DYNAMICCL_TEST_EXTENSION}, false);
  EXPECT_EQ(SeenCalls(job), 2u * kCalls);
  EXPECT_EQ(job.AllOutput(), "");
}

TEST_F(Loading, FunctionsLookedUpByAddressAreSeenByTheAuditShimOnlyAndThatIsSaid) {
  const JobResult without = Load({"local", DYNAMICCL_TEST_NCCL}, false);
  EXPECT_EQ(SeenCalls(without), 0u);
  EXPECT_EQ(
      LinesWith(without.output[0], "no NCCL call was seen: this program looks up the functions of").size(),
      1u)
      << without.AllOutput();
  EXPECT_THAT(without.output[0], HasSubstr(DYNAMICCL_TEST_NCCL));
  const JobResult with = Load({"local", DYNAMICCL_TEST_NCCL}, true);
  EXPECT_EQ(SeenCalls(with), 2u * kCalls);
  EXPECT_EQ(with.AllOutput(), "");
}

TEST_F(Loading, AProgramThatFailedBeforeItsFirstCallIsToldNothing) {
  JobOptions options{.n_ranks = 1, .rounds = "1", .extras = {"failing", DYNAMICCL_TEST_NCCL}};
  options.environment = {{"DYNAMICCL_TRACE", "%d/t.ctrace"}};
  const JobResult job = Run(options);
  EXPECT_EQ(job.exit_codes, std::vector<int>{11});
  EXPECT_EQ(job.AllOutput(), "");
}

TEST_F(Loading, ADeeplyBoundLibraryIsSeenByTheAuditShimOnly) {
  EXPECT_EQ(SeenCalls(Load({"deepbind", DYNAMICCL_TEST_EXTENSION}, false)), 0u);
  EXPECT_EQ(SeenCalls(Load({"deepbind", DYNAMICCL_TEST_EXTENSION}, true)), 2u * kCalls);
}

TEST_F(Loading, TwoCopiesInOneProcessEachGetTheirOwnCalls) {
  const std::vector<std::string> way{"two", DYNAMICCL_TEST_NCCL, DYNAMICCL_TEST_SECOND_NCCL};
  EXPECT_EQ(SeenCalls(Load(way, false)), 0u);
  EXPECT_EQ(SeenCalls(Load(way, true)), 2u * 2 * kCalls);
}

TEST_F(Loading, ACopyThatIsClosedAndOpenedAgainIsSeenAgain) {
  Load({"reopen", DYNAMICCL_TEST_NCCL}, false);
  EXPECT_EQ(SeenCalls(Load({"reopen", DYNAMICCL_TEST_NCCL}, true)), 5u * 2 * kCalls);
}

TEST_F(Loading, StaticallyLinkedNcclIsNamedOnce) {
  for (const bool audit : {false, true}) {
    const JobResult job = Load({"extension", DYNAMICCL_TEST_STATIC_EXTENSION}, audit);
    EXPECT_EQ(SeenCalls(job), 0u);
    EXPECT_EQ(LinesWith(job.output[0], "no NCCL call was seen: NCCL is linked statically into").size(), 1u)
        << job.AllOutput();
    EXPECT_THAT(job.output[0], HasSubstr(DYNAMICCL_TEST_STATIC_EXTENSION));
  }
}

TEST_F(Loading, TheShimAloneSaysThatItDoesNothing) {
  JobOptions options{.n_ranks = 1, .rounds = "1", .extras = {"local", DYNAMICCL_TEST_NCCL}};
  options.preload = false;
  options.audit = true;
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(LinesWith(job.output[0], "does nothing without LD_PRELOAD=libdynamiccl.so").size(), 1u);
}

}  // namespace
}  // namespace dynamiccl::testing
