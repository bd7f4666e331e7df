// SPDX-License-Identifier: Apache-2.0
// Everything in NCCL's log (NCCL_DEBUG=INFO) that shows what became of a setting, of all processes that wrote
// into it. Lines that repeat are kept once, with the first place where they stand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "tests/real_nccl/nccl_release.h"
#include "tools/receipt/communicator_configs.h"
#include "tools/receipt/logged_line.h"

namespace dynamiccl {

// NCCL read a variable: "NCCL_ALGO set by environment to Ring". One for each process and value.
struct ReadVariable {
  std::string name;
  std::string value;
  std::string process;
  LogLine line;
};

// Calls with the same choice. `channels` are the most that one of them had; 0: not logged.
struct ChosenCalls {
  std::optional<Collective> collective;  // nothing before NCCL 2.24
  CollectiveConfig config;
  uint64_t calls = 0;
  LogLine line;
};

// Calls that went past NCCL's choice of algorithm: to a symmetric kernel, or to the copy engine.
struct UntunedCalls {
  std::string function;  // "AllGather"
  std::string kernel;    // "AllGather_STMC"; empty: copy engine
  int channels = 0;
  uint64_t calls = 0;
  LogLine line;
};

// Connections of one kind: "P2P/CUMEM", "SHM/direct", "NET/IB".
struct Connections {
  std::string kind;
  bool gpu_direct = false;  // the line ends with /GDRDMA
  uint64_t count = 0;
  LogLine line;
};

// Says which parts of one process's log the files contain, because a line that is missing proves something
// only if its part is there.
struct LoggedProcess {
  bool begins = false;             // its first lines are here
  bool shows_environment = false;  // lines of the subsystem ENV are here
  // The line that ends the making of a communicator of several ranks.
  std::optional<LogLine> joined;

  // A variable that NCCL reads at init would show.
  bool shows_init() const { return begins && shows_environment && joined; }
};

struct LoggedRelease {
  real_nccl::NcclRelease release;
  LogLine line;
};

// One or several logs. Take() is given their lines in order; no line is an error.
class NcclLog {
 public:
  void Take(const std::string& file, size_t number, std::string_view text);

  // The first kept line that holds `part`, or both parts; null without one.
  const LogLine* Find(std::string_view part, std::string_view other = "") const;
  std::vector<const ReadVariable*> ReadsOf(std::string_view name) const;
  // Whether a line of NCCL was seen at all.
  bool empty() const { return processes.empty(); }

  std::vector<LoggedRelease> releases;             // one for each release that the log names
  std::map<std::string, LoggedProcess> processes;  // by "host:pid"
  std::vector<ReadVariable> reads;
  std::vector<InitialisedChannels> channels;  // one for each wording
  std::vector<ChosenCalls> choices;
  std::vector<UntunedCalls> untuned;
  CommunicatorConfigs configs;           // what programs gave single communicators
  std::map<int, LogLine> cluster_sizes;  // that calls had, with the first such call (2.31 and later)
  std::vector<Connections> connections;
  // Each other line of NCCL once, and what DynamICCL and PyTorch wrote between them.
  std::vector<LogLine> notes;

 private:
  void TakeOfProcess(const std::string& process, LogLine line);
  bool TakeRead(const std::string& process, const LogLine& line);
  bool TakeChoice(const LogLine& line);
  bool TakeUntuned(const LogLine& line);
  bool TakeConnection(const LogLine& line);
  void TakeInit(LoggedProcess& process, const LogLine& line);
  void Note(LogLine line);

  std::set<std::string> noted_;
};

}  // namespace dynamiccl
