// SPDX-License-Identifier: Apache-2.0
// One cell of a canary: what the host side of one NCCL release does with one communicator on a described
// machine.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "tests/real_nccl/nccl_release.h"
#include "tools/canary/communicator_log.h"
#include "tools/canary/described_machine.h"

namespace dynamiccl {

using real_nccl::NcclRelease;

// When the ranks connect. By default NCCL connects at the first call of an algorithm. NCCL_RUNTIME_CONNECT=0
// or NCCL_CUMEM_ENABLE=0 (which vLLM sets) makes it connect all algorithms while the communicator is made.
enum class Connecting { kAtFirstCall, kAtInit };

// Returns the collectives for which NCCL chooses an algorithm. A run of the canary calls all or some of them.
std::vector<Collective> AllJudged();

struct CellRequest {
  NcclRelease release;
  std::string library_folder;              // with libnccl.so.2
  std::vector<DescribedMachine> machines;  // one for all nodes, or one for each: each node is then a process
  std::vector<int> ranks_of_nodes;         // number of ranks of each node
  std::vector<int> gpus;  // of each node's ranks, or of all ranks, in rank order; empty: 0, 1, ...
  std::vector<Collective> collectives = AllJudged();
  std::vector<uint64_t> bytes;  // NCCL's total of each call
  Connecting connecting = Connecting::kAtFirstCall;
  std::map<std::string, std::string> environment;  // the job's NCCL_ variables
  // RLIMIT_STACK in KiB, which is the stack size of each thread. "unlimited" gives threads the 2 MiB of the C
  // library. Empty: 8 MiB, the default of Linux, whatever the limit of this machine is.
  std::string stack_kib;
  int limit_s = 60;  // an idle run counts as hung after this time, any run after three times this time

  int ranks() const;
  bool nodes_are_unlike() const { return machines.size() > 1; }
  // True if each node is a process of its own. This is also needed for nodes of an NVLink domain, because
  // NCCL before 2.27 distinguishes such nodes only by their topologies.
  bool has_process_a_node() const { return nodes_are_unlike() || machines.front().nvlink_domain_nodes > 0; }
};

enum class CellEnd {
  kPassed,
  kInitFailed,  // an error while the communicator was made
  kCallFailed,  // an error of a collective
  kCrashed,     // ended by a signal or by NCCL's own abort
  kHung,        // the limit passed
  kNotRun,      // the stand-in lacks something that the release needs: no statement about the release
};
const char* Name(CellEnd end);

// One result of NCCL's graph search (NCCL_GRAPH_DUMP_FILE): the rings, the trees or others.
struct CellGraph {
  int channels = 0;
  double intra_gbps = 0;  // of one channel, inside a node and between nodes
  double inter_gbps = 0;
  std::string intra_type;  // "NVL", "PIX", "SYS", ...
  std::string inter_type;
  std::set<std::string> adapters;  // numbers of the adapters that the channels use
  int pattern = 0;                 // NCCL_TOPO_PATTERN_*
  double latency_us = 0;           // of the network
  bool same_channels = false;      // all channels use the same ring or tree

  bool operator==(const CellGraph&) const = default;
};

struct CellChoice {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  CollectiveConfig config;
  // Microseconds that the release's own cost model expects for each (algorithm, protocol) that it offers.
  // Empty before 2.22.
  std::map<std::pair<Algorithm, Protocol>, float> costs;

  bool operator==(const CellChoice&) const = default;
};

struct Cell {
  CellEnd end = CellEnd::kNotRun;
  double seconds = 0;
  int ranks = 0;
  int ranks_joined = 0;               // ranks whose communicator was made
  std::vector<std::string> warnings;  // of NCCL, each once, without rank and place
  int channels = 0;
  int nvls_channels = 0;
  int p2p_channels = 0;
  int p2p_channels_per_peer = 0;
  std::map<std::string, CellGraph> graphs;  // by Name(Algorithm)
  // Number of connections that use each adapter. The key is the adapter's number, or "node/adapter" such as
  // "1/3" where nodes differ.
  std::map<std::string, int> adapters;
  // A graph uses a fused adapter and also one of the adapters that were fused into it, so the graph search
  // counted the bandwidth of that adapter twice.
  bool counts_adapters_twice = false;
  std::map<std::string, int> transports;  // number of connections over "P2P", "SHM", "NET", ...
  // False if two ranks launched different kernels, or kernels with different numbers of channels. On GPUs
  // such a call hangs, or its result is wrong.
  bool ranks_launch_alike = true;
  // False if a thread that made a communicator stays on the CPUs of its GPU afterwards.
  bool restores_cpus = true;
  uint64_t device_memory_bytes = 0;  // the most that NCCL held at once on a GPU; 0: not known
  std::vector<CellChoice> choices;
  std::map<std::string, int>
      stacks;           // of a hung run: innermost functions of NCCL (StacksOf), and the threads in them
  std::string problem;  // kNotRun: what is missing; kCrashed: by which signal
  CommunicatorLog log;  // details for the comparison with a user's log

  bool passed() const { return end == CellEnd::kPassed; }
};

// Runs one release in a process of its own. The process inherits no variable of the caller, and has its own
// /dev/shm where the machine allows it. An error means that this machine cannot run the cell: the CUDA
// stand-in (a library that emulates GPUs) or disk space is missing. A fault of the release is no error:
// Cell::end and Cell::problem describe it.
Result<Cell> RunCell(const Installation& installation, const CellRequest& request);

}  // namespace dynamiccl
