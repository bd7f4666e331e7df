// SPDX-License-Identifier: Apache-2.0
// Encodes a CostModelInput in NCCL's tuner constants and decodes it. tuner_constants.h has the layout.
#include "src/cost_model/tuner_constants.h"

#include <algorithm>
#include <cstring>

namespace dynamiccl {
namespace {

// Rows of hwLatencies, and the dimensions of the bandwidth tables: GPU generations by (one node, two nodes,
// more).
constexpr int kNvlink = 0;
constexpr int kPci = 1;
constexpr int kNet = 2;
constexpr int kCapabilities = 4;
constexpr int kScales = 3;
using Bandwidths = double[kCapabilities][kScales];

// A DGX H100, as NCCL finds it for rings: 16 channels, 360 GB/s of NVLink, and 48 GB/s for each NIC, with one
// NIC for each GPU.
constexpr int kAssumedChannels = 16;
constexpr double kAssumedIntraGbps = 360;
constexpr double kAssumedInterGbpsPerRank = 48;

// A channel count in foreign constants is limited to this, so that the conversion to an integer is defined.
constexpr double kMaxStatedChannels = 1 << 16;

void Fill(Bandwidths& table, double value) {
  for (auto& row : table) std::fill(std::begin(row), std::end(row), value);
}

bool RowsEqual(const Bandwidths& table) {
  for (int row = 1; row < kCapabilities; ++row) {
    if (std::memcmp(table[0], table[row], sizeof(table[0])) != 0) return false;
  }
  return true;
}

// Numbers of ranks and nodes by which the model can divide: both are at least 1, and no node is without a
// rank.
struct Shape {
  Shape(int ranks, int nodes) : n_ranks(std::max(1, ranks)), n_nodes(std::clamp(nodes, 1, n_ranks)) {}
  int n_ranks;
  int n_nodes;
};

Fabric CarriedFabric(const ncclTunerConstants_v5_t& constants, const Shape& shape) {
  const double(&links)[kScales] = constants.perChMaxNVLSTreeBws[0];
  const double(&latencies)[kProtocols] = constants.hwLatencies[kPci][0];
  return {.n_ranks = shape.n_ranks,
          .n_nodes = shape.n_nodes,
          .max_channels = static_cast<int32_t>(std::min(links[2], kMaxStatedChannels)),
          .intra = {.latency_us = latencies[0], .bandwidth_gbps = links[0]},
          .inter = {.latency_us = latencies[1], .bandwidth_gbps = links[1]}};
}

Fabric AssumedFabric(const CostConstants& constants, const Shape& shape) {
  const auto& [n_ranks, n_nodes] = shape;
  const int ranks_a_node = n_ranks / n_nodes;
  const auto ring = static_cast<size_t>(Algorithm::kRing);
  return {.n_ranks = n_ranks,
          .n_nodes = n_nodes,
          .max_channels = kAssumedChannels,
          .intra = {.latency_us = constants.intra_latency_us[ring][0], .bandwidth_gbps = kAssumedIntraGbps},
          .inter = {.latency_us = constants.inter_latency_us[ring][0],
                    .bandwidth_gbps = kAssumedInterGbpsPerRank * ranks_a_node}};
}

}  // namespace

ncclTunerConstants_v5_t ToTunerConstants(const CostModelInput& input) {
  static_assert(NCCL_NUM_ALGORITHMS == kAlgorithms && NCCL_NUM_PROTOCOLS == kProtocols);
  ncclTunerConstants_v5_t constants{};
  std::memcpy(constants.baseLatencies, input.constants.base_latency_us, sizeof(constants.baseLatencies));
  std::memcpy(constants.hwLatencies[kNvlink], input.constants.intra_latency_us,
              sizeof(constants.hwLatencies[kNvlink]));
  std::memcpy(constants.hwLatencies[kNet], input.constants.inter_latency_us,
              sizeof(constants.hwLatencies[kNet]));
  constants.hwLatencies[kPci][0][0] = input.fabric.intra.latency_us;
  constants.hwLatencies[kPci][0][1] = input.fabric.inter.latency_us;
  constants.hwLatencies[kPci][0][2] = input.gpu_corrections ? 0 : 1;
  Fill(constants.llMaxBws, input.constants.ll_max_bandwidth);
  Fill(constants.perChMaxRingLL128Bws, input.constants.ring_ll128_channel_bandwidth);
  Fill(constants.perChMaxTreeLL128Bws, input.constants.tree_ll128_channel_bandwidth);
  Fill(constants.perChMaxTreeBws, input.constants.tree_channel_bandwidth);
  for (auto& row : constants.perChMaxNVLSTreeBws) {
    row[0] = input.fabric.intra.bandwidth_gbps;
    row[1] = input.fabric.inter.bandwidth_gbps;
    row[2] = input.fabric.max_channels;
  }
  return constants;
}

bool CarriesFabric(const ncclTunerConstants_v5_t& constants) {
  return RowsEqual(constants.llMaxBws) && RowsEqual(constants.perChMaxTreeBws) &&
         RowsEqual(constants.perChMaxNVLSTreeBws) && constants.perChMaxNVLSTreeBws[0][2] >= 1;
}

CostConstants CostConstantsOf(const ncclTunerConstants_v5_t& constants, int capability, int scale) {
  CostConstants out;
  std::memcpy(out.base_latency_us, constants.baseLatencies, sizeof(out.base_latency_us));
  std::memcpy(out.intra_latency_us, constants.hwLatencies[kNvlink], sizeof(out.intra_latency_us));
  std::memcpy(out.inter_latency_us, constants.hwLatencies[kNet], sizeof(out.inter_latency_us));
  out.ll_max_bandwidth = constants.llMaxBws[capability][scale];
  out.ring_ll128_channel_bandwidth = constants.perChMaxRingLL128Bws[capability][scale];
  out.tree_ll128_channel_bandwidth = constants.perChMaxTreeLL128Bws[capability][scale];
  out.tree_channel_bandwidth = constants.perChMaxTreeBws[capability][scale];
  return out;
}

CostModelInput FromTunerConstants(const ncclTunerConstants_v5_t& constants, int n_ranks, int n_nodes) {
  const Shape shape(n_ranks, n_nodes);
  if (CarriesFabric(constants)) {
    return {.fabric = CarriedFabric(constants, shape),
            .constants = CostConstantsOf(constants, 0, 0),
            .gpu_corrections = constants.hwLatencies[kPci][0][2] == 0};
  }
  const int scale = std::min(shape.n_nodes, int{kScales}) - 1;
  CostModelInput input{.constants = CostConstantsOf(constants, kHopperRow, scale)};
  input.fabric = AssumedFabric(input.constants, shape);
  // Between nodes NCCL bounds LL by the processor's row. A tuner is not told the processor; the first row is
  // the lower and the usual one.
  if (shape.n_nodes > 1) input.constants.ll_max_bandwidth = constants.llMaxBws[0][scale];
  return input;
}

CostModelInput AssumedCostModel(int n_ranks, int n_nodes) {
  const Shape shape(n_ranks, n_nodes);
  const CostConstants constants = NcclHopperConstants(shape.n_nodes);
  return {.fabric = AssumedFabric(constants, shape), .constants = constants};
}

}  // namespace dynamiccl
