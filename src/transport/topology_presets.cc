// SPDX-License-Identifier: Apache-2.0
// The built-in topologies and the reasons for their numbers.
//
// The presets keep the ratios of real fabrics but are slower, so that two cores can emulate them. An emulated
// link must be slower than the copies that emulate it. Otherwise a measurement would show the copies and not
// the link.
//
// Real links, in one direction: NVLink 4 has about 150 GB/s to one peer, out of a GPU's 450 GB/s (NVIDIA's
// H100 data sheet: 900 GB/s both ways over 18 links). InfiniBand NDR has 50 GB/s (400 Gb/s, ConnectX-7 data
// sheet). 100 Gb/s Ethernet has 12.5 GB/s, and 25 Gb/s Ethernet under load 3 GB/s. The latencies of the wire
// alone are 1 us, 4 us, 15 us and 50 us. They are derived from NCCL's cost model for protocol Simple
// (src/graph/tuning.cc), which has 3.4 to 4 us over NVLink and 14 us over a network.
//
// Shared memory here moves about 6 GB/s between two ranks. The bandwidths are therefore divided by about 30.
// The latencies are 20 us and more, long enough to wait for without keeping a core busy. The numbers below
// follow: bandwidths have the ratios 10 : 3 : 1 : 0.3, latencies 0.2 : 0.3 : 1 : 3.
//
// The second group of presets has nominal links like those of the first group, but their condition is worse.
// A cost model that knows only one latency and one bandwidth for each class of links sees no difference
// between the two groups.
// - A link that fell back from four lanes to one keeps a quarter of its bandwidth. PCIe and InfiniBand links
//   usually degrade in this way.
// - Two jobs that share an uplink leave each other half of the link.
// - Bursts of 5 ms at 90 % every 20 ms are another job's gradient exchange, in a training step whose duration
//   is scaled like the bandwidths.
#include "src/transport/topology.h"

namespace dynamiccl {
namespace {

constexpr LinkShape kNvlink{.latency_us = 20, .bandwidth_gbps = 5};
constexpr LinkShape kInfiniband{.latency_us = 30, .bandwidth_gbps = 1.5};
constexpr LinkShape kEthernet{.latency_us = 100, .bandwidth_gbps = 0.5};
constexpr LinkShape kSlow{.latency_us = 300, .bandwidth_gbps = 0.15};

// Returns `nodes` nodes with links of this shape between them and shared memory inside each.
Topology Nodes(int nodes, const LinkShape& inter) {
  Topology topology;
  topology.nodes = nodes;
  topology.inter = inter;
  return topology;
}

// Returns two nodes over kInfiniband, with traffic of other jobs on the link.
Topology Loaded(double load, double burst_on_ms, double burst_off_ms) {
  Topology topology = Nodes(2, kInfiniband);
  topology.inter->load = load;
  topology.inter->burst_on_ms = burst_on_ms;
  topology.inter->burst_off_ms = burst_off_ms;
  return topology;
}

// Returns a copy in which the links of `target` have a quarter of their bandwidth.
Topology Degraded(Topology topology, const LinkTarget& target) {
  LinkOverride override{.target = target};
  for (size_t i = 0; i < kLinkFields; ++i) {
    if (LinkFieldTable()[i].value == &LinkShape::degrade) override.change.Set(i, 0.25);
  }
  topology.overrides.push_back(override);
  return topology;
}

// Returns a topology with two rails that together have the bandwidth of kInfiniband.
Topology TwoRails() {
  Topology topology = Nodes(2, kInfiniband);
  topology.rails = 2;
  topology.inter->bandwidth_gbps /= 2;
  return topology;
}

// Returns two nodes over kInfiniband with three ranks on one and one rank on the other.
Topology Asymmetric() {
  Topology topology = Nodes(2, kInfiniband);
  topology.ranks_per_node = {3, 1};
  return topology;
}

Topology OneNvlinkNode() {
  Topology topology;
  topology.intra = kNvlink;
  return topology;
}

}  // namespace

const std::vector<TopologyPreset>& TopologyPresets() {
  static const auto* const presets = new std::vector<TopologyPreset>{
      {"one-node", "all ranks on one node, links as fast as shared memory", Topology{}},
      {"one-node-nvlink", "one node, 20 us and 5 GB/s between every two ranks", OneNvlinkNode()},
      {"two-nodes-nvlink", "two nodes, 20 us and 5 GB/s between them", Nodes(2, kNvlink)},
      {"two-nodes-infiniband", "two nodes, 30 us and 1.5 GB/s between them", Nodes(2, kInfiniband)},
      {"two-nodes-ethernet", "two nodes, 100 us and 0.5 GB/s between them", Nodes(2, kEthernet)},
      {"two-nodes-slow", "two nodes, 300 us and 0.15 GB/s between them", Nodes(2, kSlow)},
      {"four-nodes-infiniband", "four nodes, 30 us and 1.5 GB/s between them", Nodes(4, kInfiniband)},
      {"four-nodes-ethernet", "four nodes, 100 us and 0.5 GB/s between them", Nodes(4, kEthernet)},

      {"two-nodes-slow-rail", "two-nodes-infiniband as two rails, one of them at a quarter",
       Degraded(TwoRails(), {.rail = 1})},
      {"two-nodes-steady-load", "two-nodes-infiniband, half of it taken by strangers", Loaded(0.5, 0, 0)},
      {"two-nodes-bursty-load", "two-nodes-infiniband, strangers take 90 % in bursts of 5 ms every 20 ms",
       Loaded(0.9, 5, 15)},
      {"asymmetric-nodes", "two-nodes-infiniband with three ranks on one node and one on the other",
       Asymmetric()},
      {"four-nodes-degraded-link", "four-nodes-infiniband, the link of nodes 1 and 2 at a quarter",
       Degraded(Nodes(4, kInfiniband), {.from = 1, .to = 2, .both = true})},
      {"four-nodes-slow-node", "four-nodes-infiniband, all links of node 3 at a quarter",
       Degraded(Nodes(4, kInfiniband), {.from = 3, .both = true})},
  };
  return *presets;
}

}  // namespace dynamiccl
