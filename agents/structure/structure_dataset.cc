// SPDX-License-Identifier: Apache-2.0
// Tokens come from the same CallTokenizer that jobs use (src/policy), so training sees exactly what a job
// sees.
#include "agents/structure/structure_dataset.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "src/fingerprint/call_token.h"
#include "src/policy/structure_layout.h"

namespace dynamiccl::agents {
namespace {

// Pointers to one sequence's rows in the batch.
struct Rows {
  float* tokens;
  int64_t* roles;
  int64_t* phases;
  int64_t* stages;
  int64_t* next_collectives;
  int64_t* next_sizes;
};

// The class number of a label. "Unknown" becomes -1, which the loss ignores.
int64_t RoleClass(Role role) {
  return static_cast<int64_t>(role) - 1;
}
int64_t PhaseClass(Phase phase) {
  return static_cast<int64_t>(phase) - 1;
}
int64_t StageClass(ZeroStage stage) {
  return stage == ZeroStage::kUnknown ? -1 : static_cast<int64_t>(stage);
}

// Fills the targets of the state after calls[at], which is the last call of its group. `call` is the index of
// calls[at] in the batch.
void FillTargets(const std::vector<IssuedCall>& calls, size_t at, size_t call, const Rows& rows) {
  rows.stages[call] = StageClass(calls[at].labelled_stage);
  const uint64_t group = calls[at + 1].call.call_number;
  rows.phases[call] = PhaseClass(calls[at + 1].labelled_phase);
  for (size_t next = at + 1; next < calls.size() && calls[next].call.call_number == group; ++next) {
    const auto collective = static_cast<size_t>(calls[next].call.collective);
    const bool told_by_size =
        calls[next].call.collective == Collective::kAllReduce && calls[next].call.bytes <= kTinyBytes;
    if (collective >= kTunableCollectives || told_by_size) continue;
    int64_t& target = rows.roles[call * kTunableCollectives + collective];
    if (target < 0) target = RoleClass(calls[next].labelled_role);
  }
}

void FillSequence(const std::vector<IssuedCall>& calls, size_t begin, int length, const Rows& rows) {
  CallTokenizer tokenizer;
  for (size_t call = 0; call < static_cast<size_t>(length) && begin + call < calls.size(); ++call) {
    const size_t at = begin + call;
    const CallToken token = tokenizer.Next(calls[at].call);
    for (size_t f = 0; f < kTokenFeatures; ++f) {
      rows.tokens[call * kTokenFeatures + f] = static_cast<float>(token[f]) / kTokenOne;
    }
    if (at + 1 == calls.size()) continue;
    const CollectiveCall& next = calls[at + 1].call;
    rows.next_collectives[call] = NextCollectiveClass(next.collective);
    rows.next_sizes[call] = NextSizeClass(next.bytes);
    if (next.call_number != calls[at].call.call_number) FillTargets(calls, at, call, rows);
  }
}

}  // namespace

StructureBatch MakeBatch(const std::vector<CallSequence>& sequences, const std::vector<size_t>& begins,
                         int length) {
  const auto count = static_cast<int64_t>(sequences.size());
  StructureBatch batch;
  batch.tokens = at::zeros({count, length, kTokenFeatures});
  batch.roles = at::full({count, length, kTunableCollectives}, -1, at::kLong);
  batch.phases = at::full({count, length}, -1, at::kLong);
  for (at::Tensor* targets : {&batch.stages, &batch.next_collectives, &batch.next_sizes})
    *targets = at::full({count, length}, -1, at::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t calls = i * length;
    const Rows rows{batch.tokens.data_ptr<float>() + calls * kTokenFeatures,
                    batch.roles.data_ptr<int64_t>() + calls * kTunableCollectives,
                    batch.phases.data_ptr<int64_t>() + calls,
                    batch.stages.data_ptr<int64_t>() + calls,
                    batch.next_collectives.data_ptr<int64_t>() + calls,
                    batch.next_sizes.data_ptr<int64_t>() + calls};
    FillSequence(sequences[static_cast<size_t>(i)].calls, begins[static_cast<size_t>(i)], length, rows);
  }
  return batch;
}

}  // namespace dynamiccl::agents
