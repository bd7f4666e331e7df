// SPDX-License-Identifier: Apache-2.0
#include "agents/trigger/call_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "traces/format/trace_calls.h"
#include "traces/generators/zero_stages.h"

namespace dynamiccl::agents {
namespace {

// As the token's flag: such calls carry flags, norms and losses, whose size does not grow with the model.
constexpr uint64_t kScalarBytes = 256;

int64_t Uniform(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}
bool Coin(std::mt19937_64& random, int one_in) {
  return random() % static_cast<uint64_t>(one_in) == 0;
}
// 2^u with u uniform, in sixteenths of an octave.
double LogUniform(std::mt19937_64& random, double low, double high) {
  const auto steps = static_cast<int64_t>((high - low) * 16);
  return std::exp2(low + static_cast<double>(Uniform(random, 0, steps)) / 16);
}

bool IsLabelled(const CallSequence& sequence) {
  return std::any_of(sequence.calls.begin(), sequence.calls.end(), [](const IssuedCall& issued) {
    return issued.labelled_role != Role::kUnknown || issued.labelled_stage != ZeroStage::kUnknown;
  });
}

ZeroWorkload RandomWorkload(int stage, std::mt19937_64& random) {
  ZeroWorkload workload;
  workload.stage = stage;
  workload.layers = static_cast<int>(Uniform(random, 1, 12));
  workload.hidden = static_cast<int64_t>(LogUniform(random, 5, 13)) / 16 * 16;
  workload.sequence = int64_t{1} << Uniform(random, 5, 11);
  workload.vocabulary = Coin(random, 2) ? 256 : int64_t{1} << Uniform(random, 8, 16);
  workload.world = static_cast<int>(Coin(random, 2) ? 1 << Uniform(random, 1, 6) : Uniform(random, 2, 16));
  workload.data_type = Coin(random, 3) ? DataType::kBfloat16 : DataType::kFloat32;
  // One to 512 buckets for the blocks' 12 h^2 parameters each.
  const int64_t elements = 12 * workload.hidden * workload.hidden * workload.layers;
  const auto model_bytes =
      static_cast<double>(elements * static_cast<int64_t>(ElementBytes(workload.data_type)));
  workload.bucket_bytes = static_cast<int64_t>(model_bytes / LogUniform(random, -1, 9)) + 1;
  workload.steps = 4;
  workload.micro_steps = Coin(random, 4) ? static_cast<int>(Uniform(random, 2, 4)) : 1;
  workload.prefetch = !Coin(random, 3);
  workload.gather_before_reduce = Coin(random, 2);
  workload.overflow_flag = Coin(random, 3);
  workload.broadcast_first = Coin(random, 4);
  return workload;
}

}  // namespace

std::vector<CallSequence> SequencesOf(const Trace& trace, const std::string& name) {
  // By communicator: the lowest rank that recorded it.
  std::map<uint64_t, std::pair<int32_t, CallSequence>> by_communicator;
  for (const TraceSection& section : trace.sections) {
    std::map<uint64_t, CallSequence> own;
    for (const TraceCall& call : CallsOf(section).calls) {
      own[call.issued.call.communicator].calls.push_back(call.issued);
    }
    for (auto& [id, sequence] : own) {
      const int32_t rank = sequence.calls.front().rank;
      const auto known = by_communicator.find(id);
      if (known != by_communicator.end() && known->second.first <= rank) continue;
      by_communicator[id] = {rank, std::move(sequence)};
    }
  }
  std::vector<CallSequence> sequences;
  for (auto& [id, entry] : by_communicator) {
    CallSequence& sequence = entry.second;
    if (!IsLabelled(sequence)) continue;
    std::stable_sort(sequence.calls.begin(), sequence.calls.end(),
                     [](const IssuedCall& a, const IssuedCall& b) {
                       return std::tie(a.call.call_number, a.call.index_in_group) <
                              std::tie(b.call.call_number, b.call.index_in_group);
                     });
    sequence.name = fmt::format("{} communicator {:x}", name, id);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::vector<CallSequence> GenerateSequences(int count, std::mt19937_64& random) {
  std::vector<CallSequence> sequences;
  for (int i = 0; i < count; ++i) {
    const ZeroWorkload w = RandomWorkload(i % 4, random);
    sequences.push_back({fmt::format("generated stage {} layers {} hidden {} world {} bucket {}", w.stage,
                                     w.layers, w.hidden, w.world, w.bucket_bytes),
                         GenerateZeroCalls(w)});
  }
  return sequences;
}

CallSequence Window(const CallSequence& sequence, size_t begin, size_t length) {
  const auto first =
      sequence.calls.begin() + static_cast<std::ptrdiff_t>(std::min(begin, sequence.calls.size()));
  const auto count = std::min(length, static_cast<size_t>(sequence.calls.end() - first));
  return {sequence.name, {first, first + static_cast<std::ptrdiff_t>(count)}};
}

CallSequence Rescale(CallSequence scaled, std::mt19937_64& random) {
  const double factor = LogUniform(random, -4, 6);
  const auto ranks = static_cast<int32_t>(1 << Uniform(random, 1, 6));
  const bool half = Coin(random, 3);
  for (IssuedCall& issued : scaled.calls) {
    CollectiveCall& call = issued.call;
    call.n_ranks = ranks;
    if (call.bytes <= kScalarBytes) continue;
    call.bytes = std::max<uint64_t>(
        static_cast<uint64_t>(static_cast<double>(call.bytes) * factor) & ~uint64_t{15}, 2 * kScalarBytes);
    if (half && call.data_type == DataType::kFloat32) call.data_type = DataType::kBfloat16;
  }
  return scaled;
}

}  // namespace dynamiccl::agents
