// SPDX-License-Identifier: Apache-2.0
// How soon a change of a job's bucket or batch size is seen, and how often one is seen that is none.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "agents/trigger/call_sequence.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// A job whose sizes change at one of its steps.
struct ChangedJob {
  CallSequence sequence;
  size_t changed = 0;   // index of the first call of a shape that the job did not issue before
  double factor = 1;    // of the setting that changed
  std::string setting;  // which one
};

// A random job of the framework with its buckets (or micro-batch) made 2 to 8 times larger or smaller after
// some steps. Frameworks without such a setting throw.
ChangedJob RandomChangedJob(std::string_view framework, std::string_view family, std::mt19937_64& random);
// Those with such a setting.
std::vector<std::string_view> ChangeableFrameworks();

// The same with buckets of so many bytes before and after the change, of a model that fills some of either.
ChangedJob JobWithBuckets(std::string_view framework, std::string_view family, int64_t before, int64_t after,
                          std::mt19937_64& random);
// Those whose buckets have a size.
std::vector<std::string_view> FrameworksWithBuckets();

struct DetectorResult {
  std::string detector;
  uint64_t quiet_calls = 0;
  uint64_t false_alarms = 0;
  uint64_t changes = 0;
  uint64_t seen_within_2 = 0;  // at the changed call or at the one after it
  uint64_t seen_within_16 = 0;

  double alarms_in_20000() const {
    return quiet_calls == 0 ? 0 : 20e3 * static_cast<double>(false_alarms) / static_cast<double>(quiet_calls);
  }
};

// Jobs whose buckets became so large or small, judged by the whole policy.
struct BucketResult {
  int64_t bytes = 0;
  uint64_t changes = 0;
  uint64_t seen_within_2 = 0;
};

// The network's surprise alone, new shapes alone, and both as the policy combines them.
struct ChangeReport {
  std::vector<DetectorResult> detectors;
  std::vector<BucketResult> buckets;  // 4 KiB to 64 MiB, every second power of two
};

// `policy` calibrated. `quiet`: jobs without a change, judged from their third step on.
ChangeReport JudgeChanges(const Policy& policy, const std::vector<CallSequence>& quiet,
                          const std::vector<ChangedJob>& changed);

// So many jobs of each framework for each size, from a quarter or four times of it.
std::vector<BucketResult> JudgeBuckets(const Policy& policy, std::string_view family, int jobs,
                                       std::mt19937_64& random);

}  // namespace dynamiccl::agents
