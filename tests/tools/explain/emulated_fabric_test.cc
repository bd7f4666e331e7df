// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/emulated_fabric.h"

#include <gtest/gtest.h>

#include "src/transport/topology.h"

namespace dynamiccl {
namespace {

TEST(EmulatedFabric, HasTheLinksOfTheTopologyAndARankForEachNode) {
  const Topology topology = *LoadTopology("two-nodes-ethernet");
  const auto found = EmulatedFabric("two-nodes-ethernet", 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->topology, "two-nodes-ethernet");
  const Fabric& fabric = found->model.fabric;
  EXPECT_EQ(fabric.n_ranks, 2);
  EXPECT_EQ(fabric.n_nodes, 2);
  EXPECT_EQ(fabric.max_channels, 8);
  EXPECT_EQ(fabric.inter, topology.inter->nominal());
  EXPECT_FALSE(found->model.gpu_corrections);
  EXPECT_EQ(EmulatedFabric("two-nodes-ethernet", 6)->model.fabric.n_ranks, 6);
}

TEST(EmulatedFabric, EveryPresetHasOne) {
  for (const TopologyPreset& preset : TopologyPresets())
    EXPECT_TRUE(EmulatedFabric(preset.name, 0)) << preset.name;
}

TEST(EmulatedFabric, AnUnknownNameIsAnErrorThatNamesThePresets) {
  const auto found = EmulatedFabric("nonesuch", 0);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().hint.find("two-nodes-ethernet"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl
