// SPDX-License-Identifier: Apache-2.0
// Which communicator of NCCL's log a configuration (ncclConfig_t) belongs to. NCCL logs the members before
// the communicator has a name: "Comm config Max CTAs set to 4", then "... comm 0x7f14 ... - Init START", "4
// coll channels, ...", "... - Init COMPLETE". Lines of one device in one process belong together as long as
// one communicator is made at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/receipt/logged_line.h"

namespace dynamiccl {

// A member that the program set, under NCCL's words for it: "Max CTAs".
struct ConfigMember {
  std::string words;
  std::string value;
  LogLine line;
};

struct ConfiguredCommunicator {
  std::vector<ConfigMember> members;
  // Empty where the log does not show them, or several communicators were made at a time.
  std::optional<InitialisedChannels> channels;
};

class CommunicatorConfigs {
 public:
  // `place`: the process and the device of the line, which must come in the order of the log.
  void Take(const std::string& place, const LogLine& line);

  const std::vector<ConfiguredCommunicator>& all() const { return all_; }

 private:
  // The communicators that one device of a process is making. Numbers are indices of all_.
  struct Place {
    std::vector<size_t> pending;    // configurations whose communicator has not begun
    std::optional<size_t> current;  // of the one communicator that is being made
    int making = 0;                 // communicators between Init START and Init COMPLETE
    bool mixed = false;             // more than one was made at a time since `making` was 0
  };

  void TakeMember(Place& place, const LogLine& line, size_t at);
  static void Start(Place& place);
  static void Complete(Place& place);

  std::map<std::string, Place> places_;
  std::vector<ConfiguredCommunicator> all_;
};

}  // namespace dynamiccl
