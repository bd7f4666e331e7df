// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/known_hangs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace dynamiccl {
namespace {

constexpr std::string_view kNccl = "NCCL ";

// Returns the release that all processes run; nothing if one does not name it, or two differ.
std::optional<real_nccl::NcclRelease> ReleaseOf(const JobCalls& job) {
  std::set<std::string> libraries;
  for (const JobProcess& process : job.processes) libraries.insert(process.library);
  if (libraries.size() != 1 || !libraries.begin()->starts_with(kNccl)) return std::nullopt;
  return real_nccl::ParseRelease(libraries.begin()->substr(kNccl.size()));
}

// Returns true if the communicator has different numbers of ranks on different nodes. Returns false if a rank
// is unknown, or if the traces name no hosts.
bool HasUnequalNodes(const JobCalls& job, const JobCommunicator& communicator) {
  std::map<int32_t, size_t> process_of_rank;
  for (const JobInit& init : communicator.inits) process_of_rank[init.rank] = init.process;
  for (const auto& [rank, member] : communicator.members) process_of_rank[rank] = member.process;
  if (process_of_rank.size() != static_cast<size_t>(communicator.n_ranks)) return false;
  std::map<std::string, int> ranks_of_host;
  for (const auto& [rank, process] : process_of_rank) ++ranks_of_host[job.processes[process].host];
  if (ranks_of_host.contains("")) return false;
  return std::any_of(ranks_of_host.begin(), ranks_of_host.end(),
                     [&](const auto& one) { return one.second != ranks_of_host.begin()->second; });
}

// Returns true if a rank that the finding names is still inside its last call, while another rank has
// returned from the call or issued further ones.
bool IsInsideCall(const HangFinding& finding, const JobCommunicator& communicator) {
  if (finding.ranks.size() >= communicator.members.size()) return false;
  return std::any_of(finding.ranks.begin(), finding.ranks.end(), [&](int32_t rank) {
    const auto member = communicator.members.find(rank);
    return member != communicator.members.end() && !member->second.collectives.empty() &&
           !member->second.collectives.back().returned;
  });
}

bool StandsAs(const KnownIssue& issue, const HangFinding& finding, const JobCalls& job) {
  if (finding.kind == HangKind::kStopped) return false;
  const JobCommunicator& communicator = job.communicators.at(finding.communicator);
  if (issue.unlike_nodes && !HasUnequalNodes(job, communicator)) return false;
  switch (issue.stands_in) {
    case StandsIn::kInit:
      return finding.kind == HangKind::kInsideLibrary && !communicator.inits.empty();
    case StandsIn::kCall:
      return (finding.kind == HangKind::kInsideLibrary || finding.kind == HangKind::kBehind) &&
             IsInsideCall(finding, communicator);
    case StandsIn::kNothing:
      break;
  }
  return false;
}

}  // namespace

std::vector<KnownIssue> KnownHangs(const std::vector<KnownIssue>& known, const JobCalls& job,
                                   const HangDiagnosis& diagnosis) {
  std::vector<KnownIssue> found;
  const auto release = ReleaseOf(job);
  if (!release) return found;
  for (const KnownIssue& issue : known) {
    const bool fits =
        issue.Has(*release) && std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                                           [&](const HangFinding& one) { return StandsAs(issue, one, job); });
    if (fits) found.push_back(issue);
  }
  return found;
}

}  // namespace dynamiccl
