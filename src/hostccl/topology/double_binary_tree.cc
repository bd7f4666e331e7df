// SPDX-License-Identifier: Apache-2.0
// Says how the two trees are computed. The first tree over 8 positions, each position with its children:
//   0: 4        4: 2 and 6        2: 1 and 3        6: 5 and 7
#include "src/hostccl/topology/double_binary_tree.h"

#include <algorithm>
#include <cstddef>

namespace dynamiccl::hostccl {
namespace {

// The parent of index i is i plus or minus i's lowest set bit: the one whose lowest set bit is twice as
// large, or, if that index does not exist, i minus the bit. Odd indices are leaves. Index 0 is the root and
// has one child.
TreeNeighbours FirstTree(int index, int size) {
  TreeNeighbours tree;
  int level = 1;
  while (level < size && (index & level) == 0) level <<= 1;
  if (index == 0) {
    if (size > 1) tree.children[0] = level >> 1;
    return tree;
  }
  const int upper = (index ^ level) | (level << 1);
  tree.parent = upper < size ? upper : index ^ level;
  size_t next = 0;
  if (level > 1) tree.children[next++] = index - level / 2;
  // The right child is the root of the largest right subtree that exists.
  for (int step = level / 2; step > 0; step /= 2) {
    if (index + step >= size) continue;
    tree.children[next++] = index + step;
    break;
  }
  return tree;
}

// Returns the same neighbours with each index replaced by map(index).
TreeNeighbours Mapped(TreeNeighbours tree, auto map) {
  if (tree.parent >= 0) tree.parent = map(tree.parent);
  for (int& child : tree.children) {
    if (child >= 0) child = map(child);
  }
  return tree;
}

// Returns the ranks of each node. Nodes are in the order of their first ranks.
std::vector<std::vector<int>> RanksByNode(const std::vector<int>& node_of_rank) {
  std::vector<int> nodes;
  std::vector<std::vector<int>> ranks;
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto found = std::find(nodes.begin(), nodes.end(), node_of_rank[rank]);
    const auto at = static_cast<size_t>(found - nodes.begin());
    if (found == nodes.end()) {
      nodes.push_back(node_of_rank[rank]);
      ranks.emplace_back();
    }
    ranks[at].push_back(static_cast<int>(rank));
  }
  return ranks;
}

// Returns the index of the root of tree 0 or 1.
int RootIndex(int which, int size) {
  if (which == 0) return 0;
  return size % 2 == 0 ? size - 1 : std::min(1, size - 1);
}

}  // namespace

TreeNeighbours BinaryTree(int which, int index, int size) {
  if (which == 0) return FirstTree(index, size);
  // The second tree is the first one mirrored for an even size, and shifted by one for an odd size. So leaves
  // and inner nodes change places.
  if (size % 2 == 0) {
    return Mapped(FirstTree(size - 1 - index, size), [size](int i) { return size - 1 - i; });
  }
  return Mapped(FirstTree((index + size - 1) % size, size), [size](int i) { return (i + 1) % size; });
}

TreeNeighbours TreeOverNodes(int which, int rank, const std::vector<int>& node_of_rank) {
  const auto nodes = RanksByNode(node_of_rank);
  const auto head = [&](int node) {
    const std::vector<int>& ranks = nodes[static_cast<size_t>(node)];
    return ranks[static_cast<size_t>(RootIndex(which, static_cast<int>(ranks.size())))];
  };
  size_t node = 0;
  while (std::find(nodes[node].begin(), nodes[node].end(), rank) == nodes[node].end()) ++node;
  const std::vector<int>& local = nodes[node];
  const auto index = static_cast<int>(std::find(local.begin(), local.end(), rank) - local.begin());
  TreeNeighbours tree = Mapped(BinaryTree(which, index, static_cast<int>(local.size())),
                               [&](int i) { return local[static_cast<size_t>(i)]; });
  if (head(static_cast<int>(node)) != rank) return tree;
  const TreeNeighbours above =
      Mapped(BinaryTree(which, static_cast<int>(node), static_cast<int>(nodes.size())), head);
  tree.parent = above.parent;
  auto free = std::find(tree.children.begin(), tree.children.end(), -1);
  for (const int child : above.children) {
    if (child >= 0) *free++ = child;
  }
  return tree;
}

std::vector<int> RingOrder(const std::vector<int>& node_of_rank) {
  std::vector<int> order;
  for (const auto& ranks : RanksByNode(node_of_rank)) order.insert(order.end(), ranks.begin(), ranks.end());
  return order;
}

}  // namespace dynamiccl::hostccl
