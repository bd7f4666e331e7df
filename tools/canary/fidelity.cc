// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/fidelity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace dynamiccl {
namespace {

// The variables with which NCCL's log has every line that the canary compares.
constexpr const char* kLogHint = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING";

template <typename Values>
std::string Joined(const Values& values) {
  std::vector<std::string> names;
  for (const auto& one : values) {
    if constexpr (requires { one.first; })
      names.push_back(one.first);
    else
      names.push_back(one);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string LinksText(const std::map<std::string, int>& links) {
  std::vector<std::string> words;
  for (const auto& [link, number] : links) words.push_back(fmt::format("{} {}", number, link));
  return fmt::format("{}", fmt::join(words, ", "));
}

// The parts of a graph's line: "pattern 4", "crossNic 2", "nChannels 8", ...; "none" without the graph.
std::vector<std::string> GraphParts(const std::map<std::string, LoggedGraph>& graphs,
                                    const std::string& name) {
  const auto found = graphs.find(name);
  if (found == graphs.end()) return {"none"};
  const LoggedGraph& graph = found->second;
  std::vector<std::string> parts{fmt::format("pattern {}", graph.pattern)};
  for (size_t begin = 0; begin < graph.search.size();) {
    const size_t end = std::min(graph.search.find(", ", begin), graph.search.size());
    parts.push_back(graph.search.substr(begin, end - begin));
    begin = end + 2;
  }
  if (!graph.adapters.empty()) parts.push_back(fmt::format("{} adapters", graph.adapters.size()));
  return parts;
}

bool IsAdapters(const std::string& part) {
  return part.ends_with(" adapters");
}

// True if the graph is in the log, but not with all of its channels.
bool HasNoAdapters(const std::map<std::string, LoggedGraph>& graphs, const std::string& name) {
  const auto found = graphs.find(name);
  return found != graphs.end() && found->second.adapters.empty();
}

// Removes the parts that are equal in both.
void KeepUnequal(std::vector<std::string>& theirs, std::vector<std::string>& ours) {
  if (theirs.size() != ours.size()) return;
  for (size_t part = theirs.size(); part-- > 0;) {
    if (theirs[part] != ours[part]) continue;
    theirs.erase(theirs.begin() + static_cast<std::ptrdiff_t>(part));
    ours.erase(ours.begin() + static_cast<std::ptrdiff_t>(part));
  }
}

std::string RanksText(int ranks) {
  return ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks);
}

class Comparison {
 public:
  Comparison(const LoggedJob& job, const Cell& cell, int nodes)
      : job_(job), cell_(cell), nodes_(nodes), logged_(job.Find(cell.ranks, nodes)) {}

  Fidelity Run() {
    if (logged_ == nullptr) {
      fidelity_.not_in_log = {"communicators"};
      return std::move(fidelity_);
    }
    CompareSizes();
    // Graphs of a job with other nodes or ranks differ for that reason alone, so they are not compared.
    if (!fidelity_.disagreements.empty()) return std::move(fidelity_);
    CompareLinks();
    CompareGraphs();
    CompareChannels();
    CompareRings();
    CompareTrees();
    CompareExpected();
    CompareConnections();
    return std::move(fidelity_);
  }

 private:
  void Disagree(const std::string& what, const std::string& theirs, const std::string& ours) {
    fidelity_.disagreements.push_back(fmt::format("{}: {} in the log, {} here", what, theirs, ours));
  }

  bool Compare(const std::string& what, const std::string& theirs, const std::string& ours) {
    if (theirs != ours) Disagree(what, theirs, ours);
    return theirs == ours;
  }

  void CompareSizes() {
    if (logged_->ranks > 0) Compare("ranks", std::to_string(logged_->ranks), std::to_string(cell_.ranks));
    if (logged_->nodes > 0) Compare("nodes", std::to_string(logged_->nodes), std::to_string(nodes_));
  }

  // Reports values that are not equal on a rank, once for all ranks with the same pair of values.
  class ByRank {
   public:
    void Add(const std::string& what, const std::string& theirs, const std::string& ours) {
      ++found_[{what, theirs, ours}];
    }
    bool ReportTo(Comparison& comparison) const {
      for (const auto& [key, ranks] : found_) {
        const auto& [what, theirs, ours] = key;
        comparison.Disagree(fmt::format("{} of {}", what, RanksText(ranks)), theirs, ours);
      }
      return found_.empty();
    }

   private:
    std::map<std::tuple<std::string, std::string, std::string>, int> found_;
  };

  // Calls `compare` with both logs of each rank that is in the user's log, and returns how many those are.
  template <typename Function>
  int ForEachRank(const Function& compare) const {
    int compared = 0;
    for (const auto& [rank, theirs] : logged_->by_rank) {
      const auto ours = cell_.log.by_rank.find(rank);
      if (ours != cell_.log.by_rank.end()) compared += compare(theirs, ours->second);
    }
    return compared;
  }

  // Adds one part of the comparison to the report.
  void Conclude(const std::string& part, const std::string& agreement, int compared, bool equal) {
    if (compared == 0)
      fidelity_.not_in_log.push_back(part);
    else if (equal)
      fidelity_.agreements.push_back(agreement);
  }

  void CompareLinks() {
    ByRank unlike;
    const int compared = ForEachRank([&](const RankLog& theirs, const RankLog& ours) {
      if (theirs.links.empty() || job_.cut_lines > 0) return false;
      if (theirs.links != ours.links)
        unlike.Add("links in the topology", LinksText(theirs.links), LinksText(ours.links));
      return true;
    });
    Conclude("topology", fmt::format("links of {}", RanksText(compared)), compared, unlike.ReportTo(*this));
  }

  void CompareGraphs() {
    ByRank unlike;
    std::set<std::string> all;
    const int compared = ForEachRank([&](const RankLog& theirs, const RankLog& ours) {
      if (theirs.graphs.empty()) return false;
      std::set<std::string> names;
      for (const auto& [name, graph] : theirs.graphs) names.insert(name);
      // The log shows that a graph does not exist only if the log has all of the rank's lines.
      if (theirs.complete && job_.cut_lines == 0)
        for (const auto& [name, graph] : ours.graphs) names.insert(name);
      for (const std::string& name : names) {
        std::vector<std::string> of_log = GraphParts(theirs.graphs, name);
        std::vector<std::string> of_cell = GraphParts(ours.graphs, name);
        if (HasNoAdapters(theirs.graphs, name)) std::erase_if(of_cell, IsAdapters);
        if (of_log == of_cell) continue;
        KeepUnequal(of_log, of_cell);
        unlike.Add(name + " graph", fmt::format("{}", fmt::join(of_log, ", ")),
                   fmt::format("{}", fmt::join(of_cell, ", ")));
      }
      all.merge(names);
      return true;
    });
    Conclude("graphs", fmt::format("graphs {} of {}", Joined(all), RanksText(compared)), compared,
             unlike.ReportTo(*this));
  }

  void CompareChannels() {
    const real_nccl::LoggedChannels& theirs = logged_->channels;
    if (theirs.collective == 0) return Conclude("channels", "", 0, true);
    bool equal = Compare("channels", std::to_string(theirs.collective), std::to_string(cell_.channels));
    equal &= Compare("NVLS channels", std::to_string(theirs.nvls), std::to_string(cell_.nvls_channels));
    Conclude("channels", fmt::format("{} channels", theirs.collective), 1, equal);
  }

  void CompareRings() {
    std::vector<int> unlike;
    for (const auto& [channel, ranks] : logged_->rings) {
      const auto ours = cell_.log.rings.find(channel);
      if (ours == cell_.log.rings.end() || ours->second != ranks) unlike.push_back(channel);
    }
    if (!unlike.empty()) {
      const int first = unlike.front();
      const auto ours = cell_.log.rings.find(first);
      Disagree(
          fmt::format("{} of {} rings, first channel {:02}", unlike.size(), logged_->rings.size(), first),
          logged_->rings.at(first), ours == cell_.log.rings.end() ? "none" : ours->second);
    }
    const auto rings = static_cast<int>(logged_->rings.size());
    Conclude("rings", fmt::format("{} rings", rings), rings, unlike.empty());
  }

  void CompareTrees() {
    std::vector<std::tuple<std::string, std::string, std::string>> unlike;
    const int compared = ForEachRank([&](const RankLog& theirs, const RankLog& ours) {
      // NCCL itself cuts this line where there are many channels.
      if (theirs.trees.empty() || theirs.trees.size() > ours.trees.size()) return false;
      const auto [of_log, of_cell] = std::ranges::mismatch(theirs.trees, ours.trees);
      if (of_log != theirs.trees.end())
        unlike.emplace_back(fmt::format("channel {:02}", of_log - theirs.trees.begin()), *of_log, *of_cell);
      return true;
    });
    if (!unlike.empty()) {
      const auto& [channel, theirs, ours] = unlike.front();
      Disagree(fmt::format("trees of {} of {}, first {}", unlike.size(), RanksText(compared), channel),
               theirs, ours);
    }
    Conclude("trees", fmt::format("trees of {}", RanksText(compared)), compared, unlike.empty());
  }

  void CompareExpected() {
    std::vector<std::string> unlike;
    for (const auto& [pair, value] : logged_->expected) {
      const auto ours = cell_.log.expected.find(pair);
      if (ours == cell_.log.expected.end() || ours->second != value) unlike.push_back(pair);
    }
    const auto all = static_cast<int>(logged_->expected.size());
    if (!unlike.empty()) {
      const auto ours = cell_.log.expected.find(unlike.front());
      Disagree(fmt::format("{} of {} entries of the cost table (us/GBps), first {}", unlike.size(), all,
                           unlike.front()),
               logged_->expected.at(unlike.front()),
               ours == cell_.log.expected.end() ? "none" : ours->second);
    }
    Conclude("cost table", fmt::format("{} entries of the cost table", all), all, unlike.empty());
  }

  // Connections that are missing because the log lacks some ranks are no difference.
  void CompareConnections() {
    const std::set<std::string>& theirs = logged_->transports;
    const std::set<std::string>& ours = cell_.log.transports;
    if (theirs.empty()) return Conclude("connections of a job with one communicator", "", 0, true);
    const bool all = logged_->has_all_ranks();
    bool equal = true;
    if (all || !std::ranges::includes(ours, theirs))
      equal &= Compare("transports", Joined(theirs), Joined(ours));
    const size_t adapters = logged_->adapters.size(), here = cell_.log.adapters.size();
    if (all || adapters > here)
      equal &= Compare("connected adapters", std::to_string(adapters), std::to_string(here));
    Conclude("connections", "transports and connected adapters", 1, equal);
  }

  const LoggedJob& job_;
  const Cell& cell_;
  const int nodes_;
  const CommunicatorLog* logged_;
  Fidelity fidelity_;
};

}  // namespace

Fidelity CompareWithLog(const LoggedJob& logged, const Cell& cell, int nodes,
                        const std::map<std::string, std::string>& environment) {
  Fidelity fidelity = Comparison(logged, cell, nodes).Run();
  for (const auto& [name, value] : logged.variables) {
    const auto given = environment.find(name);
    if (given == environment.end() || given->second != value) fidelity.variables_missing[name] = value;
  }
  return fidelity;
}

std::string AdviceFor(const Fidelity& fidelity) {
  std::string advice;
  const std::string& first = fidelity.disagreements.front();
  if (first.starts_with("ranks") || first.starts_with("nodes"))
    advice = "give the world of the log's communicator by --world or --ranks";
  else
    advice = "give the topology that this very job wrote (NCCL_TOPO_DUMP_FILE), and its GPUs by --gpus";
  for (const auto& [name, value] : fidelity.variables_missing)
    advice += fmt::format("{} --env {}={}", advice.find("--env") == std::string::npos ? "; the job had" : "",
                          name, value);
  if (!fidelity.not_in_log.empty())
    advice += fmt::format("; a log with {} also shows: {}", kLogHint, fmt::join(fidelity.not_in_log, ", "));
  return advice;
}

}  // namespace dynamiccl
