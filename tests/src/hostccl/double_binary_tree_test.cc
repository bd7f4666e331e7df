// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/topology/double_binary_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace dynamiccl::hostccl {
namespace {

// Checks that the neighbours of all ranks form one tree. Returns the tree's depth in edges.
int CheckTree(const std::vector<TreeNeighbours>& tree) {
  const int n = static_cast<int>(tree.size());
  int roots = 0;
  int deepest = 0;
  for (int rank = 0; rank < n; ++rank) {
    roots += tree[static_cast<size_t>(rank)].parent < 0 ? 1 : 0;
    int depth = 0;
    for (int at = rank; tree[static_cast<size_t>(at)].parent >= 0 && depth <= n; ++depth) {
      const int parent = tree[static_cast<size_t>(at)].parent;
      const auto& children = tree[static_cast<size_t>(parent)].children;
      EXPECT_EQ(std::count(children.begin(), children.end(), at), 1) << at << " below " << parent;
      at = parent;
    }
    EXPECT_LE(depth, n) << "a cycle";
    deepest = std::max(deepest, depth);
    for (const int child : tree[static_cast<size_t>(rank)].children) {
      if (child < 0) continue;
      EXPECT_EQ(tree[static_cast<size_t>(child)].parent, rank);
    }
  }
  EXPECT_EQ(roots, 1);
  return deepest;
}

TEST(BinaryTree, IsATreeOfLogarithmicDepth) {
  for (int size = 1; size <= 70; ++size) {
    for (const int which : {0, 1}) {
      std::vector<TreeNeighbours> tree;
      for (int index = 0; index < size; ++index) tree.push_back(BinaryTree(which, index, size));
      EXPECT_LE(CheckTree(tree), std::bit_width(static_cast<unsigned>(size))) << size;
    }
  }
}

TEST(BinaryTree, LeavesOfOneAreInnerNodesOfTheOther) {
  for (int size = 2; size <= 64; size += 2) {
    for (int index = 0; index < size; ++index) {
      const bool leaf_in_first = BinaryTree(0, index, size).children[0] < 0;
      const bool leaf_in_second = BinaryTree(1, index, size).children[0] < 0;
      EXPECT_NE(leaf_in_first, leaf_in_second) << index << " of " << size;
    }
  }
}

TEST(TreeOverNodes, CrossesEachNodeBorderOnce) {
  const std::vector<std::vector<int>> layouts = {
      {0}, {0, 0, 0}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1, 1, 1, 2}, {3, 3, 1, 1, 2, 2, 0, 0, 0}};
  for (const auto& nodes : layouts) {
    for (const int which : {0, 1}) {
      std::vector<TreeNeighbours> tree;
      for (size_t rank = 0; rank < nodes.size(); ++rank) {
        tree.push_back(TreeOverNodes(which, static_cast<int>(rank), nodes));
      }
      CheckTree(tree);
      int crossings = 0;
      for (size_t rank = 0; rank < nodes.size(); ++rank) {
        const int parent = tree[rank].parent;
        crossings += parent >= 0 && nodes[static_cast<size_t>(parent)] != nodes[rank] ? 1 : 0;
      }
      std::vector<int> distinct = nodes;
      std::sort(distinct.begin(), distinct.end());
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      EXPECT_EQ(crossings, static_cast<int>(distinct.size()) - 1);
    }
  }
}

TEST(RingOrder, KeepsTheRanksOfANodeTogether) {
  EXPECT_EQ(RingOrder({0, 1, 0, 1}), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(RingOrder({1, 1, 0}), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace dynamiccl::hostccl
