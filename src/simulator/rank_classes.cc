// SPDX-License-Identifier: Apache-2.0
// Colour refinement. A colour is the number of a signature, and equal signatures have equal numbers. In each
// round
// - a communicator's signature is made of the colours of its members and of the nodes on which they are,
// - a node's of the colours of its ranks and of the communicators on it,
// - a rank's of the colours of its node and its communicators.
// The rounds end when no class of ranks splits any more.
#include "src/simulator/rank_classes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace dynamiccl {
namespace {

using Colour = int64_t;
using Signature = std::vector<Colour>;

// A communicator, and how many members it has on each of its nodes.
struct Group {
  size_t layout = 0;
  std::vector<int32_t> ranks;
  std::map<int32_t, int32_t> ranks_of_node;
};

// Gives equal signatures equal numbers, in the order of their first appearance.
std::vector<Colour> Number(const std::vector<Signature>& signatures) {
  std::map<Signature, Colour> known;
  std::vector<Colour> colours;
  colours.reserve(signatures.size());
  for (const Signature& signature : signatures)
    colours.push_back(known.emplace(signature, static_cast<Colour>(known.size())).first->second);
  return colours;
}

// Returns the number of colours.
size_t Count(const std::vector<Colour>& colours) {
  return colours.empty() ? 0 : static_cast<size_t>(*std::ranges::max_element(colours)) + 1;
}

// Does one refinement. It lives for one call of ClassesOf.
class Refinement {
 public:
  Refinement(const SimulatedJob& job, bool apart) : job_(job) {
    FindGroups();
    StartRanks(apart || job.compute_jitter > 0);
    StartNodes();
    group_colours_.assign(groups_.size(), 0);
  }

  JobClasses Run() {
    for (size_t before = 0; before != Count(rank_colours_);) {
      before = Count(rank_colours_);
      ColourGroups();
      ColourNodes();
      ColourRanks();
    }
    return Classes();
  }

 private:
  int32_t NodeOf(int32_t rank) const { return rank / job_.ranks_per_node; }
  // Collects the communicators, and who is in them.
  void FindGroups();
  // Sets the first colours of ranks by their program and slowness. With `apart`, every rank gets a colour of
  // its own.
  void StartRanks(bool apart);
  // Sets the first colours of nodes by the loads that concern a single node.
  void StartNodes();
  // These three do one round of refinement: for communicators, for nodes and for ranks.
  void ColourGroups();
  void ColourNodes();
  void ColourRanks();
  // Returns the colours as classes, each represented by its first member.
  JobClasses Classes() const;
  void AddNodes(JobClasses& classes) const;
  void AddGroups(JobClasses& classes) const;
  void AddRanks(JobClasses& classes) const;

  const SimulatedJob& job_;
  std::vector<Group> groups_;
  std::vector<std::vector<int64_t>> group_of_rank_;  // by rank and layout
  std::vector<std::vector<std::pair<size_t, int32_t>>>
      on_node_;  // by node: its groups, and their members on the node
  std::vector<Colour> rank_colours_, group_colours_, node_colours_;
};

void Refinement::FindGroups() {
  group_of_rank_.resize(static_cast<size_t>(job_.n_ranks));
  for (size_t layout = 0; layout < job_.layouts.size(); ++layout) {
    std::map<int32_t, int64_t> known;
    for (int32_t rank = 0; rank < job_.n_ranks; ++rank) {
      const int32_t communicator = job_.layouts[layout].communicator_of_rank[static_cast<size_t>(rank)];
      group_of_rank_[static_cast<size_t>(rank)].push_back(-1);
      if (communicator < 0) continue;
      const auto [place, is_new] = known.emplace(communicator, static_cast<int64_t>(groups_.size()));
      if (is_new) groups_.push_back({layout, {}, {}});
      Group& group = groups_[static_cast<size_t>(place->second)];
      group.ranks.push_back(rank);
      ++group.ranks_of_node[NodeOf(rank)];
      group_of_rank_[static_cast<size_t>(rank)].back() = place->second;
    }
  }
  on_node_.resize(static_cast<size_t>(job_.Nodes()));
  for (size_t group = 0; group < groups_.size(); ++group)
    for (const auto& [node, ranks] : groups_[group].ranks_of_node)
      on_node_[static_cast<size_t>(node)].emplace_back(group, ranks);
}

void Refinement::StartRanks(bool apart) {
  std::vector<Signature> signatures;
  for (int32_t rank = 0; rank < job_.n_ranks; ++rank) {
    const bool one_program = job_.program_of_rank.empty();
    signatures.push_back({one_program ? 0 : Colour{job_.program_of_rank[static_cast<size_t>(rank)]}});
    if (apart) signatures.back().push_back(rank);
  }
  for (const Straggler& straggler : job_.stragglers) {
    Signature& signature = signatures[static_cast<size_t>(straggler.rank)];
    signature.push_back(std::bit_cast<Colour>(straggler.compute_factor));
    signature.push_back(straggler.late_ns);
  }
  rank_colours_ = Number(signatures);
}

void Refinement::StartNodes() {
  std::vector<Signature> signatures(static_cast<size_t>(job_.Nodes()));
  for (size_t load = 0; load < job_.loads.size(); ++load) {
    const int32_t node = job_.loads[load].node;
    if (node >= 0) signatures[static_cast<size_t>(node)].push_back(static_cast<Colour>(load));
  }
  node_colours_ = Number(signatures);
}

void Refinement::ColourGroups() {
  std::vector<Signature> signatures;
  for (const Group& group : groups_) {
    Signature members, nodes;
    for (const int32_t rank : group.ranks) members.push_back(rank_colours_[static_cast<size_t>(rank)]);
    for (const auto& [node, ranks] : group.ranks_of_node)
      nodes.push_back(node_colours_[static_cast<size_t>(node)] << 20 | ranks);
    std::ranges::sort(members);
    std::ranges::sort(nodes);
    Signature& signature = signatures.emplace_back(Signature{static_cast<Colour>(group.layout)});
    signature.insert(signature.end(), members.begin(), members.end());
    signature.push_back(-1);
    signature.insert(signature.end(), nodes.begin(), nodes.end());
  }
  group_colours_ = Number(signatures);
}

void Refinement::ColourNodes() {
  std::vector<Signature> signatures(node_colours_.size());
  for (int32_t rank = 0; rank < job_.n_ranks; ++rank)
    signatures[static_cast<size_t>(NodeOf(rank))].push_back(rank_colours_[static_cast<size_t>(rank)]);
  for (size_t node = 0; node < signatures.size(); ++node) {
    Signature groups;
    for (const auto& [group, ranks] : on_node_[node]) groups.push_back(group_colours_[group] << 20 | ranks);
    std::ranges::sort(groups);
    std::ranges::sort(signatures[node]);
    signatures[node].push_back(-1);
    signatures[node].insert(signatures[node].end(), groups.begin(), groups.end());
    signatures[node].push_back(node_colours_[node]);
  }
  node_colours_ = Number(signatures);
}

void Refinement::ColourRanks() {
  std::vector<Signature> signatures;
  for (size_t rank = 0; rank < rank_colours_.size(); ++rank) {
    const auto node = static_cast<size_t>(NodeOf(static_cast<int32_t>(rank)));
    Signature& signature = signatures.emplace_back(Signature{rank_colours_[rank], node_colours_[node]});
    for (const int64_t group : group_of_rank_[rank])
      signature.push_back(group < 0 ? -1 : group_colours_[static_cast<size_t>(group)]);
  }
  rank_colours_ = Number(signatures);
}

void Refinement::AddRanks(JobClasses& classes) const {
  classes.ranks.resize(Count(rank_colours_));
  for (size_t rank = 0; rank < rank_colours_.size(); ++rank) {
    const auto colour = static_cast<size_t>(rank_colours_[rank]);
    classes.class_of_rank.push_back(static_cast<uint32_t>(colour));
    RankClass& one = classes.ranks[colour];
    if (one.ranks++ > 0) continue;
    one.first_rank = static_cast<int32_t>(rank);
    one.node_class = static_cast<size_t>(node_colours_[static_cast<size_t>(NodeOf(one.first_rank))]);
    for (const int64_t group : group_of_rank_[rank])
      one.communicator_class.push_back(group < 0 ? -1 : group_colours_[static_cast<size_t>(group)]);
  }
}

void Refinement::AddGroups(JobClasses& classes) const {
  classes.communicators.resize(Count(group_colours_));
  for (size_t group = 0; group < groups_.size(); ++group) {
    CommunicatorClass& one = classes.communicators[static_cast<size_t>(group_colours_[group])];
    if (one.communicators++ > 0) continue;
    one.layout = groups_[group].layout;
    one.ranks = static_cast<int32_t>(groups_[group].ranks.size());
    one.nodes = static_cast<int32_t>(groups_[group].ranks_of_node.size());
    std::set<size_t> members;
    for (const int32_t rank : groups_[group].ranks)
      members.insert(static_cast<size_t>(rank_colours_[static_cast<size_t>(rank)]));
    one.rank_classes.assign(members.begin(), members.end());
  }
}

void Refinement::AddNodes(JobClasses& classes) const {
  classes.nodes.resize(Count(node_colours_));
  for (size_t node = 0; node < node_colours_.size(); ++node) {
    NodeClass& one = classes.nodes[static_cast<size_t>(node_colours_[node])];
    if (one.nodes++ > 0) continue;
    one.first_node = static_cast<int32_t>(node);
    std::map<size_t, int32_t> communicators;
    for (const auto& [group, ranks] : on_node_[node])
      ++communicators[static_cast<size_t>(group_colours_[group])];
    one.communicators.assign(communicators.begin(), communicators.end());
  }
}

JobClasses Refinement::Classes() const {
  JobClasses classes;
  AddRanks(classes);
  AddGroups(classes);
  AddNodes(classes);
  return classes;
}

}  // namespace

JobClasses ClassesOf(const SimulatedJob& job, bool apart) {
  return Refinement(job, apart).Run();
}

}  // namespace dynamiccl
