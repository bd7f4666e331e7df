// SPDX-License-Identifier: Apache-2.0
// Describes the ranks of a program of the driver. They are threads of one process, or one process each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/real_nccl/driver/newer_functions.h"

namespace real_nccl_driver {

struct World {
  std::vector<int> ranks_of_nodes;       // number of ranks of each node; ranks are numbered node by node
  int only_rank = -1;                    // the only rank of this process; -1: all ranks are its threads
  std::string ids;                       // folder through which ranks pass unique ids to each other
  int only_node = -1;                    // -1: this process runs the ranks of all nodes
  std::vector<int> devices;              // of a node's ranks, or of all ranks; empty: 0, 1, ...
  std::vector<size_t> bytes;             // NCCL's total of each call, rounded up to whole floats on each rank
  std::vector<std::string> collectives;  // the collectives that IssueAll issues; empty: all five
  uint64_t repeats = 1;
  int version = 0;  // as ncclGetVersion reports it

  int ranks() const { return std::accumulate(ranks_of_nodes.begin(), ranks_of_nodes.end(), 0); }
  int nodes() const { return static_cast<int>(ranks_of_nodes.size()); }
  // Returns the ranks of the first node. Programs that need communicators of whole nodes expect this number
  // on every node.
  int ranks_per_node() const { return ranks_of_nodes.front(); }
  bool Has(const NewerFunction& function) const { return version >= function.since; }
  // Returns the node of a rank, and the rank's number among the ranks of that node.
  std::pair<int, int> PlaceOf(int rank) const;
  bool Issues(std::string_view collective) const {
    return collectives.empty() || std::ranges::find(collectives, collective) != collectives.end();
  }
};

// When `result` is an error, prints NCCL's message and ends the process with exit code 4.
void Demand(ncclResult_t result, int rank, const char* what);

// Prints on stdout that `what` is skipped because the release lacks `needed`:
//   driver: skipped windows: NCCL 2.26.5 has no ncclCommWindowRegister, which came with 2.27.3
void ReportSkipped(std::string_view what, const NewerFunction& needed, int version);

// Returns the unique id called `name`. The rank with `makes` creates the id, and the other ranks wait for it.
ncclUniqueId IdOf(const World& world, const std::string& name, bool makes, int rank);

struct Buffers {
  void* send = nullptr;
  void* receive = nullptr;
};

// One rank on its own thread. NCCL calls go through Call or CallNewer, which report the kernels that each
// call launched.
class Rank {
 public:
  Rank(const World& world, int rank);  // puts the thread on its emulated node and device
  ~Rank();                             // prints what the rank launched in all

  const World& world() const { return world_; }
  int rank() const { return rank_; }
  int node() const { return node_; }
  int local_rank() const { return local_rank_; }

  // Returns a new communicator of all ranks. When NCCL leaves the calling thread on other CPUs than before,
  // this function prints a line and restores the thread's CPUs:
  //   driver: <rank> was left on other CPUs
  ncclComm_t Join(const std::string& name, ncclConfig_t* config = nullptr);
  void Destroy(ncclComm_t communicator);
  // Prints the most memory that NCCL has held on the rank's device:
  //   driver: <rank> holds <bytes> of device memory
  void ReportMemory() const;

  // Returns device memory with room for NCCL's total `bytes`. All calls of this function share the memory,
  // and a larger size replaces it. The memory lives until the rank ends.
  Buffers BuffersOf(size_t bytes);

  // Runs `issue` and ends the process when it returns an error. Then reports the kernels that it launched:
  //   driver: <rank> <function> <total bytes> launched <kernels> <last kernel> <grid> <block>
  // Rank 0 prints the line unless the world repeats. Every rank adds the call to its totals.
  template <typename Issue>
  void Call(const char* function, size_t total_bytes, Issue&& issue) {
    const uint64_t before = Launches();
    Demand(issue(), rank_, function);
    Report(function, total_bytes, before);
  }
  // Does the same where the release has `needed`. Elsewhere the call is skipped, and rank 0 prints this.
  template <typename Issue>
  void CallNewer(const NewerFunction& needed, const char* function, size_t total_bytes, Issue&& issue) {
    if (world_.Has(needed))
      Call(function, total_bytes, std::forward<Issue>(issue));
    else if (rank_ == 0)
      ReportSkipped(function, needed, world_.version);
  }

 private:
  static uint64_t Launches();
  void Report(const char* function, size_t total_bytes, uint64_t launches_before);

  const World& world_;
  int rank_;
  int node_ = 0;
  int local_rank_ = 0;
  Buffers buffers_;
  size_t room_ = 0;
  uint64_t calls_ = 0;
  uint64_t kernels_ = 0;
  uint64_t digest_ = 14695981039346656037u;  // FNV-1a of kernel names and grid sizes
};

// Issues each collective of the world once. `bytes` is NCCL's total of each call.
void IssueAll(Rank& rank, ncclComm_t communicator, int ranks, size_t bytes);

}  // namespace real_nccl_driver
