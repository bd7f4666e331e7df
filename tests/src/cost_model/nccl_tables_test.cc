// SPDX-License-Identifier: Apache-2.0
// The model against NVIDIA's own library: cost tables that NCCL handed to a tuner on described clusters. The
// data is not part of the source tree; DYNAMICCL_DATA names the folder that holds
// nccl-cost-tables/cost_<version>.csv.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/cost_model/nccl_model.h"

namespace dynamiccl {
namespace {

// The graphs that NCCL's search found, read off the bandwidths of its largest messages; all other cells test
// the formula.
struct Shape {
  const char* topology;
  int nodes;
  int ranks_per_node;
  int channels;
  AlgorithmGraph ring;
  AlgorithmGraph tree;
  bool tree_inside_node = false;
  bool same_channels = true;
};
constexpr AlgorithmGraph Graph(int channels, double bus) {
  return {channels, bus / channels, bus / channels};
}
const Shape kShapes[] = {
    {"h100", 1, 2, 24, Graph(24, 360), Graph(12, 540)},
    {"h100", 1, 4, 24, Graph(24, 360), Graph(12, 360)},
    {"h100", 1, 8, 24, Graph(24, 360), Graph(12, 360)},
    {"h100", 2, 1, 4, Graph(2, 48), Graph(2, 96), true},
    {"h100", 2, 8, 16, Graph(8, 384), Graph(8, 384), true, false},
    {"h100", 4, 8, 16, Graph(8, 384), Graph(8, 384), true, false},
    {"h100", 8, 8, 16, Graph(8, 384), Graph(8, 384), true, false},
    {"h100", 16, 8, 16, Graph(8, 384), Graph(8, 384), true, false},
    {"a100", 1, 2, 24, Graph(24, 240), Graph(12, 480)},
    {"a100", 1, 4, 24, Graph(24, 240), Graph(12, 240)},
    {"a100", 1, 8, 24, Graph(24, 240), Graph(12, 240)},
    {"a100", 2, 1, 2, Graph(1, 24), Graph(1, 48), true},
    {"l40s", 1, 2, 2, Graph(1, 20), Graph(1, 20)},
    {"l40s", 1, 4, 2, Graph(1, 20), Graph(1, 20)},
    {"l40s", 1, 8, 2, Graph(1, 20), Graph(1, 20)},
    {"l40s", 2, 8, 2, Graph(1, 20), Graph(1, 15)},
    {"l40s", 4, 8, 2, Graph(1, 20), Graph(1, 12)},
    {"l40s", 8, 8, 2, Graph(1, 20), Graph(1, 12)},
    {"l40s", 16, 8, 2, Graph(1, 20), Graph(1, 12)},
};

// Ampere's caps of tuning.cc; l40s has PCI instead of NVLink.
void SetAmpere(CostConstants& constants, int nodes, bool pci) {
  constexpr double kLLMax[3] = {87.7, 39.0, 20.4};
  constexpr double kTree[3] = {24.0, 23.6, 17.8};
  const auto scale = static_cast<size_t>(std::min(nodes, 3) - 1);
  constants.ll_max_bandwidth = kLLMax[scale];
  constants.tree_channel_bandwidth = kTree[scale];
  constants.ring_ll128_channel_bandwidth = constants.tree_ll128_channel_bandwidth = 20;
  if (!pci) return;
  constexpr double kPci[2][kProtocols] = {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}};
  std::copy(&kPci[0][0], &kPci[0][0] + 2 * kProtocols, &constants.intra_latency_us[0][0]);
}

NcclModelInput InputFor(const Shape& shape) {
  NcclModelInput input{.n_ranks = shape.nodes * shape.ranks_per_node,
                       .n_nodes = shape.nodes,
                       .channels = shape.channels,
                       .ring = shape.ring,
                       .tree = shape.tree,
                       .constants = NcclHopperConstants(shape.nodes)};
  input.tree_inside_node = shape.tree_inside_node;
  input.same_channels = shape.same_channels;
  const std::string topology = shape.topology;
  if (topology != "h100") SetAmpere(input.constants, shape.nodes, topology == "l40s");
  return input;
}

struct Column {
  const char* name;
  Algorithm algorithm;
  Protocol protocol;
};
constexpr Column kColumns[] = {{"TREE_LL_us", Algorithm::kTree, Protocol::kLL},
                               {"TREE_LL128_us", Algorithm::kTree, Protocol::kLL128},
                               {"TREE_SIMPLE_us", Algorithm::kTree, Protocol::kSimple},
                               {"RING_LL_us", Algorithm::kRing, Protocol::kLL},
                               {"RING_LL128_us", Algorithm::kRing, Protocol::kLL128},
                               {"RING_SIMPLE_us", Algorithm::kRing, Protocol::kSimple},
                               {"PAT_SIMPLE_us", Algorithm::kPat, Protocol::kSimple}};

using CsvRow = std::map<std::string, std::string>;

std::vector<std::string> SplitCommas(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

std::vector<CsvRow> ReadCsv(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = SplitCommas(line);
  std::vector<CsvRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = SplitCommas(line);
    CsvRow row;
    for (size_t i = 0; i < fields.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

struct Tally {
  int cells = 0;
  int within = 0;
  std::map<std::string, int> misses;  // by shape and column
};

void CompareRow(const CsvRow& row, const Shape& shape, Tally& tally) {
  const NcclModelInput input = InputFor(shape);
  const Collective collective = *ParseCollective(row.at("coll"));
  const uint64_t bytes = std::stoull(row.at("bytes"));
  for (const Column& column : kColumns) {
    const auto field = row.find(column.name);
    if (field == row.end() || field->second.empty()) continue;
    const double expected = std::stod(field->second);
    const double modelled = ModelTime(input, collective, bytes, 1, column.algorithm, column.protocol);
    ++tally.cells;
    const bool close = std::abs(modelled - expected) <= 0.001 * expected;
    tally.within += close;
    if (!close) {
      ++tally.misses[row.at("topo") + " " + row.at("nodes") + "x" + row.at("ranks_per_node") + " " +
                     row.at("coll") + " " + column.name];
    }
  }
}

Tally Compare(const std::vector<CsvRow>& rows, const std::string& topology) {
  Tally tally;
  for (const CsvRow& row : rows) {
    for (const Shape& shape : kShapes) {
      const bool same = row.at("topo") == shape.topology && std::stoi(row.at("nodes")) == shape.nodes &&
                        std::stoi(row.at("ranks_per_node")) == shape.ranks_per_node;
      if (same && topology == shape.topology) CompareRow(row, shape, tally);
    }
  }
  return tally;
}

class NcclTables : public testing::TestWithParam<const char*> {};

TEST_P(NcclTables, RingTreeAndPatAreReproducedWithinATenthOfAPercent) {
  const char* data = std::getenv("DYNAMICCL_DATA");
  if (data == nullptr) GTEST_SKIP() << "set DYNAMICCL_DATA to the folder that holds nccl-cost-tables";
  const auto rows = ReadCsv(std::string(data) + "/nccl-cost-tables/cost_" + GetParam() + ".csv");
  ASSERT_FALSE(rows.empty());
  for (const char* topology : {"h100", "a100", "l40s"}) {
    const Tally tally = Compare(rows, topology);
    std::printf("NCCL %s %s: %d of %d cells within 0.1 %%\n", GetParam(), topology, tally.within,
                tally.cells);
    for (const auto& [where, count] : tally.misses)
      std::printf("  %s: %d cells differ\n", where.c_str(), count);
    EXPECT_EQ(tally.within, tally.cells) << topology;
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclTables, testing::Values("2.28.9", "2.30.7"));

}  // namespace
}  // namespace dynamiccl
