// SPDX-License-Identifier: Apache-2.0
// How soon a change of a job's bucket or batch size is noticed, and how often a change is reported by
// mistake.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "agents/structure/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// A job whose sizes change at one of its steps.
struct ChangedJob {
  CallSequence sequence;
  // Index of the first call of a shape that the job did not issue before.
  size_t changed = 0;
  // The factor by which the setting changed.
  double factor = 1;
  // The setting's name.
  std::string setting;
};

// A random job of the framework whose buckets (or micro-batch) become 2 to 8 times larger or smaller after
// some steps. Throws std::logic_error for frameworks without such a setting.
ChangedJob RandomChangedJob(std::string_view framework, std::string_view family, std::mt19937_64& random);
// The frameworks that have a setting of this kind.
std::vector<std::string_view> ChangeableFrameworks();

// Like RandomChangedJob, with buckets of `before` bytes and then of `after` bytes, on a model that fills
// several buckets of either size. `changed` is 0 if no job was found whose calls differ.
ChangedJob JobWithBuckets(std::string_view framework, std::string_view family, int64_t before, int64_t after,
                          std::mt19937_64& random);
// The frameworks whose buckets have a size.
std::vector<std::string_view> FrameworksWithBuckets();

// Counts of one detector.
struct DetectorResult {
  std::string detector;
  uint64_t quiet_calls = 0;
  uint64_t false_alarms = 0;
  uint64_t changes = 0;
  // Number of changes that were noticed at the changed call or at the one after it.
  uint64_t seen_within_2 = 0;
  uint64_t seen_within_16 = 0;

  double alarms_in_20000() const {
    return quiet_calls == 0 ? 0 : 20e3 * static_cast<double>(false_alarms) / static_cast<double>(quiet_calls);
  }
};

// Jobs whose buckets became this large or small, judged by the whole policy.
struct BucketResult {
  int64_t bytes = 0;
  uint64_t changes = 0;
  uint64_t seen_within_2 = 0;
};

// The network's surprise alone, new shapes alone, and both combined as in the policy.
struct ChangeReport {
  std::vector<DetectorResult> detectors;
  // One result for each size: every second power of two from 4 KiB to 64 MiB.
  std::vector<BucketResult> buckets;
};

// `policy` must be calibrated. `quiet` are jobs without a change, judged from their third step on.
ChangeReport JudgeChanges(const Policy& policy, const std::vector<CallSequence>& quiet,
                          const std::vector<ChangedJob>& changed);

// Makes `jobs` attempts for each framework and size. The size before the change is a quarter of it or four
// times as large. `family` must be a family of transformers.
std::vector<BucketResult> JudgeBuckets(const Policy& policy, std::string_view family, int jobs,
                                       std::mt19937_64& random);

}  // namespace dynamiccl::agents
