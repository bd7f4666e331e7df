// SPDX-License-Identifier: Apache-2.0
// The graphs and constants become the inputs of the formula (SetGraphs, SetConstants). Then every pair that
// the release offers is priced.
#include "src/cost_model/nccl_costs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/collective/legal_configs.h"
#include "src/cost_model/tuner_constants.h"

namespace dynamiccl {
namespace {

// The first releases with a changed rule. From 2.29 on, on Blackwell, the Tree's share by size holds for
// NVLSTree too.
constexpr int kNvlsTreeCorrected = 22900;
// From 2.31 on the choice is made in src/tuning.
constexpr int kRewritten = 23100;

// Compute capabilities times ten.
constexpr int kHopper = 90;
constexpr int kBlackwell = 100;
constexpr int kTreePattern = 3;  // NCCL_TOPO_PATTERN_TREE

// Rows of the tables in ncclTunerConstants_v5_t.
constexpr int kNvlinkRow = 0;
constexpr int kPciRow = 1;
constexpr int kAmdRow = 1;

// Returns the row of the GPU generation in the bandwidth tables: Volta, Ampere, Hopper, Blackwell.
int CapabilityRow(int architecture) {
  return architecture >= kBlackwell ? 3 : architecture >= kHopper ? 2 : architecture >= 80 ? 1 : 0;
}

// nvlsEfficiency of tuning.cc, by CapabilityRow.
constexpr double kNvlsEfficiency[] = {0, 0, 0.85, 0.74};

// Returns the graph that NCCL uses for the algorithm: PAT uses the Tree's, NVLSTree that of NVLS. If there is
// none, the returned graph has 0 channels.
const NcclGraph& GraphOf(const NcclCommunicatorFacts& facts, Algorithm algorithm) {
  static const NcclGraph kNone;
  const Algorithm key = algorithm == Algorithm::kPat        ? Algorithm::kTree
                        : algorithm == Algorithm::kNvlsTree ? Algorithm::kNvls
                                                            : algorithm;
  const auto found = facts.graphs.find(key);
  return found == facts.graphs.end() ? kNone : found->second;
}

// Returns the rank of a kind of path among all kinds, nearest first (PATH_* of topo.h). An unknown kind is
// the farthest.
int Distance(std::string_view type) {
  constexpr std::string_view kTypes[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                         "P2C", "PXN", "PHB", "SYS", "NET"};
  return static_cast<int>(std::find(std::begin(kTypes), std::end(kTypes), type) - std::begin(kTypes));
}

AlgorithmGraph PlainGraph(const NcclGraph& graph) {
  return {
      .channels = graph.channels, .intra_bandwidth = graph.intra_gbps, .inter_bandwidth = graph.inter_gbps};
}

AlgorithmGraph SlowerLinkOf(const NcclGraph& graph) {
  const double slower = std::min(graph.intra_gbps, graph.inter_gbps);
  return {.channels = graph.channels, .intra_bandwidth = slower, .inter_bandwidth = slower};
}

// Fills in the graphs. Ring and Tree both get the smaller of their channel numbers. From 2.31 on, the formula
// uses the slower of the links inside and between nodes in more places.
void SetGraphs(const NcclCommunicatorFacts& facts, NcclModelInput* input) {
  NcclGraph ring = GraphOf(facts, Algorithm::kRing);
  NcclGraph tree = GraphOf(facts, Algorithm::kTree);
  ring.channels = tree.channels = std::min(ring.channels, tree.channels);
  input->ring = PlainGraph(ring);
  input->tree = PlainGraph(tree);
  input->pat = PlainGraph(tree);
  input->nvls = PlainGraph(GraphOf(facts, Algorithm::kNvls));
  if (facts.release < kRewritten) return;
  input->pat = SlowerLinkOf(tree);
  if (facts.architecture < kBlackwell) return;
  input->tree = SlowerLinkOf(tree);
  if (facts.n_nodes > 1) input->ring.intra_bandwidth = ring.inter_gbps;
}

void SetConstants(const NcclCommunicatorFacts& facts, NcclModelInput* input) {
  const int scale = std::clamp(facts.n_nodes, 1, 3) - 1;
  const int capability = CapabilityRow(facts.architecture);
  input->constants = CostConstantsOf(facts.constants, capability, scale);
  // The GPU bounds LL within a node, and the processor bounds it between nodes.
  if (facts.n_nodes > 1)
    input->constants.ll_max_bandwidth = facts.constants.llMaxBws[facts.amd_cpu ? kAmdRow : 0][scale];
  for (int a = 0; a < kAlgorithms; ++a) {
    const bool nvlink = GraphOf(facts, static_cast<Algorithm>(a)).intra_type == "NVL";
    const auto& row = facts.constants.hwLatencies[nvlink ? kNvlinkRow : kPciRow][a];
    std::copy(std::begin(row), std::end(row), input->constants.intra_latency_us[a]);
  }
  input->nvls_tree_channel_bandwidth = facts.constants.perChMaxNVLSTreeBws[capability][scale];
  input->nvls_efficiency = kNvlsEfficiency[capability];
}

// LL128 needs 16-byte stores that arrive whole. NCCL trusts only the nearer kinds of paths to do that.
bool OffersLL128(const NcclCommunicatorFacts& facts, Algorithm algorithm) {
  const NcclGraph& graph = GraphOf(facts, algorithm);
  const int farthest = Distance(facts.architecture >= kHopper ? "PXN" : "PXB");
  return facts.architecture >= 70 && Distance(graph.inter_type) <= farthest &&
         Distance(graph.intra_type) <= Distance("NVB");
}

// From 2.31 on NCCL offers PAT between nodes of several ranks to a tuner, at a price at which it never takes
// PAT itself.
bool OffersPatToTuners(const NcclCommunicatorFacts& facts) {
  return facts.release >= kRewritten && facts.n_nodes > 1 && facts.n_ranks > facts.n_nodes &&
         GraphOf(facts, Algorithm::kNvls).channels == facts.n_ranks / facts.n_nodes;
}
// The cost at which PAT is offered to tuners only: FLT_MAX / 2.
constexpr float kTunersOnly = 1.70141173e38f;

// The inputs of NCCL's formula, with the rules of the communicator's release and GPU.
NcclModelInput NcclModelOf(const NcclCommunicatorFacts& facts) {
  NcclModelInput input{.n_ranks = facts.n_ranks, .n_nodes = facts.n_nodes, .channels = facts.channels};
  SetGraphs(facts, &input);
  SetConstants(facts, &input);
  const NcclGraph& ring = GraphOf(facts, Algorithm::kRing);
  input.graph_latency_us = ring.latency_us;
  input.net_overhead_us = facts.amd_cpu ? 2 : 1;
  input.tree_inside_node = GraphOf(facts, Algorithm::kTree).pattern == kTreePattern;
  input.same_channels = ring.same_channels;
  input.chunks_cost = true;
  input.plateau_factor = facts.architecture < 80 ? 1.9 : 1.4;
  const bool blackwell = facts.architecture >= kBlackwell;
  input.node_plateau = blackwell && facts.release >= kRewritten && ring.intra_type == "NVL";
  input.nvls_tree_corrected = blackwell && facts.release >= kNvlsTreeCorrected;
  return input;
}

}  // namespace

CostTable NcclCosts(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes) {
  const NcclModelInput model = NcclModelOf(facts);
  CostTable table;
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      const bool offered = protocol != Protocol::kLL128 || OffersLL128(facts, algorithm);
      const double cost = offered ? ModelTime(model, collective, bytes, 1, algorithm, protocol) : -1;
      table.microseconds[static_cast<size_t>(a)][static_cast<size_t>(p)] = static_cast<float>(cost);
    }
  }
  const bool gathers = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  if (gathers && OffersPatToTuners(facts))
    table.microseconds[static_cast<size_t>(Algorithm::kPat)][static_cast<size_t>(Protocol::kSimple)] =
        kTunersOnly;
  return table;
}

}  // namespace dynamiccl
