// SPDX-License-Identifier: Apache-2.0
// Finds out to which communicator of NCCL's log a configuration (ncclConfig_t) belongs. NCCL logs the members
// before the communicator has a name: "Comm config Max CTAs set to 4", then "... comm 0x7f14 ... - Init
// START", "4 coll channels, ...", "... - Init COMPLETE". The lines of one device in one process belong
// together as long as the process creates one communicator at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/receipt/logged_line.h"

namespace dynamiccl {

// A member of ncclConfig_t that the program set, with the words by which NCCL logs it: "Max CTAs".
struct ConfigMember {
  std::string words;
  std::string value;
  LogLine line;
};

struct ConfiguredCommunicator {
  std::vector<ConfigMember> members;
  // The channels of the communicator. Nothing where the log does not show them, or where several
  // communicators were created at once.
  std::optional<InitialisedChannels> channels;
};

class CommunicatorConfigs {
 public:
  // Reads one line of the log; lines must come in the log's order. `place` names the process and device that
  // wrote the line.
  void Take(const std::string& place, const LogLine& line);

  const std::vector<ConfiguredCommunicator>& all() const { return all_; }

 private:
  // The communicators that one device of a process is creating. Numbers are indices in all_.
  struct Place {
    std::vector<size_t> pending;    // configurations whose communicator has not begun
    std::optional<size_t> current;  // the only communicator that is being made
    int making = 0;                 // communicators between Init START and Init COMPLETE
    bool mixed = false;             // several were made at once since `making` was 0
  };

  void TakeMember(Place& place, const LogLine& line, size_t at);
  static void Start(Place& place);
  static void Complete(Place& place);

  std::map<std::string, Place> places_;
  std::vector<ConfiguredCommunicator> all_;
};

}  // namespace dynamiccl
