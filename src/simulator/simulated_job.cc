// SPDX-License-Identifier: Apache-2.0
// Checks a job before it is simulated: first sizes, then programs, then membership. Each check relies on
// those before it.
#include "src/simulator/simulated_job.h"

#include <cmath>

namespace dynamiccl {
namespace {

template <typename... Args>
Status Reject(fmt::format_string<Args...> format, Args&&... args) {
  return MakeError(ErrorKind::kInvalidArgument, format, std::forward<Args>(args)...);
}

Status CheckDemand(const TransferDemand& demand, size_t number) {
  const bool right = demand.latency_ns >= 0 && demand.transfer_ns >= 0 && demand.port_bytes >= 0 &&
                     demand.network_bytes >= 0 && std::isfinite(demand.port_bytes) &&
                     std::isfinite(demand.network_bytes);
  return right ? Status{} : Reject("collective {}: times and bytes must be 0 or more", number);
}

// Records which collectives a program has issued so far, and the last one of each layout.
struct Issued {
  std::vector<bool> collectives;
  std::vector<int64_t> last_of_layout;
};

// Collectives of one layout must be issued in the order of their numbers, each once.
Status CheckIssue(const RankProgram& program, size_t number, Issued& issued) {
  const size_t layout = program.collectives[number].layout;
  if (issued.last_of_layout[layout] >= static_cast<int64_t>(number))
    return Reject("collective {} is issued twice, or after a later one of its communicator", number);
  const int64_t after = program.collectives[number].after;
  if (after >= 0 && !issued.collectives[static_cast<size_t>(after)])
    return Reject("collective {} is issued before collective {}, which it comes after", number, after);
  issued.last_of_layout[layout] = static_cast<int64_t>(number);
  issued.collectives[number] = true;
  return {};
}

// An action may refer only to a collective that exists, and wait only for one that was issued.
Status CheckAction(const RankProgram& program, const Action& action, Issued& issued) {
  if (action.value < 0) return Reject("an action's value is negative: {}", action.value);
  if (action.kind == ActionKind::kCompute) return {};
  const auto number = static_cast<size_t>(action.value);
  if (number >= program.collectives.size()) return Reject("there is no collective {}", number);
  if (action.kind == ActionKind::kIssue) return CheckIssue(program, number, issued);
  return issued.collectives[number] ? Status{}
                                    : Reject("collective {} is waited for before it is issued", number);
}

// Checks the program alone; whether the rank is in the communicators is checked by CheckMembership.
Status CheckProgram(const RankProgram& program, size_t layouts) {
  Issued issued{std::vector<bool>(program.collectives.size()), std::vector<int64_t>(layouts, -1)};
  for (size_t i = 0; i < program.collectives.size(); ++i) {
    if (program.collectives[i].layout >= layouts) return Reject("collective {}: there is no such layout", i);
    if (program.collectives[i].after < -1 || program.collectives[i].after >= static_cast<int64_t>(i))
      return Reject("collective {} can only come after an earlier one", i);
    DYNAMICCL_CHECK_OK(CheckDemand(program.collectives[i].demand, i));
  }
  for (const Action& action : program.actions) DYNAMICCL_CHECK_OK(CheckAction(program, action, issued));
  for (size_t i = 0; i < issued.collectives.size(); ++i)
    if (!issued.collectives[i]) return Reject("collective {} is never issued", i);
  return {};
}

Status CheckSizes(const SimulatedJob& job) {
  const auto ranks = static_cast<size_t>(std::max(job.n_ranks, 0));
  if (job.n_ranks < 1 || job.ranks_per_node < 1) return Reject("a job has at least one rank, also on a node");
  if (!(job.port_gbps > 0) || !(job.network_gbps > 0) || !std::isfinite(job.port_gbps + job.network_gbps))
    return Reject("bandwidths must be above 0");
  if (job.programs.empty()) return Reject("a job has at least one program");
  if (!job.program_of_rank.empty() && job.program_of_rank.size() != ranks)
    return Reject("{} ranks have {} programs", ranks, job.program_of_rank.size());
  for (const uint32_t program : job.program_of_rank)
    if (program >= job.programs.size()) return Reject("there is no program {}", program);
  for (const CommunicatorLayout& layout : job.layouts)
    if (layout.communicator_of_rank.size() != ranks)
      return Reject("a layout names the communicators of {} of {} ranks", layout.communicator_of_rank.size(),
                    ranks);
  return {};
}

// The most by which a disturbance may slow something down. A job of a quarter of an hour then still ends
// within 64 bits of nanoseconds.
constexpr double kMostSlowdown = 1e6;

// Checks stragglers, loads and jitter.
Status CheckDisturbances(const SimulatedJob& job) {
  for (const Straggler& straggler : job.stragglers) {
    if (straggler.rank < 0 || straggler.rank >= job.n_ranks)
      return Reject("there is no rank {}", straggler.rank);
    if (!(straggler.compute_factor > 0 && straggler.compute_factor <= kMostSlowdown) || straggler.late_ns < 0)
      return Reject("rank {}: a straggler's factor is above 0 and at most {}, and it is not early",
                    straggler.rank, kMostSlowdown);
  }
  for (const NetworkLoad& load : job.loads) {
    if (load.node >= job.Nodes()) return Reject("there is no node {}", load.node);
    if (!(load.share >= 0 && load.share <= 1 - 1 / kMostSlowdown) || load.from_ns < 0 ||
        load.until_ns < load.from_ns)
      return Reject("a load's share is at least 0 and at most {}, and it ends after it begins",
                    1 - 1 / kMostSlowdown);
  }
  if (!(job.host_share >= 0 && job.host_share < 1)) return Reject("the host share must be in [0, 1)");
  return job.compute_jitter >= 0 && job.compute_jitter <= kMostSlowdown
             ? Status{}
             : Reject("jitter must be from 0 to {}", kMostSlowdown);
}

// A rank must be in a communicator of every layout that its program uses.
Status CheckMembership(const SimulatedJob& job) {
  std::vector<std::vector<bool>> uses;
  for (const RankProgram& program : job.programs) {
    uses.emplace_back(job.layouts.size());
    for (const SimulatedCollective& collective : program.collectives) uses.back()[collective.layout] = true;
  }
  for (int32_t rank = 0; rank < job.n_ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    const std::vector<bool>& used = uses[job.program_of_rank.empty() ? 0 : job.program_of_rank[r]];
    for (size_t layout = 0; layout < used.size(); ++layout) {
      if (used[layout] && job.layouts[layout].communicator_of_rank[r] < 0)
        return Reject("rank {} issues collectives on layout {}, where it is in no communicator", rank,
                      layout);
    }
  }
  return {};
}

}  // namespace

Status Check(const SimulatedJob& job) {
  DYNAMICCL_CHECK_OK(CheckSizes(job));
  for (const RankProgram& program : job.programs)
    DYNAMICCL_CHECK_OK(CheckProgram(program, job.layouts.size()));
  DYNAMICCL_CHECK_OK(CheckDisturbances(job));
  return CheckMembership(job);
}

}  // namespace dynamiccl
