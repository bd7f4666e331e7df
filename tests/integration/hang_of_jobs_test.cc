// SPDX-License-Identifier: Apache-2.0
// Examines jobs over hostccl while they hang. The traces of their ranks must name the rank and the call.
#include <thread>

#include "tests/integration/job_fixture.h"
#include "tools/hang/hang_findings.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

constexpr int kRanks = 4;

struct StandingJob {
  const char* fault;
  HangKind kind;
  uint64_t call_number;
};

class HangOfJobs : public JobTest, public ::testing::WithParamInterface<StandingJob> {
 protected:
  HangOfJobs() { std::filesystem::create_directory(folder_ + "/traces"); }

  JobCalls Look() const {
    JobCalls job;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/traces")) {
      const auto trace = ReadTraceTail(entry.path(), 64);
      if (!trace) continue;  // the rank has not made it yet
      for (const TraceSection& section : trace->sections) job.Add(section);
    }
    return job;
  }

  // A rank may be behind for a moment at any call.
  static bool Stands(const HangDiagnosis& diagnosis) {
    return !diagnosis.findings.empty() && diagnosis.findings[0].kind == GetParam().kind &&
           diagnosis.findings[0].call_number == GetParam().call_number &&
           diagnosis.findings[0].ranks == std::vector<int32_t>{2};
  }

  // Looks until the job hangs for good.
  HangDiagnosis LookUntilItStands() const {
    HangDiagnosis diagnosis;
    for (int look = 0; look < 4000; ++look) {
      diagnosis = DiagnoseHang(Look());
      if (Stands(diagnosis)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return diagnosis;
  }
};

TEST_P(HangOfJobs, IsNamed) {
  HangDiagnosis diagnosis;
  std::thread looks([&] {
    diagnosis = LookUntilItStands();
    std::ofstream(folder_ + "/end").flush();
  });
  Run({.n_ranks = kRanks,
       .environment = {{"DYNAMICCL_TRACE", folder_ + "/traces/%r.ctrace"},
                       {"DYNAMICCL_MODE", "observe"},
                       {"JOB_FAULT", GetParam().fault},
                       {"JOB_END", folder_ + "/end"},
                       {"HOSTCCL_TIMEOUT_MS", "600000"}}});
  looks.join();
  ASSERT_FALSE(diagnosis.findings.empty());
  const HangFinding& finding = diagnosis.findings[0];
  EXPECT_EQ(Name(finding.kind), Name(GetParam().kind));
  EXPECT_EQ(finding.ranks, std::vector<int32_t>{2});
  EXPECT_EQ(finding.call_number, GetParam().call_number);
}

INSTANTIATE_TEST_SUITE_P(Faults, HangOfJobs,
                         ::testing::Values(StandingJob{"away", HangKind::kBehind, 10},
                                           StandingJob{"kill", HangKind::kBehind, 10},
                                           StandingJob{"size", HangKind::kMismatch, 10},
                                           StandingJob{"operation", HangKind::kMismatch, 10},
                                           StandingJob{"init", HangKind::kAbsentFromInit, 0}),
                         [](const auto& test) { return test.param.fault; });

}  // namespace
}  // namespace dynamiccl::testing
