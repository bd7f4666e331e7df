// SPDX-License-Identifier: Apache-2.0
// Searches the four choices. If the batch may grow, it also tries larger batches by doubling. The formulas
// are in the header.
#include "zero_workloads/zero_r/checkpoint_choice.h"

#include <algorithm>
#include <vector>

namespace dynamiccl::zero {
namespace {

// Number of bytes in a GB, the unit of the messages.
constexpr double kGb = 1e9;
// A block's matrices have 12 hidden^2 elements. As in the ZeRO paper, only products with these matrices count
// as compute.
constexpr double kMatricesOfBlock = 12;
// Passes over a block in a step with checkpoints: forward, recomputation, and backward, which counts as two.
constexpr double kPasses = 4;

// Choices in the order of increasing extra work, which is also the order of decreasing memory.
constexpr Checkpoints kInOrderOfCost[] = {Checkpoints::kNone, Checkpoints::kEveryBlock,
                                          Checkpoints::kPartitioned, Checkpoints::kPartitionedCpu};

// A choice of checkpoints that fits into memory, and its time.
struct Candidate {
  Checkpoints checkpoints;
  int64_t batch;
  // Seconds of a step, divided by the number of its sequences.
  double seconds;
};

double ElementBytes(const EstimateSettings& run) {
  return run.dtype == "fp32" ? 4 : 2;
}

bool Fits(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch) {
  return MemoryOf(question, checkpoints, batch) <= question.hardware.memory_bytes;
}

// The largest batch that fits, found by doubling. If the batch may not grow, the batch of the question.
int64_t BatchFor(const CheckpointQuestion& question, Checkpoints checkpoints) {
  // The largest batch that is tried. It is far above any batch in practice, and ends the search where a batch
  // takes almost no memory.
  constexpr int64_t kMax = 1 << 20;
  int64_t batch = question.run.batch;
  while (question.batch_may_grow && batch < kMax && Fits(question, checkpoints, 2 * batch)) batch *= 2;
  return batch;
}

std::vector<Candidate> CandidatesOf(const CheckpointQuestion& question) {
  std::vector<Candidate> candidates;
  for (const Checkpoints checkpoints : kInOrderOfCost) {
    if (checkpoints == Checkpoints::kPartitioned && question.run.tensor_parallel == 1) continue;
    if (!Fits(question, checkpoints, question.run.batch)) continue;
    const int64_t batch = BatchFor(question, checkpoints);
    candidates.push_back(
        {checkpoints, batch, StepTimeOf(question, checkpoints, batch).total() / static_cast<double>(batch)});
  }
  return candidates;
}

std::string Reason(const CheckpointQuestion& question, const CheckpointChoice& choice) {
  const double memory = MemoryOf(question, choice.checkpoints, choice.batch);
  std::string text =
      fmt::format("activation checkpoints: {}, {:.3g} of {:.3g} GB with {} sequences a rank",
                  Name(choice.checkpoints), memory / kGb, question.hardware.memory_bytes / kGb, choice.batch);
  if (!choice.fits) text += "; by this estimate nothing fits, and this takes least";
  for (const Checkpoints other : kInOrderOfCost) {
    if (other >= choice.checkpoints) break;
    if (other == Checkpoints::kPartitioned && question.run.tensor_parallel == 1) continue;
    text +=
        fmt::format("; {} would take {:.3g} GB", Name(other), MemoryOf(question, other, choice.batch) / kGb);
  }
  const StepTime time = StepTimeOf(question, choice.checkpoints, choice.batch);
  if (choice.checkpoints == Checkpoints::kPartitionedCpu) {
    text += fmt::format("; {:.0f} operations a byte moved: moving takes {:.1f} % of computing",
                        ArithmeticIntensity(*question.run.shape, ElementBytes(question.run)),
                        100 * time.host / time.compute);
  }
  return text;
}

}  // namespace

double StepTime::total() const {
  return std::max(compute, data) + tensor + host;
}

StepTime StepTimeOf(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch) {
  const EstimateSettings& run = question.run;
  const TransformerShape& shape = *run.shape;
  const bool recomputes = checkpoints != Checkpoints::kNone;
  const bool divides = run.tensor_parallel > 1 && checkpoints >= Checkpoints::kPartitioned;
  const auto split = static_cast<double>(run.tensor_parallel);
  const double parameters = ParametersOf(run) / split;
  const double tokens = static_cast<double>(batch * shape.sequence);
  const double inputs = tokens * static_cast<double>(shape.hidden * shape.layers) * ElementBytes(run);
  // The messages of tensor parallelism, in units of a block's input: the 6 or 4 AllReduces of a block, and
  // the AllGather of a partitioned checkpoint. An AllReduce moves its message twice (a ReduceScatter and an
  // AllGather).
  const double messages = run.tensor_parallel == 1 ? 0 : 2.0 * (recomputes ? 6 : 4) + (divides ? 1 : 0);
  const double moved = checkpoints == Checkpoints::kPartitionedCpu ? 2 * inputs / split : 0;
  const double data = CommunicationVolume(question.stage) * parameters * ElementBytes(run) *
                      static_cast<double>(run.ranks - 1) / static_cast<double>(run.ranks);
  const Hardware& hardware = question.hardware;
  return {.compute = (recomputes ? 8 : 6) * parameters * tokens / hardware.flops,
          .tensor = messages * inputs / hardware.tensor_bandwidth,
          .data = data / hardware.data_bandwidth,
          .host = moved / hardware.host_bandwidth};
}

double MemoryOf(const CheckpointQuestion& question, Checkpoints checkpoints, int64_t batch) {
  EstimateSettings run = question.run;
  run.checkpoints = checkpoints;
  run.batch = batch;
  return EstimateOf(run)[static_cast<size_t>(question.stage)].total();
}

double ArithmeticIntensity(const TransformerShape& shape, double element_bytes) {
  return kPasses * 2 * kMatricesOfBlock * static_cast<double>(shape.hidden) / element_bytes;
}

CheckpointChoice ChooseCheckpoints(const CheckpointQuestion& question) {
  const std::vector<Candidate> candidates = CandidatesOf(question);
  CheckpointChoice choice{Checkpoints::kPartitionedCpu, question.run.batch, false, {}};
  const auto best =
      std::min_element(candidates.begin(), candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  if (best != candidates.end()) choice = {best->checkpoints, best->batch, true, {}};
  choice.reason = Reason(question, choice);
  return choice;
}

}  // namespace dynamiccl::zero
