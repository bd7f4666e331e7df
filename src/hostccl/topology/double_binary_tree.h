// SPDX-License-Identifier: Apache-2.0
// The neighbours of a rank in the ring and in the two trees for AllReduce. A tree is a binary tree over the
// nodes, with one rank of each node as member. Below each of these ranks is a binary tree over the ranks of
// its node. All functions are pure, so their results are equal on all ranks.
#pragma once

#include <array>
#include <vector>

namespace dynamiccl::hostccl {

// The neighbours of a rank in a tree. The root has parent -1. Existing children come first; unused places are
// -1.
struct TreeNeighbours {
  int parent = -1;
  std::array<int, 3> children{-1, -1, -1};
};

// Returns the neighbours of position `index` of `size` in tree 0 or 1 of two complementary binary trees. An
// inner node of the first tree is a leaf of the second, so the two together load every member equally. The
// depth is at most floor(log2(size)) + 1. Source: Sanders, Speck, Traff, "Two-tree algorithms for full
// bandwidth broadcast, reduction and scan", 2009; NCCL's src/graph/trees.cc.
TreeNeighbours BinaryTree(int which, int index, int size);

// Returns the neighbours of a rank in tree 0 or 1 over the ranks of all nodes. `node_of_rank` has one entry
// for each rank.
TreeNeighbours TreeOverNodes(int which, int rank, const std::vector<int>& node_of_rank);

// Returns the ranks in the order of the ring. The ranks of a node are neighbours, and nodes are in the order
// of their first ranks. So each node has one link in and one link out.
std::vector<int> RingOrder(const std::vector<int>& node_of_rank);

}  // namespace dynamiccl::hostccl
