// SPDX-License-Identifier: Apache-2.0
// The ranks that a program of the driver runs on: threads of one process, or one process each.
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
  std::vector<int> ranks_of_nodes;       // ranks are numbered node by node
  int only_rank = -1;                    // -1: all ranks are threads of this process
  std::string ids;                       // folder through which ranks hand each other unique ids
  int only_node = -1;                    // -1: the ranks of all nodes
  std::vector<int> devices;              // of a node's ranks, or of all; empty: 0, 1, ...
  std::vector<size_t> bytes;             // NCCL's total of each call, rounded up to whole floats a rank
  std::vector<std::string> collectives;  // those that IssueAll issues; empty: all five
  uint64_t repeats = 1;
  int version = 0;  // as ncclGetVersion says

  int ranks() const { return std::accumulate(ranks_of_nodes.begin(), ranks_of_nodes.end(), 0); }
  int nodes() const { return static_cast<int>(ranks_of_nodes.size()); }
  // Of the first node; programs that need communicators of whole nodes expect the same of all.
  int ranks_per_node() const { return ranks_of_nodes.front(); }
  bool Has(const NewerFunction& function) const { return version >= function.since; }
  // The node of a rank, and its number among the node's ranks.
  std::pair<int, int> PlaceOf(int rank) const;
  bool Issues(std::string_view collective) const {
    return collectives.empty() || std::ranges::find(collectives, collective) != collectives.end();
  }
};

// Ends the process with 4, saying what NCCL said, where `result` is an error.
void Demand(ncclResult_t result, int rank, const char* what);

// Says on stdout that `what` is skipped because the release lacks `needed`:
//   driver: skipped windows: NCCL 2.26.5 has no ncclCommWindowRegister, which came with 2.27.3
void ReportSkipped(std::string_view what, const NewerFunction& needed, int version);

// The id called `name`: made by the rank that `makes` it, awaited by the others.
ncclUniqueId IdOf(const World& world, const std::string& name, bool makes, int rank);

struct Buffers {
  void* send = nullptr;
  void* receive = nullptr;
};

// One rank, on its own thread. Every call goes through Begin and End, so that what it launched is known.
class Rank {
 public:
  Rank(const World& world, int rank);  // takes its place on the emulated machine
  ~Rank();                             // says what it launched in all

  const World& world() const { return world_; }
  int rank() const { return rank_; }
  int node() const { return node_; }
  int local_rank() const { return local_rank_; }

  // A communicator of all ranks. Where NCCL leaves the calling thread on other CPUs than before, a line says
  // so and the thread gets its own back:
  //   driver: <rank> was left on other CPUs
  ncclComm_t Join(const std::string& name, ncclConfig_t* config = nullptr);
  void Destroy(ncclComm_t communicator);
  // Says how much memory NCCL held on the rank's device:
  //   driver: <rank> holds <bytes> of device memory
  void ReportMemory() const;

  // Device memory with room for NCCL's total `bytes`, until the rank ends. The same memory for each size.
  Buffers BuffersOf(size_t bytes);

  // Runs `issue`, which returns ncclSuccess or ends the process, and says what was launched:
  //   driver: <rank> <function> <total bytes> launched <kernels> <last kernel> <grid> <block>
  // Rank 0 prints the line, unless the world repeats; all ranks count it.
  template <typename Issue>
  void Call(const char* function, size_t total_bytes, Issue&& issue) {
    const uint64_t before = Launches();
    Demand(issue(), rank_, function);
    Report(function, total_bytes, before);
  }
  // The same where the release has `needed`; elsewhere the call is skipped, and rank 0 says so.
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
  uint64_t digest_ = 14695981039346656037u;  // FNV-1a
};

// The collectives of the world, once each; `bytes` is NCCL's total.
void IssueAll(Rank& rank, ncclComm_t communicator, int ranks, size_t bytes);

}  // namespace real_nccl_driver
