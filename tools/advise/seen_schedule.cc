// SPDX-License-Identifier: Apache-2.0
#include "tools/advise/seen_schedule.h"

#include <algorithm>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Returns how many elements of its gradients the recorded job had computed at the issue of each AllReduce,
// with the time in nanoseconds. Empty unless the step issues each gradient bucket of the job exactly once.
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

// Returns the recorded time of calls with this collective and size; 0: the trace has none.
double TimeNs(const RecordedStep& step, const WireOperation& call) {
  for (const TimedCell& cell : step.times)
    if (cell.collective == call.collective && cell.bytes == call.Bytes()) return cell.us * 1e3;
  return 0;
}

// Returns the nanoseconds that the host takes to unpack one gathered number. The host unpacks between the end
// of a ReduceScatter and the next AllGather.
double UnpackNs(const RecordedStep& step) {
  std::vector<double> each;
  for (size_t i = 0; i + 1 < step.operations.size() && i + 1 < step.issued_ns.size(); ++i) {
    const WireOperation &call = step.operations[i], &next = step.operations[i + 1];
    if (call.collective != Collective::kReduceScatter || next.collective != Collective::kAllGather) continue;
    const double gap = static_cast<double>(step.issued_ns[i + 1] - step.issued_ns[i]) - TimeNs(step, call);
    each.push_back(std::max(0.0, gap) / static_cast<double>(std::max<int64_t>(1, next.elements)));
  }
  return each.empty() ? 0 : Median(each);
}

}  // namespace

SeenSchedule HostSchedule(const AdvisedJob& job, const RecordedStep& step) {
  SeenSchedule seen{.arrivals = {}, .host_share = kHostShare};
  if (job.framework == "fsdp2") {
    seen.host_waits = true;
    seen.unpack_ns = UnpackNs(step);
  }
  if (job.framework != "ddp") return seen;
  std::vector<GradientArrival> issued = IssuedGradients(job, step);
  if (issued.size() < 2 || issued.back().ns <= issued.front().ns) return seen;
  const double pace =
      (issued.back().ns - issued.front().ns) / (issued.back().elements - issued.front().elements);
  const double begin = issued.front().ns - pace * issued.front().elements;
  for (GradientArrival& arrival : issued) arrival.ns -= begin;
  // Adds no share for hostccl's threads: the recorded times of issue already contain what they took from the
  // computation.
  seen.host_share = 0;
  seen.arrivals = std::move(issued);
  return seen;
}

}  // namespace dynamiccl
