// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/cell_json.h"

#include <algorithm>

namespace dynamiccl {
namespace {

constexpr CellEnd kEnds[] = {CellEnd::kPassed,  CellEnd::kInitFailed, CellEnd::kCallFailed,
                             CellEnd::kCrashed, CellEnd::kHung,       CellEnd::kNotRun};

Json GraphsJson(const Cell& cell) {
  Json graphs = Json::object();
  for (const auto& [name, graph] : cell.graphs) {
    graphs[name] = {{"channels", graph.channels},
                    {"intra_gbps", graph.intra_gbps},
                    {"inter_gbps", graph.inter_gbps},
                    {"intra_type", graph.intra_type},
                    {"inter_type", graph.inter_type},
                    {"adapters", graph.adapters},
                    {"pattern", graph.pattern},
                    {"latency_us", graph.latency_us},
                    {"same_channels", graph.same_channels}};
  }
  return graphs;
}

Json ChoicesJson(const Cell& cell) {
  Json choices = Json::array();
  for (const CellChoice& choice : cell.choices) {
    Json costs = Json::object();
    for (const auto& [pair, cost] : choice.costs)
      costs[fmt::format("{}/{}", Name(pair.first), Name(pair.second))] = cost;
    choices.push_back({{"collective", Name(choice.collective)},
                       {"bytes", choice.bytes},
                       {"algorithm", Name(choice.config.algorithm)},
                       {"protocol", Name(choice.config.protocol)},
                       {"channels", choice.config.channels},
                       {"expected_us", costs}});
  }
  return choices;
}

CellGraph GraphOf(const Json& json) {
  return {.channels = json.at("channels"),
          .intra_gbps = json.at("intra_gbps"),
          .inter_gbps = json.at("inter_gbps"),
          .intra_type = json.at("intra_type"),
          .inter_type = json.at("inter_type"),
          .adapters = json.at("adapters"),
          .pattern = json.at("pattern"),
          .latency_us = json.at("latency_us"),
          .same_channels = json.at("same_channels")};
}

// Throws std::bad_optional_access for an unknown name, as the JSON library throws for an unknown kind.
CellChoice ChoiceOf(const Json& json) {
  CellChoice choice{
      .collective = ParseCollective(json.at("collective").get<std::string>()).value(),
      .bytes = json.at("bytes"),
      .config = {ParseAlgorithm(json.at("algorithm").get<std::string>()).value(),
                 ParseProtocol(json.at("protocol").get<std::string>()).value(), json.at("channels")},
      .costs = {}};
  for (const auto& [pair, cost] : json.at("expected_us").items()) {
    const size_t slash = pair.find('/');
    choice.costs[{ParseAlgorithm(pair.substr(0, slash)).value(),
                  ParseProtocol(pair.substr(slash + 1)).value()}] = cost;
  }
  return choice;
}

// Keys of JSON objects are texts, so maps from ranks or channels become lists of pairs.
Json LogJson(const CommunicatorLog& log) {
  Json ranks = Json::array();
  for (const auto& [rank, found] : log.by_rank) {
    Json graphs = Json::object();
    for (const auto& [name, graph] : found.graphs)
      graphs[name] = {{"pattern", graph.pattern}, {"search", graph.search}, {"adapters", graph.adapters}};
    ranks.push_back({{"rank", rank},
                     {"links", found.links},
                     {"graphs", graphs},
                     {"trees", found.trees},
                     {"complete", found.complete}});
  }
  return {{"ranks", log.ranks},
          {"nodes", log.nodes},
          {"channels", log.channels.collective},
          {"nvls_channels", log.channels.nvls},
          {"p2p_channels", log.channels.p2p},
          {"p2p_channels_per_peer", log.channels.p2p_per_peer},
          {"by_rank", ranks},
          {"rings", log.rings},
          {"expected", log.expected},
          {"transports", log.transports},
          {"adapters", log.adapters}};
}

CommunicatorLog LogOf(const Json& json) {
  CommunicatorLog log{.ranks = json.at("ranks"),
                      .nodes = json.at("nodes"),
                      .channels = {json.at("channels"), json.at("nvls_channels"), json.at("p2p_channels"),
                                   json.at("p2p_channels_per_peer")},
                      .by_rank = {},
                      .rings = json.at("rings").get<std::map<int, std::string>>(),
                      .expected = json.at("expected").get<std::map<std::string, std::string>>(),
                      .transports = json.at("transports"),
                      .adapters = json.at("adapters")};
  for (const Json& one : json.at("by_rank")) {
    RankLog rank{.links = one.at("links").get<std::map<std::string, int>>(),
                 .graphs = {},
                 .trees = one.at("trees"),
                 .complete = one.at("complete")};
    for (const auto& [name, graph] : one.at("graphs").items())
      rank.graphs[name] = {graph.at("pattern"), graph.at("search"), graph.at("adapters")};
    log.by_rank[one.at("rank")] = std::move(rank);
  }
  return log;
}

Cell ReadAll(const Json& json) {
  const std::string end = json.at("end");
  const auto* found =
      std::find_if(std::begin(kEnds), std::end(kEnds), [&](CellEnd one) { return end == Name(one); });
  Cell cell{.end = found == std::end(kEnds) ? CellEnd::kNotRun : *found,
            .seconds = json.at("seconds"),
            .ranks = json.at("ranks"),
            .ranks_joined = json.at("ranks_joined"),
            .warnings = json.at("warnings"),
            .channels = json.at("channels"),
            .nvls_channels = json.at("nvls_channels"),
            .p2p_channels = json.at("p2p_channels"),
            .p2p_channels_per_peer = json.at("p2p_channels_per_peer")};
  for (const auto& [name, graph] : json.at("graphs").items()) cell.graphs[name] = GraphOf(graph);
  cell.adapters = json.at("adapters").get<std::map<std::string, int>>();
  cell.counts_adapters_twice = json.at("counts_adapters_twice");
  cell.transports = json.at("transports").get<std::map<std::string, int>>();
  cell.ranks_launch_alike = json.at("ranks_launch_alike");
  cell.restores_cpus = json.at("restores_cpus");
  cell.device_memory_bytes = json.at("device_memory_bytes");
  for (const Json& choice : json.at("choices")) cell.choices.push_back(ChoiceOf(choice));
  cell.stacks = json.at("stacks").get<std::map<std::string, int>>();
  cell.problem = json.at("problem");
  cell.log = LogOf(json.at("log"));
  return cell;
}

}  // namespace

Json CellJson(const Cell& cell) {
  return {{"end", Name(cell.end)},
          {"seconds", cell.seconds},
          {"ranks", cell.ranks},
          {"ranks_joined", cell.ranks_joined},
          {"warnings", cell.warnings},
          {"channels", cell.channels},
          {"nvls_channels", cell.nvls_channels},
          {"p2p_channels", cell.p2p_channels},
          {"p2p_channels_per_peer", cell.p2p_channels_per_peer},
          {"graphs", GraphsJson(cell)},
          {"adapters", cell.adapters},
          {"counts_adapters_twice", cell.counts_adapters_twice},
          {"transports", cell.transports},
          {"ranks_launch_alike", cell.ranks_launch_alike},
          {"restores_cpus", cell.restores_cpus},
          {"device_memory_bytes", cell.device_memory_bytes},
          {"choices", ChoicesJson(cell)},
          {"stacks", cell.stacks},
          {"problem", cell.problem}};
}

Json KeptCellJson(const Cell& cell) {
  Json json = CellJson(cell);
  json["log"] = LogJson(cell.log);
  return json;
}

std::optional<Cell> CellFromJson(const Json& json) {
  try {
    return ReadAll(json);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace dynamiccl
