// SPDX-License-Identifier: Apache-2.0
// The presets keep the ratios of real fabrics and are scaled so that two cores can carry them: the emulated
// links must be slower than the copies that emulate them, or the links would not be what is measured.
//
// Real, one direction per rank: NVLink 4 about 150 GB/s and 1 us; InfiniBand NDR 50 GB/s and 4 us; 100 Gb/s
// Ethernet 12.5 GB/s and 15 us; 25 Gb/s Ethernet under load 3 GB/s and 50 us. Shared memory here moves about
// 6 GB/s between two ranks. Divided by about 30 in bandwidth, and with latencies long enough to be waited for
// without burning a core (above 20 us), that gives the numbers below.
#include "src/transport/topology.h"

namespace dynamiccl {
namespace {

Topology TwoNodes(double latency_us, double bandwidth_gbps) {
  Topology topology;
  topology.nodes = 2;
  topology.inter = LinkShape{.latency_us = latency_us, .bandwidth_gbps = bandwidth_gbps};
  return topology;
}

Topology FourNodes(double latency_us, double bandwidth_gbps) {
  Topology topology = TwoNodes(latency_us, bandwidth_gbps);
  topology.nodes = 4;
  return topology;
}

}  // namespace

const std::vector<TopologyPreset>& TopologyPresets() {
  static const auto* const presets = new std::vector<TopologyPreset>{
      {"one-node", "all ranks on one node, links as fast as shared memory", Topology{}},
      {"two-nodes-infiniband", "two nodes, 30 us and 1.5 GB/s between them", TwoNodes(30, 1.5)},
      {"two-nodes-ethernet", "two nodes, 100 us and 0.5 GB/s between them", TwoNodes(100, 0.5)},
      {"two-nodes-slow", "two nodes, 300 us and 0.15 GB/s between them", TwoNodes(300, 0.15)},
      {"four-nodes-infiniband", "four nodes, 30 us and 1.5 GB/s between them", FourNodes(30, 1.5)},
  };
  return *presets;
}

}  // namespace dynamiccl
