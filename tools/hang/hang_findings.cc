// SPDX-License-Identifier: Apache-2.0
// Runs the checks of this folder one after the other and sorts their findings.
#include "tools/hang/hang_findings.h"

#include <algorithm>
#include <array>

#include "tools/hang/hang_checks.h"

namespace dynamiccl {

std::string_view Name(HangKind kind) {
  constexpr std::array<std::string_view, 16> kNames{
#define DYNAMICCL_HANG_KIND(kind, name) name,
      DYNAMICCL_HANG_KINDS(DYNAMICCL_HANG_KIND)
#undef DYNAMICCL_HANG_KIND
  };
  return kNames[static_cast<size_t>(kind)];
}

HangDiagnosis DiagnoseHang(const JobCalls& job) {
  HangDiagnosis diagnosis;
  std::vector<HangFinding>& findings = diagnosis.findings;
  const auto take = [&](std::optional<HangFinding> finding) {
    if (finding) findings.push_back(std::move(*finding));
  };
  for (const auto& [id, communicator] : job.communicators) {
    take(FirstUnlikeCall(id, communicator, diagnosis.compared_calls));
    take(FirstUnlikeDecision(id, communicator, diagnosis.compared_decisions));
    take(FirstUnmatchedTransfer(id, communicator));
    take(UnlikeInits(id, communicator));
  }
  diagnosis.unmatched = RanksWithUnmatchedTransfers(job);
  for (HangFinding& finding : RanksThatDidNotCome(job)) findings.push_back(std::move(finding));
  take(StoppedRanks(job));
  if (findings.empty()) take(UnlikeOrder(job));
  if (findings.empty()) findings = CommonCalls(job);
  if (findings.empty()) findings = RanksThatFailed(job);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const HangFinding& a, const HangFinding& b) { return a.kind < b.kind; });
  return diagnosis;
}

}  // namespace dynamiccl
