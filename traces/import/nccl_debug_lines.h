// SPDX-License-Identifier: Apache-2.0
// Parses single lines of an NCCL_DEBUG=INFO log, of NCCL 2.19 to 2.32 and RCCL:
//     <host>:<pid>:<tid> [<device>] NCCL INFO <text>
// and of the records that the example of NCCL's log plugin (NCCL_LOG_PLUGIN) prints:
//     LOG/Plugin: level=INFO subsys=0x40 rank=<host>:<pid>:<tid> msg="<text>"
// Several processes that write to one file cut each other's lines, so a line may contain the beginnings of
// several. The parsers return nothing for a text that is cut or of another kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"

namespace dynamiccl {

// The text that one process wrote into a line.
struct DebugPiece {
  std::string_view host;
  int64_t process_id = 0;
  int64_t thread_id = 0;
  int32_t device = -1;    // -1: not in this line
  std::string_view text;  // after "NCCL INFO ", or between the quotes of "msg="
  bool cut = false;       // whether text of another line follows within this one
};

// Returns the pieces in their order in the line; all but the last one are cut. The last one is cut too if the
// rest of another line follows it, whose beginning with the process's name is torn off. Empty for lines of
// other programs. The views point into `line`.
std::vector<DebugPiece> DebugPieces(std::string_view line);

// A call, from SUBSYS COLL: "AllReduce: opCount 1e sendbuff ... stream 0x3d187ce0 [task 0 globalrank 0]".
struct DebugCall {
  Collective collective = Collective::kAllReduce;
  uint64_t operation = 0;  // opCount, equal for the calls of a group
  uint64_t count = 0;      // the API's argument
  int32_t data_type = 0;
  int32_t op = 0;
  int32_t root = 0;
  std::string_view communicator;  // pointer as printed: "0x3c85b900"
  int32_t n_ranks = 0;
  std::string_view stream;
  int32_t job_rank = -1;  // RCCL's globalrank
};
std::optional<DebugCall> ParseDebugCall(std::string_view text);
// Begins every record that the log plugin's example prints.
inline constexpr std::string_view kPluginMark = "LOG/Plugin: level=";

// True if the text begins a call, complete or cut.
bool BeginsDebugCall(std::string_view text);

// A choice of NCCL, from SUBSYS TUNING: "AllReduce: 4 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}",
// and before 2.24 "4 Bytes -> Algo 1 proto 0 time 25.268644".
struct DebugChoice {
  std::optional<Collective> collective;  // not printed before 2.22
  // Bytes of one rank for AllGather and ReduceScatter in most releases, else NCCL's total.
  uint64_t bytes = 0;
  CollectiveConfig config;
};
std::optional<DebugChoice> ParseDebugChoice(std::string_view text);
// True for choices about which no tuner is asked: "AllReduce [Symmetric]: 8 Bytes -> Kernel ...", "[Copy
// Engine]".
bool IsChoiceWithoutTuner(std::string_view text);

// A communicator, from SUBSYS INIT: "... comm 0x28e3fc20 rank 4 nranks 16 cudaDev 4 ... commId
// 0x6cdf408afa1ed52b - Init START", and "comm 0x.. rank 0 nRanks 16 nNodes 2 ...".
struct DebugCommunicator {
  std::string_view communicator;
  int32_t rank = 0;
  int32_t n_ranks = 0;
  uint64_t id = 0;      // commId; 0: not in this line
  int32_t n_nodes = 0;  // 0: not in this line
};
std::optional<DebugCommunicator> ParseDebugCommunicator(std::string_view text);

// A variable that NCCL read, from SUBSYS ENV: "NCCL_ALGO set by environment to Ring", "NCCL_IB_HCA set to
// mlx5_0". The full stop that NCCL writes behind a number is no part of the value.
struct DebugVariable {
  std::string name;
  std::string value;
};
std::optional<DebugVariable> ParseDebugVariable(std::string_view text);

}  // namespace dynamiccl
