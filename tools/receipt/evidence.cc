// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/canary/release_library.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_files.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/kineto_events.h"
#include "traces/import/text_fields.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// Adds the release of NCCL that a file names. A trace has "NCCL 2.28.9", or "hostccl 2.28.9" for the release
// as which hostccl behaved. A profiler trace has "2.28.9".
void TakeRelease(const std::string& path, const std::string& library, Evidence& evidence) {
  std::string_view text = library;
  for (const std::string_view name : {"NCCL ", "hostccl "})
    if (text.starts_with(name)) text.remove_prefix(name.size());
  const auto release = real_nccl::ParseRelease(std::string(text));
  if (!release) return;
  for (const LoggedRelease& one : evidence.log.releases) {
    if (one.release == *release) return;
  }
  evidence.log.releases.push_back({*release, {path, 0, "NCCL " + release->text()}});
}

// Reads a trace that DynamICCL recorded or imported. An imported trace has no decisions of DynamICCL.
Status TakeTrace(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(const Trace trace, ReadTraceFiles({path}, TraceReading::kSalvage));
  for (const TraceSection& section : trace.sections) {
    TakeRelease(path, section.library, evidence);
    if ((section.flags & kTraceImported) != 0) continue;
    const LogLine line{
        path, 0,
        fmt::format("{} records of process {}{}, written by {}", section.records.size(), section.process_id,
                    section.missing().any() ? ", " + Describe(section.missing(), "") : "", section.writer)};
    if (!evidence.trace) evidence.trace = line;
    evidence.over_hostccl = section.over_hostccl();
    const SectionCalls calls = CallsOf(section);
    for (const TraceCall& call : calls.calls) {
      evidence.pinned_calls += call.issued.coverage == Coverage::kPinned;
      if (!call.decision) continue;
      const CommunicatorInfo& communicator = calls.communicators.at(call.communicator);
      evidence.decisions.push_back({{.collective = call.issued.call.collective,
                                     .bytes = call.issued.call.bytes,
                                     .n_nodes = communicator.n_nodes,
                                     .n_ranks = communicator.n_ranks,
                                     .role = call.decision->role,
                                     .phase = call.decision->phase,
                                     .stage = call.decision->stage},
                                    call.decision->decided_by});
      evidence.knows_structure |= call.decision->recognised();
    }
  }
  evidence.files.push_back({path, "trace of DynamICCL"});
  return {};
}

Status TakeKineto(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(const KinetoFile file, ReadKinetoFile(path));
  TakeRelease(path, file.nccl_version, evidence);
  for (const auto& [name, count] : file.kernel_names) {
    const std::string text = fmt::format("{} kernel{} {}", count, count == 1 ? "" : "s", name);
    evidence.kernels.push_back({name, count, {path, 0, text}});
  }
  evidence.files.push_back({path, "profiler trace of PyTorch"});
  return {};
}

Status TakeLog(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  size_t number = 0;
  DYNAMICCL_CHECK_OK(stream.EachLine([&](std::string_view line) -> Status {
    evidence.log.Take(path, ++number, line);
    return {};
  }));
  evidence.files.push_back({path, "log"});
  return {};
}

Status TakeEnvironment(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(const std::string content, ReadTextFile(path));
  for (AskedSetting& asked : ParseEnvironment(path, content)) evidence.asked.push_back(std::move(asked));
  evidence.files.push_back({path, "environment"});
  return {};
}

Status TakeRules(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(OverrideRules rules, OverrideRules::ReadFile(path));
  evidence.rules.push_back({path, std::move(rules)});
  evidence.files.push_back({path, "rules"});
  return {};
}

// Parses "<role>[/<phase>/<stage>[/<memory>]]". A part that is no known name stays unknown.
void TakeRecognised(std::string_view word, RuleSubject& subject) {
  const auto next = [&word] {
    const std::string_view part = word.substr(0, word.find('/'));
    word.remove_prefix(std::min(part.size() + 1, word.size()));
    return part;
  };
  subject.role = ParseRole(next()).value_or(Role::kUnknown);
  subject.phase = ParsePhase(next()).value_or(Phase::kUnknown);
  subject.stage = ParseStage(next()).value_or(ZeroStage::kUnknown);
  subject.memory = ParseMemoryPressure(next()).value_or(MemoryPressure::kUnknown);
}

bool IsRecognised(const RuleSubject& subject) {
  return subject.role != Role::kUnknown || subject.phase != Phase::kUnknown ||
         subject.stage != ZeroStage::kUnknown;
}

// Parses a line of the decision log: "<communicator> <call number> <collective> <bytes>
// <role>[/<phase>/<stage>[/<memory>]] <algorithm>/<protocol>/<channels> <who> v<version>".
std::optional<SeenDecision> ParseDecision(std::string_view line) {
  const std::vector<std::string_view> words = Words(line);
  if (words.size() != 8 || words[0].size() != 16 || !words[7].starts_with('v')) return std::nullopt;
  const auto collective = ParseCollective(words[2]);
  const auto bytes = NumberIn<uint64_t>(words[3]);
  if (!collective || !bytes) return std::nullopt;
  for (int who = 0; who < kDeciders; ++who) {
    if (Name(static_cast<DecidedBy>(who)) != words[6]) continue;
    SeenDecision seen{{.collective = *collective, .bytes = *bytes}, static_cast<DecidedBy>(who)};
    TakeRecognised(words[4], seen.subject);
    return seen;
  }
  return std::nullopt;
}

Status TakeDecisionLog(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  size_t number = 0;
  DYNAMICCL_CHECK_OK(stream.EachLine([&](std::string_view line) -> Status {
    ++number;
    const auto decision = ParseDecision(line);
    if (!decision) return {};
    if (!evidence.decision_log) evidence.decision_log = LogLine{path, number, std::string(line)};
    evidence.decisions.push_back(*decision);
    evidence.knows_structure |= IsRecognised(decision->subject);
    evidence.knows_memory |= decision->subject.memory != MemoryPressure::kUnknown;
    evidence.knows_nodes = false;
    return {};
  }));
  evidence.files.push_back({path, "decision log of DynamICCL"});
  return {};
}

bool LooksLikeLog(std::string_view head) {
  constexpr std::string_view kMarks[] = {" NCCL INFO ", " NCCL WARN ", "NCCL version ", "ProcessGroupNCCL",
                                         "dynamiccl: "};
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](std::string_view mark) { return head.find(mark) != std::string_view::npos; });
}

// Imports a file of another tool. The only evidence that such a file can give is NCCL's release. A file that
// cannot be imported is an error.
Status TakeOther(const std::string& path, Evidence& evidence) {
  const auto imported = ImportFile(path, "");
  if (!imported)
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{}: shows nothing about settings", path),
        "these do: logs with NCCL_DEBUG=INFO, profiler traces of PyTorch, traces, decision logs and "
        "metrics of DynamICCL, rules (.csv, .toml), and environments (the output of `env`)");
  if (imported->trace && !imported->trace->sections.empty())
    TakeRelease(path, imported->trace->sections.front().library, evidence);
  evidence.files.push_back({path, imported->format});
  return {};
}

Status TakeMetrics(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  AddMetrics(path, text, evidence);
  evidence.files.push_back({path, "metrics of DynamICCL"});
  return {};
}

}  // namespace

Status AddEvidence(const std::string& path, Evidence& evidence) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  const std::string head = stream.Head(kHeadBytes);
  if (head.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: the file is empty", path),
                    "a process that was killed early, or still runs, may have written nothing yet");
  if (IsTraceOfOurs(head)) return TakeTrace(path, evidence);
  if (KinetoImporter().Recognises(head)) return TakeKineto(path, evidence);
  if (LooksLikeMetrics(head)) return TakeMetrics(path, evidence);
  if (LooksLikeLog(head)) return TakeLog(path, evidence);
  if (ParseDecision(std::string_view(head).substr(0, head.find('\n'))))
    return TakeDecisionLog(path, evidence);
  if (LooksLikeEnvironment(head)) return TakeEnvironment(path, evidence);
  if (path.ends_with(".csv") || path.ends_with(".toml")) return TakeRules(path, evidence);
  return TakeOther(path, evidence);
}

void AskWhatWasRead(Evidence& evidence) {
  for (const ReadVariable& read : evidence.log.reads) {
    const bool known = std::any_of(evidence.asked.begin(), evidence.asked.end(),
                                   [&](const AskedSetting& one) { return one.name == read.name; });
    if (!known) evidence.asked.push_back({read.name, read.value, read.line});
  }
}

uint64_t Evidence::CountOf(DecidedBy who) const {
  if (decisions.empty() && counted) return counted->DecisionsBy(who);
  return static_cast<uint64_t>(std::count_if(decisions.begin(), decisions.end(),
                                             [&](const SeenDecision& one) { return one.decided_by == who; }));
}

uint64_t Evidence::n_decisions() const {
  return decisions.empty() && counted ? counted->n_decisions() : decisions.size();
}

const std::vector<ChosenCalls>& Evidence::Choices() const {
  return log.choices.empty() && counted ? counted->timed : log.choices;
}

Result<Evidence> ReadEvidence(const std::vector<std::string>& paths,
                              const std::vector<AskedSetting>& also_asked) {
  Evidence evidence{.knows_nodes = true, .asked = also_asked};
  for (const std::string& path : paths) DYNAMICCL_CHECK_OK(AddEvidence(path, evidence));
  AskWhatWasRead(evidence);
  return evidence;
}

}  // namespace dynamiccl
