// SPDX-License-Identifier: Apache-2.0
#include "tools/advise/seen_schedule.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Times of issue of the AllReduces that make up the job's gradients, by elements so far. Empty where the
// largest calls of the step are not the gradients, each once.
std::vector<GradientArrival> IssuedGradients(const AdvisedJob& job, const RecordedStep& step) {
  const auto operations = OperationsOf(job);
  if (!operations) return {};
  std::vector<int64_t> buckets;
  for (const WireOperation& operation : *operations)
    if (operation.role == Role::kGradientReduce) buckets.push_back(operation.elements);
  std::vector<GradientArrival> issued;
  double elements = 0;
  for (size_t i = 0; i < step.operations.size() && i < step.issued_ns.size(); ++i) {
    const WireOperation& operation = step.operations[i];
    if (operation.collective != Collective::kAllReduce || issued.size() == buckets.size() ||
        operation.elements != buckets[issued.size()])
      continue;
    elements += static_cast<double>(operation.elements);
    issued.push_back({elements, static_cast<double>(step.issued_ns[i])});
  }
  return issued.size() == buckets.size() ? issued : std::vector<GradientArrival>();
}

}  // namespace

SeenSchedule HostSchedule(const AdvisedJob& job, const RecordedStep& step) {
  SeenSchedule seen{.host_waits = job.framework == "fsdp2", .arrivals = {}};
  if (job.framework != "ddp") return seen;
  std::vector<GradientArrival> issued = IssuedGradients(job, step);
  if (issued.size() < 2 || issued.back().ns <= issued.front().ns) return seen;
  const double pace = (issued.back().ns - issued.front().ns) /
                      (issued.back().elements - issued.front().elements);
  const double begin = issued.front().ns - pace * issued.front().elements;
  for (GradientArrival& arrival : issued) arrival.ns -= begin;
  seen.arrivals = std::move(issued);
  return seen;
}

}  // namespace dynamiccl
