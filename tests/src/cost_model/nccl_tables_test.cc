// SPDX-License-Identifier: Apache-2.0
// Compares the model with cost tables and choices of NVIDIA's own library that another person measured on
// described clusters. They cover 256 bytes to 4 GiB and worlds from 1x2 to 16x8. The data are not in the
// source tree. DYNAMICCL_DATA names the folder with nccl-cost-tables/cost_<version>.csv. The data lack the
// graphs, which come from the committed data set for the same kinds of machines.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cost_model/nccl_agreement.h"
#include "tests/src/cost_model/nccl_facts.h"
#include "traces/format/nccl_choices_file.h"

namespace dynamiccl {
namespace {

const std::map<std::string, std::string> kMachineOf = {
    {"h100", "dgx_h100"}, {"a100", "hgx_a100"}, {"b200", "dgx_b200"}, {"l40s", "pcie_l40s"}};

using CsvRow = std::map<std::string, std::string>;

std::vector<std::string> SplitCommas(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line.substr(0, line.find('\r')));
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

// Reads a column name such as "NVLS_TREE_SIMPLE_us". Returns nothing for a column of another kind.
std::optional<NcclPair> PairOfColumn(const std::string& name) {
  if (!name.ends_with("_us")) return std::nullopt;
  const std::string pair = name.substr(0, name.size() - 3);
  const size_t bar = pair.rfind('_');
  const auto algorithm = ParseAlgorithm(pair.substr(0, bar));
  const auto protocol = ParseProtocol(pair.substr(bar + 1));
  if (!algorithm || !protocol) return std::nullopt;
  return NcclPair{*algorithm, *protocol};
}

// Returns the row as a table of one call.
NcclCalls CallsOf(const CsvRow& row) {
  NcclCalls calls;
  NcclCall call{.bytes = std::stoull(row.at("bytes"))};
  for (const auto& [name, value] : row) {
    const auto pair = PairOfColumn(name);
    if (!pair || value.empty()) continue;
    calls.pairs.push_back(*pair);
    call.microseconds.push_back(std::stof(value));
  }
  call.choice = {ParseAlgorithm(row.at("nccl_algo")).value(), ParseProtocol(row.at("nccl_proto")).value(),
                 static_cast<uint8_t>(std::stoi(row.at("nccl_channels")))};
  calls.calls.push_back(call);
  return calls;
}

// With more than four nodes, the graphs are those of four nodes, because each node searches its own.
NcclCommunicatorFacts FactsOfRow(const NcclChoices& choices, const std::string& release, const CsvRow& row) {
  const int nodes = std::stoi(row.at("nodes"));
  NcclWorld world{kMachineOf.at(row.at("topo")), nodes, std::stoi(row.at("ranks_per_node"))};
  if (nodes > 4) world.nodes = 4;
  NcclCommunicatorFacts facts = FactsOf(choices, release, world);
  facts.n_ranks = nodes * world.ranks_per_node;
  facts.n_nodes = nodes;
  return facts;
}

class NcclTables : public testing::TestWithParam<const char*> {};

TEST_P(NcclTables, OfOthersAreReproduced) {
  const char* data = std::getenv("DYNAMICCL_DATA");
  if (data == nullptr) GTEST_SKIP() << "set DYNAMICCL_DATA to the folder that holds nccl-cost-tables";
  const std::string release = GetParam();
  const auto rows = ReadCsv(std::string(data) + "/nccl-cost-tables/cost_" + release + ".csv");
  ASSERT_FALSE(rows.empty());
  const auto choices = ReadNcclChoices(NCCL_CHOICES_FILE);
  ASSERT_TRUE(choices) << choices.error().message;
  Agreement agreement;
  for (const CsvRow& row : rows) {
    const NcclCalls calls = CallsOf(row);
    const std::string where =
        row.at("topo") + " " + row.at("nodes") + "x" + row.at("ranks_per_node") + " " + row.at("coll");
    CompareCall(FactsOfRow(*choices, release, row), *ParseCollective(row.at("coll")), calls,
                calls.calls.front(), true, where, &agreement);
  }
  Print("NCCL " + release, agreement);
  EXPECT_GE(agreement.costs.percent(), 99);
  EXPECT_GE(agreement.choices.percent(), 99);
  EXPECT_GE(agreement.channels.percent(), 99);
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclTables, testing::Values("2.28.9", "2.30.7", "2.32.3"));

}  // namespace
}  // namespace dynamiccl
