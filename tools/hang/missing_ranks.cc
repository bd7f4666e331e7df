// SPDX-License-Identifier: Apache-2.0
// Compares how far the ranks of each communicator have come. Ranks that are ahead wait for those that are
// behind. A rank that is behind because it waits on another communicator is not to blame.
#include "tools/hang/hang_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

namespace dynamiccl {
namespace {

// The progress of the ranks of one communicator.
struct Standing {
  uint64_t id = 0;
  // One past the last call that any rank issued.
  uint64_t furthest = 0;
  // Ranks that issued the last call.
  std::vector<int32_t> ahead;
  // Ranks that did not issue the last call, furthest behind first.
  std::vector<int32_t> behind;
  // The first call that the ranks furthest behind did not issue. Every rank that issued it waits for them.
  uint64_t missing = 0;
  // Ranks without a trace.
  std::vector<int32_t> absent;
};

// Returns the number of the first known call from `number` on, which may be one that an import left out;
// `number` if there is none.
uint64_t KnownCallFrom(uint64_t number, const JobCommunicator& communicator) {
  std::optional<uint64_t> known;
  for (const auto& [rank, member] : communicator.members) {
    const auto call = std::ranges::lower_bound(member.collectives, number, {},
                                               [](const JobCall& one) { return one.call.call_number; });
    if (call != member.collectives.end())
      known = std::min(known.value_or(UINT64_MAX), call->call.call_number);
  }
  return known.value_or(number);
}

Standing StandingOf(uint64_t id, const JobCommunicator& communicator) {
  Standing standing;
  standing.id = id;
  for (const auto& [rank, member] : communicator.members) {
    if (member.known()) standing.furthest = std::max(standing.furthest, member.next);
  }
  for (const auto& [rank, member] : communicator.members) {
    if (!member.known()) continue;
    (member.next == standing.furthest ? standing.ahead : standing.behind).push_back(rank);
  }
  std::stable_sort(standing.behind.begin(), standing.behind.end(), [&](int32_t a, int32_t b) {
    return communicator.members.at(a).next < communicator.members.at(b).next;
  });
  standing.missing = standing.behind.empty()
                         ? standing.furthest
                         : KnownCallFrom(communicator.members.at(standing.behind.front()).next, communicator);
  for (int32_t rank = 0; rank < communicator.n_ranks; ++rank) {
    if (!communicator.members.contains(rank)) standing.absent.push_back(rank);
  }
  return standing;
}

// "SIGKILL"; empty for a number without a name.
std::string SignalText(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? "" : fmt::format("SIG{}", name);
}

double Seconds(int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

// " (process 5121 on node07)"; empty where the file does not name the process.
std::string ProcessText(const JobProcess& process) {
  if (process.process_id == 0) return "";
  return fmt::format(" (process {}{})", process.process_id,
                     process.host.empty() ? "" : fmt::format(" on {}", process.host));
}

// Describes how the process ended according to its launcher. A process that exited with a code but not in
// order called _exit or a similar function, or was the child of a shell that the launcher started.
std::string EndText(const JobProcess& process) {
  const ProcessEnd& end = process.end;
  const bool killed = end.how == ProcessEnd::How::kKilled;
  if (end.by_launcher)
    return fmt::format("; the launcher ended it when it ended the job ({} {})",
                       killed ? "signal" : "exit code", end.number);
  if (killed) return fmt::format("; signal {} ({}) killed it", end.number, SignalText(end.number));
  if (process.closed) return fmt::format("; its process has ended with exit code {}", end.number);
  return fmt::format("; it left with exit code {} and not in order, as _exit does", end.number);
}

// True if it is unknown whether and how a process ended.
bool EndIsOpen(const JobProcess& process) {
  return process.process_id != 0 && !process.closed && !process.inside && !process.alive &&
         process.end.how == ProcessEnd::How::kNotKnown;
}

// Describes what a rank that is behind does instead, after "; ". Empty for a file of another tool, which does
// not show where the process was.
std::string Whereabouts(const JobCalls& job, uint64_t id, const JobMember& member) {
  const JobProcess& process = job.processes[member.process];
  if (process.process_id == 0) return "";
  if (member.ended) return "; it has ended this communicator";
  if (process.end.how != ProcessEnd::How::kNotKnown) return EndText(process);
  if (process.closed) return "; its process has ended";
  if (!process.stopped.empty()) return "; it is " + process.stopped;
  if (process.inside && process.inside_init)
    return fmt::format("; it makes communicator {:#x}", *process.inside);
  if (process.inside && *process.inside != id)
    return fmt::format("; it is inside a call on communicator {:#x}", *process.inside);
  if (process.inside) return "; it is inside the last call that it issued";
  if (process.alive)
    return "; its process runs and is not inside the library: it is busy with something else";
  return "; it is not inside the library: killed, left by _exit, stopped, or busy with something else";
}

// Real time of the newest call on the communicator.
int64_t NewestCall(const JobCommunicator& communicator) {
  int64_t newest = 0;
  for (const auto& [rank, member] : communicator.members) {
    if (!member.collectives.empty()) newest = std::max(newest, member.collectives.back().issued_ns);
  }
  return newest;
}

// Describes a rank that is behind in one line: how far it came, when it was last seen, and where it is.
std::string BehindText(const JobCalls& job, uint64_t id, const JobCommunicator& communicator, int32_t rank) {
  const JobMember& member = communicator.members.at(rank);
  std::string text = fmt::format("rank {}{}", rank, ProcessText(job.processes[member.process]));
  text +=
      member.collectives.empty() ? " issued nothing" : fmt::format(" issued up to call {}", member.next - 1);
  const int64_t quiet = NewestCall(communicator) - job.processes[member.process].last_seen_ns;
  if (quiet > 0) text += fmt::format(", was last seen {:.3f} s before the others' last call", Seconds(quiet));
  return text + Whereabouts(job, id, member);
}

// Describes a call that some ranks issued and others did not.
std::string CallText(const JobCommunicator& communicator, uint64_t call_number) {
  for (const auto& [rank, member] : communicator.members) {
    if (const JobCall* const call = member.At(call_number, 0)) return Describe(*call);
  }
  return "not known any more";
}

// Ranks that are described one by one in a finding.
constexpr size_t kMaxTexts = 8;

HangFinding BehindFinding(const JobCalls& job, const Standing& standing, const std::vector<int32_t>& ranks) {
  const JobCommunicator& communicator = job.communicators.at(standing.id);
  const uint64_t missing = KnownCallFrom(communicator.members.at(ranks.front()).next, communicator);
  HangFinding finding{HangKind::kBehind, standing.id, missing, ranks, {}};
  finding.text.push_back(fmt::format("{} did not issue call {}: {}", RankList(ranks), finding.call_number,
                                     CallText(communicator, finding.call_number)));
  finding.text.push_back(
      fmt::format("{} issued up to call {}", RankList(standing.ahead), standing.furthest - 1));
  std::vector<int32_t> between;
  std::copy_if(standing.behind.begin(), standing.behind.end(), std::back_inserter(between),
               [&](int32_t rank) { return communicator.members.at(rank).next > finding.call_number; });
  std::sort(between.begin(), between.end());
  if (!between.empty())
    finding.text.push_back(fmt::format("{} issued call {} and stopped before call {}", RankList(between),
                                       finding.call_number, standing.furthest - 1));
  for (size_t i = 0; i < std::min(ranks.size(), kMaxTexts); ++i)
    finding.text.push_back(BehindText(job, standing.id, communicator, ranks[i]));
  const bool open = std::ranges::any_of(ranks, [&](int32_t rank) {
    const JobMember& member = communicator.members.at(rank);
    return !member.ended && EndIsOpen(job.processes[member.process]);
  });
  if (open)
    finding.text.emplace_back(
        "a trace does not tell a kill from _exit: `dynamiccl record -n` notes how its ranks end; else "
        "torchrun's output or sacct has the exit status, and dmesg what the kernel killed");
  return finding;
}

// Returns the processes that wait for another process: they issued a call that another rank of the same
// communicator has not issued.
std::set<size_t> Waiting(const JobCalls& job, const std::vector<Standing>& standings) {
  std::set<size_t> waiting;
  for (const Standing& standing : standings) {
    for (const auto& [rank, member] : job.communicators.at(standing.id).members) {
      if (member.known() && member.next > standing.missing) waiting.insert(member.process);
    }
  }
  return waiting;
}

// Adds findings about one communicator. Ranks that wait elsewhere themselves are not blamed.
void AddStanding(const JobCalls& job, const Standing& standing, const std::set<size_t>& waiting,
                 std::vector<HangFinding>& findings) {
  const JobCommunicator& communicator = job.communicators.at(standing.id);
  if (!standing.absent.empty() && standing.furthest > 0) {
    HangFinding finding{HangKind::kAbsent, standing.id, 0, standing.absent, {}};
    finding.text.push_back(
        fmt::format("there is no trace of {} of {}", RankList(standing.absent), communicator.n_ranks));
    findings.push_back(std::move(finding));
  }
  std::vector<int32_t> blamed;
  for (const int32_t rank : standing.behind) {
    if (!waiting.contains(communicator.members.at(rank).process)) blamed.push_back(rank);
  }
  if (!blamed.empty()) findings.push_back(BehindFinding(job, standing, blamed));
}

HangFinding CycleFinding(const JobCalls& job, const std::vector<Standing>& standings) {
  HangFinding finding{HangKind::kCycle, standings.front().id, standings.front().furthest - 1, {}, {}};
  finding.text.emplace_back("ranks wait for each other on different communicators");
  for (const Standing& standing : standings) {
    const auto& members = job.communicators.at(standing.id).members;
    if (standing.behind.empty()) continue;
    finding.ranks.insert(finding.ranks.end(), standing.behind.begin(), standing.behind.end());
    finding.text.push_back(fmt::format("communicator {:#x}, call {}: {} waits for {}", standing.id,
                                       members.at(standing.behind.front()).next, RankList(standing.ahead),
                                       RankList(standing.behind)));
  }
  return finding;
}

void AddAbsentFromInit(uint64_t id, const JobCommunicator& communicator, std::vector<HangFinding>& findings) {
  if (communicator.inits.empty()) return;
  std::set<int32_t> here;
  for (const JobInit& init : communicator.inits) here.insert(init.rank);
  for (const auto& [rank, member] : communicator.members) here.insert(rank);
  HangFinding finding{HangKind::kAbsentFromInit, id, 0, {}, {}};
  for (int32_t rank = 0; rank < communicator.n_ranks; ++rank) {
    if (!here.contains(rank)) finding.ranks.push_back(rank);
  }
  if (finding.ranks.empty()) return;
  std::vector<int32_t> waiting;
  for (const JobInit& init : communicator.inits) waiting.push_back(init.rank);
  finding.text.push_back(fmt::format("{} did not come to make a communicator of {} ranks",
                                     RankList(finding.ranks), communicator.n_ranks));
  finding.text.push_back(fmt::format("{} came and is inside the library", RankList(waiting)));
  findings.push_back(std::move(finding));
}

// Returns a finding if all ranks entered the creation of the communicator and some have not returned; nothing
// if none is inside.
std::optional<HangFinding> CommonInit(uint64_t id, const JobCommunicator& communicator) {
  if (communicator.inits.empty()) return std::nullopt;
  HangFinding finding{HangKind::kInsideLibrary, id, 0, {}, {}};
  for (const JobInit& init : communicator.inits) finding.ranks.push_back(init.rank);
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.text.push_back(fmt::format("all {} ranks came to make the communicator; {} did not return",
                                     communicator.n_ranks, RankList(finding.ranks)));
  finding.text.emplace_back("nobody is missing: the wait is in the library, its network or a device");
  return finding;
}

// Returns the ranks that failed by themselves according to their launcher, each with a line about its end.
std::vector<std::pair<int32_t, std::string>> FailedRanks(const JobCalls& job,
                                                         const JobCommunicator& communicator) {
  std::vector<std::pair<int32_t, std::string>> failed;
  for (const auto& [rank, member] : communicator.members) {
    const JobProcess& process = job.processes[member.process];
    const bool fails = process.end.how == ProcessEnd::How::kKilled || process.end.number != 0;
    if (process.end.how == ProcessEnd::How::kNotKnown || process.end.by_launcher || !fails) continue;
    failed.emplace_back(rank, fmt::format("rank {}{}{}", rank, ProcessText(process), EndText(process)));
  }
  return failed;
}

// Adds the ranks that failed by themselves to a finding about ranks that all issued the same call: the others
// wait for them. If no rank failed, adds where else the user can look.
void AddFailedRanks(const JobCalls& job, const JobCommunicator& communicator, HangFinding& finding) {
  const auto failed = FailedRanks(job, communicator);
  for (const auto& [rank, line] : failed) finding.text.push_back(line);
  if (failed.empty())
    finding.text.emplace_back(
        "nothing that they issued differs: the wait is in the library, its network or a device");
}

}  // namespace

std::optional<HangFinding> UnlikeInits(uint64_t id, const JobCommunicator& communicator) {
  std::map<int32_t, std::vector<int32_t>> ranks_by_size;
  for (const JobInit& init : communicator.inits) ranks_by_size[init.n_ranks].push_back(init.rank);
  if (ranks_by_size.size() < 2) return std::nullopt;
  HangFinding finding{HangKind::kInitSizesDiffer, id, 0, {}, {"ranks give one communicator different sizes"}};
  const auto usual = std::max_element(ranks_by_size.begin(), ranks_by_size.end(),
                                      [](auto& a, auto& b) { return a.second.size() < b.second.size(); });
  for (const auto& [size, ranks] : ranks_by_size) {
    finding.text.push_back(fmt::format("{}: {} ranks", RankList(ranks), size));
    if (size != usual->first) finding.ranks.insert(finding.ranks.end(), ranks.begin(), ranks.end());
  }
  return finding;
}

std::vector<HangFinding> RanksThatDidNotCome(const JobCalls& job) {
  std::vector<HangFinding> findings;
  std::vector<Standing> standings;
  for (const auto& [id, communicator] : job.communicators) {
    AddAbsentFromInit(id, communicator, findings);
    Standing standing = StandingOf(id, communicator);
    if (!standing.behind.empty() || !standing.absent.empty()) standings.push_back(std::move(standing));
  }
  // A process that waits in the creation of a communicator has a reason to be behind on other communicators.
  std::set<size_t> waiting = Waiting(job, standings);
  for (size_t i = 0; i < job.processes.size(); ++i) {
    if (job.processes[i].inside_init) waiting.insert(i);
  }
  for (const Standing& standing : standings) AddStanding(job, standing, waiting, findings);
  const bool somebody_behind = std::any_of(standings.begin(), standings.end(),
                                           [](const Standing& standing) { return !standing.behind.empty(); });
  if (findings.empty() && somebody_behind) findings.push_back(CycleFinding(job, standings));
  return findings;
}

std::optional<HangFinding> StoppedRanks(const JobCalls& job) {
  HangFinding finding{HangKind::kStopped, 0, 0, {}, {}};
  size_t stopped = 0;
  for (const JobProcess& process : job.processes) {
    if (process.stopped.empty()) continue;
    if (process.rank >= 0) finding.ranks.push_back(process.rank);
    if (++stopped > kMaxTexts) continue;
    const std::string rank = process.rank < 0 ? "a rank" : fmt::format("rank {}", process.rank);
    finding.text.push_back(fmt::format("{}{} is {}", rank, ProcessText(process), process.stopped));
  }
  if (stopped == 0) return std::nullopt;
  if (stopped > kMaxTexts) finding.text.push_back(fmt::format("and so are {} more", stopped - kMaxTexts));
  return finding;
}

std::vector<HangFinding> RanksThatFailed(const JobCalls& job) {
  std::vector<HangFinding> findings;
  for (const auto& [id, communicator] : job.communicators) {
    HangFinding finding{HangKind::kFailed, id, 0, {}, {}};
    for (const auto& [rank, line] : FailedRanks(job, communicator)) {
      finding.ranks.push_back(rank);
      finding.text.push_back(line);
    }
    if (finding.ranks.empty()) continue;
    finding.text.insert(finding.text.begin(), "all ranks issued the same calls and returned from them");
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<HangFinding> CommonCalls(const JobCalls& job) {
  std::vector<HangFinding> findings;
  for (const auto& [id, communicator] : job.communicators) {
    if (auto init = CommonInit(id, communicator)) findings.push_back(std::move(*init));
    HangFinding finding{HangKind::kInsideLibrary, id, 0, {}, {}};
    const JobCall* last = nullptr;
    for (const auto& [rank, member] : communicator.members) {
      if (member.collectives.empty() || member.collectives.back().returned) continue;
      last = &member.collectives.back();
      finding.ranks.push_back(rank);
    }
    if (last == nullptr) continue;
    finding.call_number = last->call.call_number;
    finding.text.push_back(fmt::format("all {} ranks issued call {}, {}; {} did not return from it",
                                       communicator.members.size(), finding.call_number, Describe(*last),
                                       RankList(finding.ranks)));
    AddFailedRanks(job, communicator, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace dynamiccl
