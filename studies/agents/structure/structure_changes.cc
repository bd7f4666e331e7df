// SPDX-License-Identifier: Apache-2.0
// A changed job is two generated runs of one shape, joined on each communicator. The policy's flags on it are
// compared with the place of the change.
#include "studies/agents/structure/structure_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

#include "agents/structure/framework_sequences.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl::agents {
namespace {

// The least number of steps before the change, and the number of steps after it.
constexpr int kStepsBefore = 8, kStepsAfter = 2;
// A change before the memory of shapes has settled cannot be told from a job's beginning.
constexpr size_t kLeastCallsBefore = 512;
// Number of random jobs that are tried before the search gives up.
constexpr int kAttempts = 400;

// Range of the bucket sizes, in bytes.
constexpr int64_t kSmallestBucket = 4 << 10, kLargestBucket = 64 << 20;
// Number of random jobs that are tried for a given size of buckets.
constexpr int kBucketAttempts = 20;

// A framework's setting that changes sizes.
struct Changeable {
  std::string_view framework, setting;
  // Bytes of one unit of the setting; 0 if the setting is not a size of buckets.
  int64_t unit;
};
// The frameworks whose sizes can change, with the setting that changes them.
constexpr Changeable kChangeable[] = {
    {"ddp", "bucket_bytes", 1},
    {"deepspeed1", "reduce_bucket_size", 2},
    {"deepspeed2", "reduce_bucket_size", 2},
    {"deepspeed3", "reduce_bucket_size", 2},
    {"colossalai", "reduce_bucket_size", 2},
    {"megatron", "micro_batch", 0},
    {"dynamiccl-zero", "bucket_bytes", 1},
};

const Changeable& ChangeableOf(std::string_view framework) {
  for (const Changeable& row : kChangeable) {
    if (row.framework == framework) return row;
  }
  throw std::logic_error(std::string(framework) + " has no size that changes");
}

using Shape = std::tuple<Collective, uint64_t, DataType>;
Shape ShapeOf(const CollectiveCall& call) {
  return {call.collective, call.bytes, call.data_type};
}

// Appends the steps of `after` to those of `before`, on the communicator that has the same name in both.
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

// Returns the sequence with the most calls of the job.
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

// A job with enough steps before the change. `now` is the setting's value after it.
ChangedJob TryChange(JobShape shape, const std::string& setting, int64_t now) {
  const auto probe = RunOf(shape, 2);
  if (!probe) return {};
  const size_t a_step = std::max<size_t>(probe->steps[1].size(), 1);
  const auto before =
      RunOf(shape, std::max(kStepsBefore, static_cast<int>(kLeastCallsBefore * 3 / 2 / a_step)));
  shape.settings[setting] = fmt::format("{}", now);
  const auto after = RunOf(shape, 2 + kStepsAfter);
  if (!before || !after) return {};
  return JoinedLongest(*before, *after, fmt::format("{} {}", shape.framework, shape.model));
}

// Parts of the policy that can report a change.
enum Detector { kSurprise, kNewShape, kBoth, kDetectors };

// A policy in which only one part can report.
Policy OnlyPart(const Policy& policy, Detector part) {
  Policy only = policy;
  only.structure_network.reset();
  if (part == kNewShape) only.tensors.structure.surprise = 1 << 16;
  if (part == kSurprise) only.tensors.structure.settled_calls = 1 << 16;
  return only;
}

std::vector<bool> FlagsOf(const Policy& policy, const CallSequence& sequence) {
  StructureAgent agent(policy);
  std::vector<bool> flags;
  for (const IssuedCall& issued : sequence.calls) flags.push_back(agent.Step(issued.call).changed);
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

// True if one of the `calls` calls from the changed one on was flagged.
bool SeenWithin(const std::vector<bool>& flags, const ChangedJob& job, size_t calls) {
  const auto begin = flags.begin() + static_cast<std::ptrdiff_t>(job.changed);
  const auto count = std::min(calls, static_cast<size_t>(flags.end() - begin));
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  return std::find(begin, end, true) != end;
}

void AddChanged(const Policy& policy, const ChangedJob& job, DetectorResult& result) {
  const std::vector<bool> flags = FlagsOf(policy, job.sequence);
  ++result.changes;
  result.seen_within_2 += SeenWithin(flags, job, 2) ? 1 : 0;
  result.seen_within_16 += SeenWithin(flags, job, 16) ? 1 : 0;
}

// Returns a transformer that fills some dozens of buckets of this size. Most of its tensors are no larger
// than one bucket.
std::string ModelFor(std::string_view family, int64_t bucket, std::mt19937_64& random) {
  const auto layers = static_cast<int64_t>(2 + random() % 6);
  const auto elements = static_cast<double>(bucket * (4 << random() % 3));
  const auto hidden = static_cast<int64_t>(std::sqrt(elements / (12.0 * static_cast<double>(layers))));
  return fmt::format("{}:layers={},hidden={},vocabulary=256,sequence=64", family, layers,
                     std::max<int64_t>(hidden / 8 * 8, 8));
}

}  // namespace

std::vector<std::string_view> ChangeableFrameworks() {
  std::vector<std::string_view> frameworks;
  for (const Changeable& row : kChangeable) frameworks.push_back(row.framework);
  return frameworks;
}

ChangedJob RandomChangedJob(std::string_view framework, std::string_view family, std::mt19937_64& random) {
  const std::string setting(ChangeableOf(framework).setting);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    JobShape shape = RandomShape(framework, family, random);
    if (framework == "megatron" && shape.world.tensor == 1) shape.world.tensor = 2;
    const double octaves = 1 + static_cast<double>(random() % 33) / 16;
    const double factor = std::exp2(random() % 2 == 0 ? octaves : -octaves);
    const double now = std::max(std::stod(shape.settings.at(setting)) * factor, 1.0);
    ChangedJob job = TryChange(shape, setting, static_cast<int64_t>(now));
    if (job.changed == 0) continue;
    job.factor = factor;
    job.setting = setting;
    return job;
  }
  throw std::logic_error(fmt::format("{}: no job found whose sizes change with {}", framework, setting));
}

std::vector<std::string_view> FrameworksWithBuckets() {
  std::vector<std::string_view> frameworks;
  for (const Changeable& row : kChangeable) {
    if (row.unit != 0) frameworks.push_back(row.framework);
  }
  return frameworks;
}

ChangedJob JobWithBuckets(std::string_view framework, std::string_view family, int64_t before, int64_t after,
                          std::mt19937_64& random) {
  const Changeable& row = ChangeableOf(framework);
  const std::string setting(row.setting);
  for (int attempt = 0; attempt < kBucketAttempts; ++attempt) {
    JobShape shape = RandomShape(framework, family, random);
    shape.model = ModelFor(family, std::max(before, after), random);
    shape.settings[setting] = fmt::format("{}", before / row.unit);
    ChangedJob job = TryChange(shape, setting, after / row.unit);
    if (job.changed == 0) continue;
    job.factor = static_cast<double>(after) / static_cast<double>(before);
    job.setting = setting;
    return job;
  }
  return {};
}

ChangeReport JudgeChanges(const Policy& policy, const std::vector<CallSequence>& quiet,
                          const std::vector<ChangedJob>& changed) {
  // Names in the order of Detector.
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

std::vector<BucketResult> JudgeBuckets(const Policy& policy, std::string_view family, int jobs,
                                       std::mt19937_64& random) {
  std::vector<BucketResult> results;
  for (int64_t bytes = kSmallestBucket; bytes <= kLargestBucket; bytes *= 4) {
    BucketResult result;
    result.bytes = bytes;
    for (const std::string_view framework : FrameworksWithBuckets()) {
      for (int i = 0; i < jobs; ++i) {
        const bool grow = bytes == kLargestBucket || (bytes > kSmallestBucket && random() % 2 == 0);
        const ChangedJob job = JobWithBuckets(framework, family, grow ? bytes / 4 : bytes * 4, bytes, random);
        ++result.changes;
        result.seen_within_2 += SeenWithin(FlagsOf(policy, job.sequence), job, 2) ? 1 : 0;
      }
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace dynamiccl::agents
