// SPDX-License-Identifier: Apache-2.0
// Neighbours of a rank in the ring and in the two trees that carry AllReduce: binary trees over the nodes
// whose members are one rank of each node, and below it a binary tree over the ranks of the node. Pure
// functions, equal on all ranks.
#pragma once

#include <array>
#include <vector>

namespace dynamiccl::hostccl {

struct TreeNeighbours {
  int parent = -1;                          // -1: the root
  std::array<int, 3> children{-1, -1, -1};  // -1: none; those present come first
};

// Position `index` of `size` in one of the two complementary binary trees: an inner node of the first is a
// leaf of the second (Sanders, Speck, Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", 2009; NCCL's src/graph/trees.cc). Depth at most floor(log2(size)) + 1.
TreeNeighbours BinaryTree(int which, int index, int size);

// Tree 0 or 1 over ranks on emulated nodes; `node_of_rank` has one entry a rank.
TreeNeighbours TreeOverNodes(int which, int rank, const std::vector<int>& node_of_rank);

// Ranks in ring order: those of a node are neighbours, nodes in the order of their first rank, so that each
// node has one link in and one out.
std::vector<int> RingOrder(const std::vector<int>& node_of_rank);

}  // namespace dynamiccl::hostccl
