// SPDX-License-Identifier: Apache-2.0
#include "tools/report/recognised_labels.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "src/policy/policy_file.h"
#include "src/policy/structure_inference.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

// Named as the recogniser if a trace's labels come from the decisions that the job itself recorded.
constexpr const char* kJobsOwnPolicy = "the job's own policy";

bool IsTunableCall(const TraceRecord& record) {
  return record.kind == static_cast<uint16_t>(RecordKind::kCollective) &&
         record.collective < kTunableCollectives;
}

bool IsLabelled(const TraceRecord& record) {
  return IsTunableCall(record) &&
         (LabelledRole(record) != Role::kUnknown || LabelledPhase(record) != Phase::kUnknown ||
          LabelledStage(record) != ZeroStage::kUnknown);
}

void Label(const RecognisedStructure& recognised, const CollectiveCall& call, TraceRecord& record) {
  record.labels = PackLabels(recognised.phase, RoleOfNext(recognised, call.collective, call.bytes));
  record.labelled_stage = static_cast<uint8_t>(recognised.stage);
  Seal(record);
}

}  // namespace

bool LabelByPolicy(const Policy& policy, TraceSection& section) {
  if (std::any_of(section.records.begin(), section.records.end(), IsLabelled)) return false;
  const std::map<uint32_t, CommunicatorInfo> communicators = CommunicatorsOf(section);
  std::map<uint32_t, StructureAgent> agents;
  for (TraceRecord& record : section.records) {
    const auto known = communicators.find(record.communicator);
    if (!IsTunableCall(record) || known == communicators.end()) continue;
    StructureAgent& agent = agents.try_emplace(record.communicator, policy).first->second;
    const CollectiveCall call = IssuedCallOf(record, known->second).call;
    Label(agent.recognised(), call, record);
    agent.Step(call);
  }
  return true;
}

bool LabelByDecisions(TraceSection& section) {
  if (std::any_of(section.records.begin(), section.records.end(), IsLabelled)) return false;
  using CallPlace = std::tuple<uint32_t, uint64_t, uint16_t>;
  const auto place = [](const TraceRecord& record) {
    return CallPlace(record.communicator, record.call_number, record.index_in_group);
  };
  std::map<CallPlace, DecisionView> recognised;
  for (const TraceRecord& record : section.records) {
    if (record.kind != static_cast<uint16_t>(RecordKind::kDecision)) continue;
    if (const DecisionView decision = DecisionOf(record); decision.recognised())
      recognised.insert_or_assign(place(record), decision);
  }
  for (TraceRecord& record : section.records) {
    const auto found = IsTunableCall(record) ? recognised.find(place(record)) : recognised.end();
    if (found == recognised.end()) continue;
    const DecisionView& decision = found->second;
    const Role role = decision.role == Role::kBackwardGather ? Role::kParameterGather : decision.role;
    record.labels = PackLabels(decision.phase, role);
    record.labelled_stage = static_cast<uint8_t>(decision.stage);
    Seal(record);
  }
  return !recognised.empty();
}

Result<std::string> RecogniseSections(const std::string& named, const std::string& fallback, Trace& trace) {
  const std::string& path = named.empty() ? fallback : named;
  std::shared_ptr<const Policy> policy;
  if (!path.empty()) {
    DYNAMICCL_TRY(policy, ReadPolicyFile(path));
  }
  std::string recognised_by;
  for (TraceSection& section : trace.sections) {
    const bool first = &section == &trace.sections.front();
    if (named.empty() && LabelByDecisions(section)) {
      if (first) recognised_by = kJobsOwnPolicy;
    } else if (policy && LabelByPolicy(*policy, section) && first) {
      recognised_by = std::filesystem::path(path).filename().string();
    }
  }
  return recognised_by;
}

Status RecogniseUnlabelled(const std::string& fallback, ReportInputs& inputs) {
  for (NamedTrace& trace : inputs.traces) {
    std::vector<TraceSection>& sections = trace.trace.sections;
    if (inputs.policies.empty() && !sections.empty() && LabelByDecisions(sections.front()))
      trace.recognised_by = kJobsOwnPolicy;
  }
  if (inputs.traces.empty()) return {};
  NamedPolicy by;
  if (!inputs.policies.empty()) {
    by = inputs.policies.front();
  } else if (!fallback.empty()) {
    by.path = fallback;
    DYNAMICCL_TRY(by.policy, ReadPolicyFile(fallback));
  }
  if (!by.policy) return {};
  for (NamedTrace& trace : inputs.traces) {
    // Label only the first section (process), from which a report takes stages and roles.
    std::vector<TraceSection>& sections = trace.trace.sections;
    if (!sections.empty() && LabelByPolicy(*by.policy, sections.front()))
      trace.recognised_by = std::filesystem::path(by.path).filename().string();
  }
  return {};
}

}  // namespace dynamiccl
