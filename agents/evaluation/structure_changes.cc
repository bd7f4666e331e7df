// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/structure_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

#include "agents/trigger/framework_sequences.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {
namespace {

constexpr int kStepsBefore = 8, kStepsAfter = 2;
// A change before the memory of shapes has settled cannot be told from a job's beginning.
constexpr size_t kLeastCallsBefore = 512;
constexpr int kAttempts = 400;

struct Changeable {
  std::string_view framework, setting;
};
constexpr Changeable kChangeable[] = {
    {"ddp", "bucket_bytes"},
    {"deepspeed1", "reduce_bucket_size"},
    {"deepspeed2", "reduce_bucket_size"},
    {"deepspeed3", "reduce_bucket_size"},
    {"colossalai", "reduce_bucket_size"},
    {"megatron", "micro_batch"},
    {"dynamiccl-zero", "bucket_bytes"},
};

std::string_view SettingOf(std::string_view framework) {
  for (const Changeable& row : kChangeable) {
    if (row.framework == framework) return row.setting;
  }
  throw std::logic_error(std::string(framework) + " has no size that changes");
}

using Shape = std::tuple<Collective, uint64_t, DataType>;
Shape ShapeOf(const CollectiveCall& call) {
  return {call.collective, call.bytes, call.data_type};
}

// The steps of `after` behind those of `before`, on the communicator that they name alike.
ChangedJob Joined(CallSequence before, const CallSequence& after) {
  ChangedJob job{std::move(before), 0, 1, {}};
  std::set<Shape> known;
  for (const IssuedCall& issued : job.sequence.calls) known.insert(ShapeOf(issued.call));
  const uint64_t group = job.sequence.calls.back().call.call_number + 1;
  const size_t first =
      after.step_begins.empty() ? 0 : after.step_begins[std::min<size_t>(2, after.step_begins.size() - 1)];
  const uint64_t first_group = after.calls[first].call.call_number;
  job.sequence.step_begins.push_back(job.sequence.calls.size());
  for (size_t i = first; i < after.calls.size(); ++i) {
    IssuedCall issued = after.calls[i];
    issued.call.call_number += group - first_group;
    if (job.changed == 0 && !known.contains(ShapeOf(issued.call))) job.changed = job.sequence.calls.size();
    job.sequence.calls.push_back(issued);
  }
  return job;
}

// The sequence of the job on which most of the changed calls lie.
ChangedJob JoinedLongest(const GeneratedRun& before, const GeneratedRun& after, const std::string& name) {
  const auto one = SequencesOf(before, name), two = SequencesOf(after, name);
  ChangedJob best;
  for (size_t i = 0; i < std::min(one.size(), two.size()); ++i) {
    if (one[i].calls.size() < kLeastCallsBefore || one[i].name != two[i].name) continue;
    ChangedJob job = Joined(one[i], two[i]);
    if (job.changed > 0 && job.sequence.calls.size() > best.sequence.calls.size()) best = std::move(job);
  }
  return best;
}

// A job with as many steps before the change as make it long enough.
ChangedJob TryChange(JobShape shape, double factor, const std::string& setting) {
  const auto probe = RunOf(shape, 2);
  if (!probe) return {};
  const size_t a_step = std::max<size_t>(probe->steps[1].size(), 1);
  const auto before =
      RunOf(shape, std::max(kStepsBefore, static_cast<int>(kLeastCallsBefore * 3 / 2 / a_step)));
  const auto was = shape.settings.find(setting);
  if (was == shape.settings.end()) return {};
  const double now = std::max(std::stod(was->second) * factor, 1.0);
  was->second = fmt::format("{}", static_cast<int64_t>(now));
  const auto after = RunOf(shape, 2 + kStepsAfter);
  if (!before || !after) return {};
  return JoinedLongest(*before, *after, fmt::format("{} {}", shape.framework, shape.model));
}

enum Detector { kSurprise, kNewShape, kBoth, kDetectors };

// A policy of which one part alone can speak.
Policy OnlyPart(const Policy& policy, Detector part) {
  Policy only = policy;
  only.structure_network.reset();
  if (part == kNewShape) only.tensors.structure.surprise = 1 << 16;
  if (part == kSurprise) only.tensors.structure.settled_calls = 1 << 16;
  return only;
}

std::vector<bool> FlagsOf(const Policy& policy, const CallSequence& sequence) {
  StructureTrigger trigger(policy);
  std::vector<bool> flags;
  for (const IssuedCall& issued : sequence.calls) flags.push_back(trigger.Step(issued.call).changed);
  return flags;
}

void AddQuiet(const Policy& policy, const CallSequence& sequence, DetectorResult& result) {
  if (sequence.step_begins.size() < 3) return;
  const std::vector<bool> flags = FlagsOf(policy, sequence);
  for (size_t i = sequence.step_begins[2]; i < flags.size(); ++i) {
    ++result.quiet_calls;
    result.false_alarms += flags[i] ? 1 : 0;
  }
}

void AddChanged(const Policy& policy, const ChangedJob& job, DetectorResult& result) {
  const std::vector<bool> flags = FlagsOf(policy, job.sequence);
  const auto seen_within = [&](size_t calls) {
    const auto begin = flags.begin() + static_cast<std::ptrdiff_t>(job.changed);
    const auto count = std::min(calls, static_cast<size_t>(flags.end() - begin));
    return std::find(begin, begin + static_cast<std::ptrdiff_t>(count), true) !=
           begin + static_cast<std::ptrdiff_t>(count);
  };
  ++result.changes;
  result.seen_within_2 += seen_within(2) ? 1 : 0;
  result.seen_within_16 += seen_within(16) ? 1 : 0;
}

}  // namespace

std::vector<std::string_view> ChangeableFrameworks() {
  std::vector<std::string_view> frameworks;
  for (const Changeable& row : kChangeable) frameworks.push_back(row.framework);
  return frameworks;
}

ChangedJob RandomChangedJob(std::string_view framework, std::string_view family, std::mt19937_64& random) {
  const std::string setting(SettingOf(framework));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    JobShape shape = RandomShape(framework, family, random);
    if (framework == "megatron" && shape.world.tensor == 1) shape.world.tensor = 2;
    const double octaves = 1 + static_cast<double>(random() % 33) / 16;
    const double factor = std::exp2(random() % 2 == 0 ? octaves : -octaves);
    ChangedJob job = TryChange(shape, factor, setting);
    if (job.changed == 0) continue;
    job.factor = factor;
    job.setting = setting;
    return job;
  }
  throw std::logic_error(fmt::format("{}: no job found whose sizes change with {}", framework, setting));
}

ChangeReport JudgeChanges(const Policy& policy, const std::vector<CallSequence>& quiet,
                          const std::vector<ChangedJob>& changed) {
  constexpr const char* kNames[] = {"LSTM's surprise", "new shape", "both"};
  ChangeReport report;
  for (const Detector detector : {kSurprise, kNewShape, kBoth}) {
    const Policy part = OnlyPart(policy, detector);
    DetectorResult result;
    result.detector = kNames[detector];
    for (const CallSequence& sequence : quiet) AddQuiet(part, sequence, result);
    for (const ChangedJob& job : changed) AddChanged(part, job, result);
    report.detectors.push_back(std::move(result));
  }
  return report;
}

}  // namespace dynamiccl::agents
