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

bool IsTunableCall(const TraceRecord& record) {
  return record.kind == static_cast<uint16_t>(RecordKind::kCollective) &&
         record.collective < kTunableCollectives;
}

}  // namespace

bool IsLabelledCall(const TraceRecord& record) {
  return IsTunableCall(record) &&
         (LabelledRole(record) != Role::kUnknown || LabelledPhase(record) != Phase::kUnknown ||
          LabelledStage(record) != ZeroStage::kUnknown);
}

void LabelByDecision(const DecisionView& decision, TraceRecord& record) {
  if (!IsTunableCall(record)) return;
  const Role role = decision.role == Role::kBackwardGather ? Role::kParameterGather : decision.role;
  record.labels = PackLabels(decision.phase, role);
  record.labelled_stage = static_cast<uint8_t>(decision.stage);
}

void PolicyLabeller::Label(const CommunicatorInfo& communicator, TraceRecord& record) {
  if (!IsTunableCall(record)) return;
  auto place = recognitions_.find(record.communicator);
  if (place == recognitions_.end())
    place = recognitions_.emplace(record.communicator, Recognition{StructureAgent(policy_), {}}).first;
  auto& [agent, recognised] = place->second;
  const CollectiveCall call = IssuedCallOf(record, communicator).call;
  if (call.index_in_group == 0) recognised = agent.recognised();
  record.labels = PackLabels(recognised.phase, RoleOfNext(recognised, call.collective, call.bytes));
  record.labelled_stage = static_cast<uint8_t>(recognised.stage);
  agent.Step(call);
}

bool LabelByPolicy(const Policy& policy, TraceSection& section) {
  if (std::any_of(section.records.begin(), section.records.end(), IsLabelledCall)) return false;
  const std::map<uint32_t, CommunicatorInfo> communicators = CommunicatorsOf(section);
  PolicyLabeller labeller(policy);
  for (TraceRecord& record : section.records) {
    const auto known = communicators.find(record.communicator);
    if (!IsTunableCall(record) || known == communicators.end()) continue;
    labeller.Label(known->second, record);
    Seal(record);
  }
  return true;
}

bool LabelByDecisions(TraceSection& section) {
  if (std::any_of(section.records.begin(), section.records.end(), IsLabelledCall)) return false;
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
    LabelByDecision(found->second, record);
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

}  // namespace dynamiccl
