// SPDX-License-Identifier: Apache-2.0
// The release in use runs first. Its duration sets the time limit after which a run of another release counts
// as hung. Then each other release is judged. A grave difference is confirmed by a second run that shows the
// same one; after that the canary looks for remedies and bisects.
#include "tools/canary/canary.h"

#include <algorithm>
#include <compare>
#include <set>

namespace dynamiccl {
namespace {

using real_nccl::NcclRelease;

// NCCL_RUNTIME_CONNECT came with 2.22. Before 2.22, ranks always connect while the communicator is made.
constexpr NcclRelease kConnectsAtRuntime{2, 22, 0};
constexpr int kPatience_s = 600;  // for the release in use
constexpr int kLeastLimit_s = 60;
constexpr int kLeastRemedyLimit_s = 30;
constexpr double kLimitFactor = 10;
// With NCCL_RUNTIME_CONNECT=0 all algorithms connect at init, so one call of this many bytes is enough. A
// job's own calls (CanaryRequest::traffic) are run with their own sizes.
constexpr uint64_t kBytesAtInit = 1024;

// The variable of NCCL that decides when ranks connect. With the value 1 they connect at the first call.
constexpr const char* kRuntimeConnect = "NCCL_RUNTIME_CONNECT";

// The variable of NCCL that sets what a message costs the processor, in nanoseconds. By default NCCL takes a
// figure for the processor's vendor, and ranks that take unlike figures choose unlike algorithms.
constexpr const char* kNetworkOverhead = "NCCL_NET_OVERHEAD";

// A variable that switches off a part of NCCL, which may be at fault. The canary tries them one at a time,
// those that cost a job least first.
struct Candidate {
  std::string variable;
  std::string value;
};
const Candidate kCandidates[] = {{kRuntimeConnect, "1"},     {"NCCL_NET_MERGE_LEVEL", "LOC"},
                                 {"NCCL_CROSS_NIC", "1"},    {"NCCL_CROSS_NIC", "0"},
                                 {"NCCL_PXN_DISABLE", "1"},  {"NCCL_P2P_LEVEL", "SYS"},
                                 {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_NVB_DISABLE", "1"},
                                 {"NCCL_NVLS_ENABLE", "0"},  {kNetworkOverhead, "1000"},
                                 {"NCCL_ALGO", "Ring"}};

bool HasGrave(const std::vector<Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(),
                     [](const Difference& one) { return one.gravity == Gravity::kGrave; });
}

// A kind of grave difference. A hang and a failure are different kinds: one is never the other's second run.
struct Symptom {
  Connecting connecting = Connecting::kAtFirstCall;
  DifferenceKind kind = DifferenceKind::kEnd;
  bool hangs = false;

  auto operator<=>(const Symptom&) const = default;
};
using Symptoms = std::set<Symptom>;

Symptom SymptomOf(const JudgedCell& run, const Difference& difference) {
  return {run.connecting, difference.kind,
          difference.kind == DifferenceKind::kEnd && run.cell.end == CellEnd::kHung};
}

Symptoms SymptomsOf(const JudgedCell& run) {
  Symptoms symptoms;
  for (const Difference& one : run.differences) {
    if (one.gravity == Gravity::kGrave) symptoms.insert(SymptomOf(run, one));
  }
  return symptoms;
}

bool HaveOneInCommon(const Symptoms& some, const Symptoms& others) {
  return std::ranges::any_of(some, [&](const Symptom& one) { return others.contains(one); });
}

// Returns `run` without the grave differences that `other`, another run of the same release, does not show.
// Adds the warnings of `other` to the differences that both runs show, because a crash may come before a
// warning.
JudgedCell Confirmed(JudgedCell run, const JudgedCell& other) {
  const auto shown = [&](const Difference& one) {
    return std::ranges::find_if(other.differences, [&](const Difference& its) {
      return its.gravity == Gravity::kGrave && SymptomOf(other, its) == SymptomOf(run, one);
    });
  };
  std::erase_if(run.differences, [&](const Difference& one) {
    return one.gravity == Gravity::kGrave && shown(one) == other.differences.end();
  });
  for (Difference& one : run.differences) {
    const auto again = shown(one);
    if (again != other.differences.end())
      one.warnings.insert(one.warnings.end(), again->warnings.begin(), again->warnings.end());
  }
  return run;
}

// Divides the symptoms into failures and others. The failure comes first; none of the parts is empty.
std::vector<Symptoms> FailuresAndOthers(const Symptoms& all) {
  Symptoms failures, others;
  for (const Symptom& one : all) (one.kind == DifferenceKind::kEnd ? failures : others).insert(one);
  std::vector<Symptoms> parts;
  for (const Symptoms& part : {failures, others}) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::vector<DifferenceKind> KindsOfSymptoms(const Symptoms& symptoms) {
  std::set<DifferenceKind> kinds;
  for (const Symptom& one : symptoms) kinds.insert(one.kind);
  return {kinds.begin(), kinds.end()};
}

// One canary.
class Canary {
 public:
  Canary(const CellRunner& runner, const CanaryRequest& request, const std::vector<KnownIssue>& known,
         const std::function<void(const std::string&)>& says)
      : runner_(runner),
        request_(request),
        known_(IssuesOfJob(known, request.environment, request.machines)),
        says_(says) {}

  Result<CanaryAnswer> Run() {
    answer_.in_use = request_.releases.front();
    std::vector<CellRequest> runs;
    for (const Connecting connecting : request_.connecting)
      runs.push_back(RequestOf(answer_.in_use, connecting, kPatience_s));
    runner_.Begin(runs);
    for (const Connecting connecting : request_.connecting) {
      says_(fmt::format("NCCL {}, {}", answer_.in_use.text(), Name(connecting)));
      DYNAMICCL_TRY(Cell cell, runner_.Run(RequestOf(answer_.in_use, connecting, kPatience_s)));
      if (cell.end == CellEnd::kNotRun) {
        return MakeError(ErrorKind::kUnsupported, "NCCL {}, the release in use, cannot be run: {}",
                         answer_.in_use.text(), cell.problem);
      }
      answer_.in_use_cells.push_back({connecting, std::move(cell), {}});
    }
    BeginJudged();
    for (size_t next = 1; next < request_.releases.size(); ++next) {
      DYNAMICCL_TRY(JudgedRelease judged, Judge(request_.releases[next]));
      answer_.judged.push_back(std::move(judged));
    }
    return std::move(answer_);
  }

 private:
  const Traffic* traffic() const { return request_.traffic ? &*request_.traffic : nullptr; }

  CellRequest RequestOf(const ReleaseLibrary& library, Connecting connecting, int limit_s) const {
    CellRequest request{.release = library.release,
                        .library_folder = library.folder,
                        .machines = request_.machines,
                        .ranks_of_nodes = request_.ranks_of_nodes,
                        .gpus = request_.gpus,
                        .collectives = request_.collectives,
                        .bytes = request_.bytes,
                        .connecting = connecting,
                        .environment = request_.environment,
                        .stack_kib = request_.stack_kib,
                        .limit_s = limit_s};
    if (connecting == Connecting::kAtInit && !request_.traffic) request.bytes = {kBytesAtInit};
    if (library.release < kConnectsAtRuntime) request.connecting = Connecting::kAtFirstCall;
    return request;
  }

  // Begins the first run of each release that is judged.
  void BeginJudged() const {
    std::vector<CellRequest> runs;
    for (size_t next = 1; next < request_.releases.size(); ++next) {
      for (const JudgedCell& in_use : answer_.in_use_cells)
        runs.push_back(JudgedRequest(request_.releases[next], in_use));
    }
    runner_.Begin(runs);
  }

  CellRequest JudgedRequest(const ReleaseLibrary& library, const JudgedCell& in_use) const {
    return RequestOf(library, in_use.connecting, LimitFor(in_use.cell, kLeastLimit_s));
  }

  int LimitFor(const Cell& in_use, int least) const {
    if (request_.limit_s > 0) return request_.limit_s;
    return std::max(least, static_cast<int>(kLimitFactor * in_use.seconds));
  }

  // True if one release connects all algorithms at init, and the other one only those that the calls use.
  bool ConnectUnlike(const NcclRelease& release, Connecting connecting) const {
    const bool all = release < kConnectsAtRuntime, all_in_use = answer_.in_use.release < kConnectsAtRuntime;
    return connecting == Connecting::kAtFirstCall && all != all_in_use;
  }

  // Adapters that the calls leave unconnected are not lost, so fewer of them are a notice only.
  static void WeighAdaptersLess(std::vector<Difference>* differences) {
    for (Difference& one : *differences) {
      if (one.kind != DifferenceKind::kAdapters || one.gravity == Gravity::kNotice) continue;
      one.gravity = Gravity::kNotice;
      one.note = "releases from 2.22 on connect only what the calls use; --connect init compares all";
    }
  }

  // Runs a release and compares it with the release in use. The result of the run comes from the cache if it
  // is there (kKept), or only from a new run (kNothing).
  enum class Reuse { kKept, kNothing };
  Result<JudgedCell> Compared(const CellRequest& request, const JudgedCell& in_use, Reuse reuse) const {
    DYNAMICCL_TRY(Cell cell, reuse == Reuse::kKept ? runner_.Run(request) : runner_.RunAgain(request));
    std::vector<Difference> differences = CompareCells(in_use.cell, cell, traffic());
    if (ConnectUnlike(request.release, in_use.connecting)) WeighAdaptersLess(&differences);
    return JudgedCell{in_use.connecting, std::move(cell), std::move(differences)};
  }

  // Runs a release and returns the result with its differences from the release in use. When a difference is
  // grave, the run is repeated, and the grave difference counts only if the second run has the same. If both
  // runs have grave differences and none in common, a third run decides. If it agrees with neither, the
  // result says so in `problem`.
  Result<JudgedCell> JudgeCell(const ReleaseLibrary& library, const JudgedCell& in_use,
                               std::string* problem) const {
    constexpr int kMostRuns = 3;
    const CellRequest request = JudgedRequest(library, in_use);
    std::vector<JudgedCell> runs;
    while (runs.size() < kMostRuns) {
      says_(fmt::format("NCCL {}, {}{}", library.text(), Name(in_use.connecting),
                        runs.empty() ? "" : ": once more"));
      DYNAMICCL_TRY(JudgedCell run, Compared(request, in_use, runs.empty() ? Reuse::kKept : Reuse::kNothing));
      if (runs.size() < 2 && !HasGrave(run.differences)) return run;
      for (JudgedCell& earlier : runs) {
        if (HaveOneInCommon(SymptomsOf(earlier), SymptomsOf(run))) return Confirmed(std::move(earlier), run);
      }
      runs.push_back(std::move(run));
    }
    *problem = fmt::format(
        "three runs, {}, had nothing in common: {}; {}; {}. Run it again with --fresh on a "
        "machine with less to do",
        Name(in_use.connecting), EndText(runs[0].cell), EndText(runs[1].cell), EndText(runs[2].cell));
    return std::move(runs.back());
  }

  // Says why nothing can be judged if the release in use fails no matter when its ranks connect. Else empty.
  std::string WhyInUseFails() const {
    for (const JudgedCell& one : answer_.in_use_cells) {
      if (one.cell.passed()) return "";
    }
    return fmt::format(
        "NCCL {}, the release in use, does not run on this description itself: {}. If your job runs with it, "
        "the description is not your machine: give the file that this very job wrote (NCCL_TOPO_DUMP_FILE), "
        "and its NCCL_ variables by --env",
        answer_.in_use.text(), EndText(answer_.in_use_cells.front().cell));
  }

  Result<JudgedRelease> Judge(const ReleaseLibrary& library) {
    JudgedRelease judged{.library = library};
    judged.problem = WhyInUseFails();
    std::vector<Difference> all;
    for (const JudgedCell& in_use : answer_.in_use_cells) {
      DYNAMICCL_TRY(JudgedCell cell, JudgeCell(library, in_use, &judged.problem));
      if (cell.cell.end == CellEnd::kNotRun) judged.problem = cell.cell.problem;
      // Notices (differences that are not grave) do not depend on when ranks connect, so only the first cell
      // of a release keeps its notices. A cell is a run with one time of connecting. A grave difference that
      // several cells show is kept once.
      std::erase_if(cell.differences, [&](const Difference& one) {
        return !judged.cells.empty() &&
               (one.gravity == Gravity::kNotice || std::ranges::find(all, one) != all.end());
      });
      all.insert(all.end(), cell.differences.begin(), cell.differences.end());
      judged.cells.push_back(std::move(cell));
    }
    judged.verdict = VerdictOf(all);
    judged.effect = EffectOf(judged);
    judged.issues = IssuesFor(known_, answer_.in_use.release, library.release,
                              request_.machines.front().architecture, all);
    if (!judged.problem.empty() || !HasGrave(all)) return judged;
    if (request_.seeks_remedies) DYNAMICCL_CHECK_OK(SeekRemedies(&judged));
    if (request_.bisects) DYNAMICCL_CHECK_OK(Bisect(&judged));
    return judged;
  }

  std::optional<TrafficEffect> EffectOf(const JudgedRelease& judged) const {
    const JudgedCell& in_use = answer_.in_use_cells.front();
    const JudgedCell& now = judged.cells.front();
    if (!request_.traffic || !in_use.cell.passed() || !now.cell.passed()) return std::nullopt;
    return EffectOn(*request_.traffic, in_use.cell, now.cell);
  }

  const JudgedCell& InUse(Connecting connecting) const {
    return *std::find_if(answer_.in_use_cells.begin(), answer_.in_use_cells.end(),
                         [&](const JudgedCell& one) { return one.connecting == connecting; });
  }

  // Returns the candidates (variables that switch off a part of NCCL) that can help the release.
  std::vector<Candidate> CandidatesFor(const JudgedRelease& judged) const {
    const bool launches_unlike =
        std::ranges::any_of(judged.cells, [](const JudgedCell& one) { return !one.cell.ranks_launch_alike; });
    std::vector<Candidate> candidates;
    std::ranges::copy_if(kCandidates, std::back_inserter(candidates), [&](const Candidate& one) {
      return !request_.environment.contains(one.variable) &&
             (one.variable != kNetworkOverhead || launches_unlike);
    });
    return candidates;
  }

  // Begins the first run of each candidate.
  void BeginCandidates(const JudgedRelease& judged, const std::vector<Candidate>& candidates) const {
    const auto bad =
        std::ranges::find_if(judged.cells, [](const JudgedCell& one) { return HasGrave(one.differences); });
    if (bad == judged.cells.end()) return;
    std::vector<CellRequest> runs;
    for (const auto& [variable, value] : candidates) {
      if (!RunsSo(*bad, variable))
        runs.push_back(RequestWith(judged.library, bad->connecting, variable, value));
    }
    runner_.Begin(runs);
  }

  // Tries all candidates and keeps those that remove the grave differences. When the fault is a hang, the
  // search stops at the first one that helps, because each run without success takes its whole time limit.
  Status SeekRemedies(JudgedRelease* judged) const {
    const bool hangs = std::ranges::any_of(
        judged->cells, [](const JudgedCell& one) { return one.cell.end == CellEnd::kHung; });
    const std::vector<Candidate> candidates = CandidatesFor(*judged);
    if (!hangs) BeginCandidates(*judged, candidates);
    for (const auto& [variable, value] : candidates) {
      if (hangs && !judged->remedies.empty()) continue;
      DYNAMICCL_TRY(const std::optional<bool> ends, EndsAll(*judged, variable, value));
      if (ends) judged->tried.push_back(fmt::format("{}={}", variable, value));
      if (ends.value_or(false)) judged->remedies.push_back({variable, value});
    }
    return {};
  }

  // True if the release runs as with this variable anyway, because its ranks connect at the first call.
  static bool RunsSo(const JudgedCell& run, const std::string& variable) {
    return variable == kRuntimeConnect && run.connecting == Connecting::kAtFirstCall;
  }

  // Runs the release with the variable set, and returns whether the grave differences are gone at every time
  // of connecting. Returns nothing if the release runs as with this variable anyway (RunsSo).
  Result<std::optional<bool>> EndsAll(const JudgedRelease& judged, const std::string& variable,
                                      const std::string& value) const {
    for (const JudgedCell& bad : judged.cells) {
      if (!HasGrave(bad.differences)) continue;
      if (RunsSo(bad, variable)) return std::nullopt;
      DYNAMICCL_TRY(const bool ends, EndedBy(judged.library, bad.connecting, variable, value));
      if (!ends) return false;
    }
    return true;
  }

  CellRequest RequestWith(const ReleaseLibrary& library, Connecting connecting, const std::string& variable,
                          const std::string& value) const {
    CellRequest request =
        RequestOf(library, connecting, LimitFor(InUse(connecting).cell, kLeastRemedyLimit_s));
    request.environment[variable] = value;
    return request;
  }

  Result<bool> EndedBy(const ReleaseLibrary& library, Connecting connecting, const std::string& variable,
                       const std::string& value) const {
    const Cell& in_use = InUse(connecting).cell;
    says_(fmt::format("NCCL {}, {}, with {}={}", library.text(), Name(connecting), variable, value));
    DYNAMICCL_TRY(const Cell cell, runner_.Run(RequestWith(library, connecting, variable, value)));
    std::vector<Difference> differences = CompareCells(in_use, cell, traffic());
    if (ConnectUnlike(library.release, connecting)) WeighAdaptersLess(&differences);
    return cell.end != CellEnd::kNotRun && !HasGrave(differences);
  }

  // Returns whether the release has one of the symptoms. A hang counts if a second run hangs too. A release
  // that fails otherwise does not come far enough to show the symptoms.
  Result<FaultState> StateOf(const ReleaseLibrary& library, const Symptoms& sought) const {
    FaultState state = FaultState::kAbsent;
    for (const JudgedCell& in_use : answer_.in_use_cells) {
      const bool is_sought = std::ranges::any_of(
          sought, [&](const Symptom& one) { return one.connecting == in_use.connecting; });
      if (!is_sought) continue;
      says_(fmt::format("bisecting: NCCL {}, {}", library.text(), Name(in_use.connecting)));
      const CellRequest request = JudgedRequest(library, in_use);
      DYNAMICCL_TRY(JudgedCell run, Compared(request, in_use, Reuse::kKept));
      if (run.cell.end == CellEnd::kHung) {
        DYNAMICCL_TRY(run, Compared(request, in_use, Reuse::kNothing));
      }
      if (HaveOneInCommon(SymptomsOf(run), sought)) return FaultState::kPresent;
      if (!run.cell.passed()) state = FaultState::kHidden;
    }
    return state;
  }

  // Bisects the cached releases for the failures of the judged release, and for its other grave differences.
  Status Bisect(JudgedRelease* judged) const {
    judged->bisected = true;
    if (judged->library.release <= answer_.in_use.release) return {};
    const std::vector<ReleaseLibrary> libraries = CachedReleases();
    std::vector<NcclRelease> releases;
    for (const ReleaseLibrary& one : libraries) releases.push_back(one.release);
    Symptoms all;
    for (const JudgedCell& cell : judged->cells) all.merge(SymptomsOf(cell));
    for (const Symptoms& sought : FailuresAndOthers(all)) {
      const auto state = [&](const NcclRelease& release) {
        return StateOf(*std::ranges::find(libraries, release, &ReleaseLibrary::release), sought);
      };
      DYNAMICCL_TRY(Bisection found,
                    BisectFault(answer_.in_use.release, judged->library.release, releases, state));
      judged->periods.push_back({KindsOfSymptoms(sought), std::move(found)});
    }
    return {};
  }

  const CellRunner& runner_;
  const CanaryRequest& request_;
  const std::vector<KnownIssue> known_;
  const std::function<void(const std::string&)>& says_;
  CanaryAnswer answer_;
};

// Returns a rule that forces `choice` for calls of `least` to `most` bytes.
std::string Rule(const CellChoice& choice, uint64_t least, uint64_t most, int ranks, int nodes) {
  return fmt::format("{},{},{},{},{},{},{},{}\n", Name(choice.collective), least, most,
                     Name(choice.config.algorithm), Name(choice.config.protocol), choice.config.channels,
                     nodes, ranks);
}

}  // namespace

Result<CanaryAnswer> RunCanary(const CellRunner& runner, const CanaryRequest& request,
                               const std::vector<KnownIssue>& known,
                               const std::function<void(const std::string&)>& says) {
  return Canary(runner, request, known, says).Run();
}

const char* Name(Connecting connecting) {
  return connecting == Connecting::kAtInit ? "connecting at init" : "connecting at the first call";
}

std::string RulesThatRestore(const CanaryAnswer& answer, const JudgedRelease& judged, int ranks, int nodes) {
  std::string rules;
  const std::vector<CellChoice>& old = answer.in_use_cells.front().cell.choices;
  const std::vector<CellChoice>& now = judged.cells.front().cell.choices;
  for (const CellChoice& before : old) {
    const auto same_call = [&](const CellChoice& one) {
      return one.collective == before.collective && one.bytes == before.bytes;
    };
    const auto after = std::find_if(now.begin(), now.end(), same_call);
    if (after == now.end() || after->config == before.config || before.config.leaves_nccl_alone()) continue;
    // Choices are known only for the sizes that the canary ran. The rule holds up to the next larger one of
    // these sizes.
    uint64_t most = UINT64_MAX;
    for (const CellChoice& other : old) {
      if (other.collective == before.collective && other.bytes > before.bytes)
        most = std::min(most, other.bytes - 1);
    }
    rules += Rule(before, before.bytes, most, ranks, nodes);
  }
  return rules;
}

}  // namespace dynamiccl
