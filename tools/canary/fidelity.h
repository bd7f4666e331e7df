// SPDX-License-Identifier: Apache-2.0
// Checks that the described machine behaves like the user's: compares the canary's run of the release in use
// with a log of the user's own job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/canary/cell.h"
#include "tools/canary/communicator_log.h"

namespace dynamiccl {

// The comparison of a run with a log. The machine is described well if there are no disagreements.
struct Fidelity {
  std::vector<std::string> disagreements;  // one sentence for each kind, in the order in which to mend them
  std::vector<std::string> agreements;     // what is equal: "16 channels", "3 graphs of 16 ranks"
  std::vector<std::string> not_in_log;     // what could not be compared: "graphs"
  // The NCCL variables of the log's job that the run lacks or has with another value.
  std::map<std::string, std::string> variables_missing;
};

// Compares the canary's run of the release in use (`cell`), which had `nodes` nodes and these variables, with
// the user's log. Graphs, links and trees are compared for each rank whose lines are in the log. Lines
// that the log lacks, because they are cut or of other ranks, are no difference.
Fidelity CompareWithLog(const LoggedJob& logged, const Cell& cell, int nodes,
                        const std::map<std::string, std::string>& environment);

// Says what to do about the disagreements: which options to give, and which log to send.
std::string AdviceFor(const Fidelity& fidelity);

}  // namespace dynamiccl
