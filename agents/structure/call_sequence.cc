// SPDX-License-Identifier: Apache-2.0
// Extracts sequences from traces, and varies them (Rescale, Reinvent). All random choices come from
// random_draws.h or from the random engine directly, so that a seed gives the same data on every machine.
#include "agents/structure/call_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "agents/structure/random_draws.h"
#include "src/fingerprint/call_token.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl::agents {
namespace {

bool IsLabelled(const CallSequence& sequence) {
  return std::any_of(sequence.calls.begin(), sequence.calls.end(), [](const IssuedCall& issued) {
    return issued.labelled_role != Role::kUnknown || issued.labelled_stage != ZeroStage::kUnknown;
  });
}

// True for the calls that a job shows its structure agent (CountGroup in plugin/interpose/call_stream.cc).
// Agents see no sends and receives, because only some of the ranks issue them.
bool IsSeenByAgent(const CollectiveCall& call) {
  return static_cast<int>(call.collective) < kTunableCollectives;
}

using RoleCollectives = std::array<Collective, kLabelledRoles>;

// Draws, for each role that Reinvent changes, the collective that the role's calls become. The other entries
// are not used.
RoleCollectives RandomCollectives(std::mt19937_64& random) {
  // The collectives with which gradients may be summed.
  constexpr std::array kReduces = {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce};
  const auto gather = [&] { return Coin(random, 3) ? Collective::kBroadcast : Collective::kAllGather; };
  RoleCollectives collectives{};
  collectives[static_cast<size_t>(Role::kGradientReduce)] = kReduces[random() % kReduces.size()];
  collectives[static_cast<size_t>(Role::kParameterGather)] = gather();
  collectives[static_cast<size_t>(Role::kPostStepGather)] = gather();
  return collectives;
}

// True if the calls exchange activations among tensor-parallel ranks. Such a communicator has only as many
// ranks as one node or a few nodes.
bool ExchangesActivations(const CallSequence& sequence) {
  return std::any_of(sequence.calls.begin(), sequence.calls.end(),
                     [](const IssuedCall& issued) { return issued.labelled_role == Role::kActivation; });
}

// True for calls whose collective Reinvent changes: gradients and parameters above the size of scalars.
bool IsReinvented(const IssuedCall& issued) {
  const Role role = issued.labelled_role;
  return issued.call.bytes > kTinyBytes &&
         (role == Role::kGradientReduce || role == Role::kParameterGather || role == Role::kPostStepGather);
}

}  // namespace

std::vector<CallSequence> AllSequencesOf(const Trace& trace, const std::string& name) {
  // For each communicator: the lowest rank that recorded calls of it, and the calls of this rank.
  std::map<uint64_t, std::pair<int32_t, CallSequence>> by_communicator;
  for (const TraceSection& section : trace.sections) {
    std::map<uint64_t, CallSequence> own;
    // The step of the last call, for each communicator.
    std::map<uint64_t, int64_t> steps;
    for (const TraceCall& call : CallsOf(section).calls) {
      if (!IsSeenByAgent(call.issued.call)) continue;
      const uint64_t id = call.issued.call.communicator;
      CallSequence& sequence = own[id];
      if (call.step >= 0 && (!steps.contains(id) || steps[id] != call.step))
        sequence.step_begins.push_back(sequence.calls.size());
      if (call.step >= 0) steps[id] = call.step;
      sequence.calls.push_back(call.issued);
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

std::vector<CallSequence> SequencesOf(const Trace& trace, const std::string& name) {
  std::vector<CallSequence> sequences = AllSequencesOf(trace, name);
  std::erase_if(sequences, [](const CallSequence& sequence) { return !IsLabelled(sequence); });
  return sequences;
}

CallSequence Reinvent(CallSequence sequence, std::mt19937_64& random) {
  const RoleCollectives collectives = RandomCollectives(random);
  if (Coin(random, 3)) {
    std::erase_if(sequence.calls, [](const IssuedCall& issued) {
      return issued.labelled_role == Role::kScalar && issued.call.group_size == 1;
    });
  }
  for (IssuedCall& issued : sequence.calls) {
    issued.labelled_stage = ZeroStage::kUnknown;
    if (IsReinvented(issued)) issued.call.collective = collectives[static_cast<size_t>(issued.labelled_role)];
  }
  return sequence;
}

CallSequence AsQuestions(CallSequence sequence) {
  uint64_t number = 0;
  for (IssuedCall& issued : sequence.calls) {
    issued.call = CallOfQuestion(issued.call.collective, issued.call.bytes, issued.call.n_ranks);
    issued.call.call_number = number++;
  }
  return sequence;
}

CallSequence Window(const CallSequence& sequence, size_t begin, size_t length) {
  const auto first =
      sequence.calls.begin() + static_cast<std::ptrdiff_t>(std::min(begin, sequence.calls.size()));
  const auto count = std::min(length, static_cast<size_t>(sequence.calls.end() - first));
  CallSequence window;
  window.name = sequence.name;
  window.calls.assign(first, first + static_cast<std::ptrdiff_t>(count));
  return window;
}

CallSequence Rescale(CallSequence scaled, std::mt19937_64& random) {
  const double factor = LogUniform(random, -4, 6);
  const auto ranks = static_cast<int32_t>(1 << Uniform(random, 1, ExchangesActivations(scaled) ? 4 : 7));
  const bool half = Coin(random, 3);
  for (IssuedCall& issued : scaled.calls) {
    CollectiveCall& call = issued.call;
    call.n_ranks = ranks;
    if (call.bytes <= kTinyBytes) continue;
    call.bytes = std::max<uint64_t>(
        static_cast<uint64_t>(static_cast<double>(call.bytes) * factor) & ~uint64_t{15}, 2 * kTinyBytes);
    if (half && call.data_type == DataType::kFloat32) call.data_type = DataType::kBfloat16;
  }
  return scaled;
}

}  // namespace dynamiccl::agents
