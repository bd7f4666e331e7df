// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/one_model.h"

#include <cstring>

#include "src/cost_model/nccl_costs.h"
#include "traces/format/nccl_choices_file.h"

namespace dynamiccl {
namespace {

constexpr int kModelNumber = 23007;  // kModelRelease, as ncclGetVersion returns it

NcclGraph PlainGraphOf(const CellGraph& graph) {
  return {.pattern = graph.pattern,
          .channels = graph.channels,
          .intra_gbps = graph.intra_gbps,
          .inter_gbps = graph.inter_gbps,
          .latency_us = graph.latency_us,
          .intra_type = graph.intra_type,
          .inter_type = graph.inter_type,
          .same_channels = graph.same_channels};
}

// True if NCCL sees all ranks as one node. It does so in an NVLink domain, where no rank needs an adapter to
// reach another.
bool IsOneNode(const Cell& cell) {
  for (const auto& [name, graph] : cell.graphs) {
    if (!graph.adapters.empty()) return false;
  }
  return true;
}

std::optional<CostTable> TableOf(const OneModel& model, const Cell& cell, Collective collective,
                                 uint64_t bytes) {
  NcclCommunicatorFacts facts{.release = kModelNumber,
                              .n_ranks = model.n_ranks,
                              .n_nodes = IsOneNode(cell) ? 1 : model.n_nodes,
                              .channels = cell.channels,
                              .nvls_channels = cell.nvls_channels,
                              .architecture = model.architecture,
                              .amd_cpu = model.amd_cpu,
                              .constants = model.constants};
  for (const auto& [name, graph] : cell.graphs) {
    if (const auto algorithm = ParseAlgorithm(name)) facts.graphs[*algorithm] = PlainGraphOf(graph);
  }
  if (!facts.graphs.contains(Algorithm::kRing) || !facts.graphs.contains(Algorithm::kTree))
    return std::nullopt;
  return NcclCosts(facts, collective, bytes);
}

}  // namespace

Result<OneModel> ReadOneModel(const Installation& installation, const DescribedMachine& machine, int ranks,
                              int nodes) {
  const std::string file = FindDataFile(installation, "traces/nccl_choices/releases.nccl-choices");
  if (file.empty())
    return MakeError(ErrorKind::kNotFound, "no traces/nccl_choices in the installation '{}'",
                     installation.home);
  DYNAMICCL_TRY(const NcclChoices choices, ReadNcclChoices(file));
  const auto release = choices.releases.find(kModelRelease);
  OneModel model{.n_ranks = ranks, .n_nodes = nodes, .architecture = machine.architecture};
  if (release == choices.releases.end() ||
      release->second.constants.size() * sizeof(double) != sizeof(model.constants))
    return MakeError(ErrorKind::kCorrupt, "{}: no constants of NCCL {} in it", file, kModelRelease);
  std::memcpy(&model.constants, release->second.constants.data(), sizeof(model.constants));
  model.amd_cpu = machine.topology.find("AuthenticAMD") != std::string::npos;
  return model;
}

std::optional<double> ModelPrice(const OneModel& model, const Cell& cell, Collective collective,
                                 uint64_t bytes, const CollectiveConfig& config) {
  if (config.leaves_nccl_alone()) return std::nullopt;
  const auto table = TableOf(model, cell, collective, bytes);
  if (!table || table->at(config.algorithm, config.protocol) <= 0) return std::nullopt;
  return table->at(config.algorithm, config.protocol);
}

std::optional<double> BestModelPrice(const OneModel& model, const Cell& cell, Collective collective,
                                     uint64_t bytes) {
  const auto table = TableOf(model, cell, collective, bytes);
  if (!table) return std::nullopt;
  return ModelPrice(model, cell, collective, bytes, CheapestConfig(*table));
}

}  // namespace dynamiccl
