// SPDX-License-Identifier: Apache-2.0
// Packs the weights into the order in which the kernels read them, and chooses the kernels.
#include "src/policy/structure_network.h"

#include <algorithm>
#include <limits>

#include "src/policy/policy.h"

namespace dynamiccl {
namespace {

VectorSet Best() {
  VectorSet best = VectorSet::kPortable;
  for (const VectorSet set : kVectorSets) best = Runs(set) ? set : best;
  return best;
}

const StructureKernels& KernelsOf([[maybe_unused]] VectorSet set) {
#if defined(__x86_64__)
  if (set == VectorSet::kAvx2) return kAvx2Structure;
#endif
  return kPortableStructure;
}

void PackGates(const PolicyTensors& t, PackedStructure& packed) {
  for (int row = 0; row < kGateRows; ++row) {
    const int gate = row / kStructureHidden, unit = row % kStructureHidden;
    const int block = unit / kBlockUnits, row_in_block = gate * kBlockUnits + unit % kBlockUnits;
    for (int column = 0; column < kGateColumns; ++column)
      packed.gate_weights[block][column / 2][row_in_block][column % 2] = t.gate_weights[row][column];
    packed.gate_bias[block][row_in_block] = t.gate_bias[row];
  }
  packed.gate_shift = kTokenFractionBits + t.structure.gate_fraction_bits - kTableFractionBits;
}

// Returns the packed row that holds a row of the heads in the file.
int PackedHeadRow(int row) {
  int lane = row / kRoleClasses, at = row % kRoleClasses;
  if (row >= kPhaseRow) lane = kPhaseLane, at = row - kPhaseRow;
  if (row >= kStageRow) lane = kStageLane, at = row - kStageRow;
  if (row >= kNextCollectiveRow) lane = kNextCollectiveLane, at = row - kNextCollectiveRow;
  if (row >= kNextSizeRow) return kLaneRows + row - kNextSizeRow;
  return at * kHeadLanes + lane;
}

void PackHeads(const PolicyTensors& t, PackedStructure& packed) {
  std::fill_n(packed.head_bias, kPackedHeadRows, std::numeric_limits<int32_t>::min());
  for (int row = 0; row < kHeadRows; ++row) {
    const int to = PackedHeadRow(row);
    for (int column = 0; column < kStructureHidden; ++column)
      packed.head_weights[column / 2][to][column % 2] = t.head_weights[row][column];
    packed.head_bias[to] = t.head_bias[row];
  }
  std::fill_n(packed.margin, kHeadLanes, t.structure.role_margin);
  packed.margin[kPhaseLane] = t.structure.phase_margin;
  packed.margin[kStageLane] = t.structure.stage_margin;
  packed.margin[kNextCollectiveLane] = 1;
  packed.head_shift = t.structure.head_fraction_bits;
}

}  // namespace

bool Runs(VectorSet set) {
#if defined(__x86_64__)
  if (set == VectorSet::kAvx2) return __builtin_cpu_supports("avx2");
#endif
  return set == VectorSet::kPortable;
}

StructureNetwork::StructureNetwork(const PolicyTensors& tensors) : StructureNetwork(tensors, Best()) {}

StructureNetwork::StructureNetwork(const PolicyTensors& tensors, VectorSet set)
    : kernels_(&KernelsOf(set)), thresholds_(tensors.structure) {
  PackGates(tensors, packed_);
  PackHeads(tensors, packed_);
  std::copy_n(tensors.sigmoid_table, kTableEntries, packed_.sigmoid_table);
  std::copy_n(tensors.tanh_table, kTableEntries, packed_.tanh_table);
}

StructureLogits StructureNetwork::Logits(const LstmState& state) const {
  alignas(64) int32_t packed[kPackedHeadRows];
  kernels_->logits(packed_, state, packed);
  StructureLogits logits;
  for (int row = 0; row < kHeadRows; ++row) logits[static_cast<size_t>(row)] = packed[PackedHeadRow(row)];
  return logits;
}

}  // namespace dynamiccl
