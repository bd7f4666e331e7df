// SPDX-License-Identifier: Apache-2.0
// Neighbours of a rank in the ring and in the two trees for AllReduce. A tree is a binary tree over the
// nodes, with one rank of each node as member, and below each of these ranks a binary tree over the ranks of
// its node. All functions are pure and equal on all ranks.
#pragma once

#include <array>
#include <vector>

namespace dynamiccl::hostccl {

// A rank's place in a tree. The root has parent -1. Children that exist come first; the others are -1.
struct TreeNeighbours {
  int parent = -1;
  std::array<int, 3> children{-1, -1, -1};
};

// Returns the position `index` of `size` in one of the two complementary binary trees: an inner node of the
// first is a leaf of the second, so the two together load every member equally. Depth is at most
// floor(log2(size)) + 1. Source: Sanders, Speck, Traff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", 2009; NCCL's src/graph/trees.cc.
TreeNeighbours BinaryTree(int which, int index, int size);

// Returns the rank's place in tree 0 or 1 over ranks on nodes; `node_of_rank` has one entry for each rank.
TreeNeighbours TreeOverNodes(int which, int rank, const std::vector<int>& node_of_rank);

// Returns the ranks in the order of the ring: those of a node are neighbours, and nodes are in the order of
// their first ranks. So each node has one link in and one link out.
std::vector<int> RingOrder(const std::vector<int>& node_of_rank);

}  // namespace dynamiccl::hostccl
