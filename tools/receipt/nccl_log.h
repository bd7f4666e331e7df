// SPDX-License-Identifier: Apache-2.0
// Reads NCCL's log (NCCL_DEBUG=INFO) of one or several processes and keeps the lines that show whether a
// setting is in effect. Repeated lines are kept once, with the place of the first.
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

// A variable that NCCL read: "NCCL_ALGO set by environment to Ring". There is one entry for each process and
// value.
struct ReadVariable {
  std::string name;
  std::string value;
  std::string process;
  LogLine line;
};

// Calls of one collective for which NCCL chose the same algorithm and protocol. `config.channels` is the most
// that one of them had; 0: not logged.
struct ChosenCalls {
  std::optional<Collective> collective;  // nothing before NCCL 2.24
  CollectiveConfig config;
  uint64_t calls = 0;
  LogLine line;
};

// Calls for which NCCL chose no algorithm, because they ran as a symmetric kernel or on the copy engine.
struct UntunedCalls {
  std::string function;  // "AllGather"
  std::string kernel;    // "AllGather_STMC"; empty: copy engine
  int channels = 0;
  uint64_t calls = 0;
  LogLine line;
};

// Connections over one transport: "P2P/CUMEM", "SHM/direct", "NET/IB".
struct Connections {
  std::string kind;
  bool gpu_direct = false;  // the line ends with /GDRDMA
  uint64_t count = 0;
  LogLine line;
};

// Says which parts of one process's log the given files contain. If a line is missing, this proves something
// only if the files contain the part in which NCCL would write that line.
struct LoggedProcess {
  bool begins = false;             // its first lines are here
  bool shows_environment = false;  // lines of the subsystem ENV are here
  // The line which says that a communicator of several ranks is complete.
  std::optional<LogLine> joined;

  // True if the log would show a variable that NCCL reads at init.
  bool shows_init() const { return begins && shows_environment && joined; }
};

struct LoggedRelease {
  real_nccl::NcclRelease release;
  LogLine line;
};

// Collects the facts of one or several logs. Pass every line to Take(), in order. Take() accepts any line.
class NcclLog {
 public:
  void Take(const std::string& file, size_t number, std::string_view text);

  // Returns the first line of `notes` that contains `part` and `other`; null without one.
  const LogLine* Find(std::string_view part, std::string_view other = "") const;
  std::vector<const ReadVariable*> ReadsOf(std::string_view name) const;
  // True if the files contain no line of NCCL.
  bool empty() const { return processes.empty(); }

  std::vector<LoggedRelease> releases;             // one for each release that the log names
  std::map<std::string, LoggedProcess> processes;  // by "host:pid"
  std::vector<ReadVariable> reads;
  std::vector<InitialisedChannels> channels;  // one for each wording
  std::vector<ChosenCalls> choices;
  std::vector<UntunedCalls> untuned;
  CommunicatorConfigs configs;           // what programs gave single communicators
  std::map<int, LogLine> cluster_sizes;  // sizes of calls, each with its first call (2.31 and later)
  std::vector<Connections> connections;
  // All other lines of NCCL, each once, and the lines that DynamICCL and PyTorch wrote.
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
