// SPDX-License-Identifier: Apache-2.0
// Reads from a decision log what DynamICCL asked NCCL for in each call. Also writes policies and rules that
// ask for choices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/real_nccl/choices.h"

namespace dynamiccl::real_nccl {

struct AskedChoice {
  std::string function;
  size_t bytes = 0;
  bool leaves_nccl_alone = true;
  Algorithm algorithm = Algorithm::kUndefined;
  Protocol protocol = Protocol::kUndefined;
  int channels = 0;  // 0: NCCL's own number
  std::string decided_by;
};

std::ostream& operator<<(std::ostream& out, const AskedChoice& asked);

// Parses one line of a decision log. Returns nothing when the line is no decision.
std::optional<AskedChoice> ParseDecisionLine(const std::string& line);

// Returns the decisions in a log that `ranks` ranks of one communicator wrote, in the order of call numbers.
// Returns nothing and sets *error when ranks differ or a rank has no decision for a call.
std::optional<std::vector<AskedChoice>> ReadAskedChoices(const std::string& path, int ranks,
                                                         std::string* error);

// Does the same for processes that are not preloaded and see no calls. Their decisions depend only on
// function and bytes, and each of `calls` gets the decision for its own. Returns nothing and sets *error when
// two decisions differ or one is missing.
std::optional<std::vector<AskedChoice>> ReadAskedSituations(const std::string& path,
                                                            const std::vector<Choice>& calls,
                                                            std::string* error);

// Writes a policy with random weights, whose choices vary with collective, size and recognised role. Returns
// the SHA-256 of the file, or an empty string when the file cannot be written.
std::string WriteRandomPolicy(const std::string& path, uint64_t seed);

// Writes rules of every kind that NCCL can follow on all machines. The policy decides the calls that no rule
// names.
void WriteSomeRules(const std::string& path);

// Writes rules that ask for the algorithms and protocols of `asked` and leave the channels to NCCL.
void WriteRulesWithoutChannels(const std::string& path, const std::vector<AskedChoice>& asked);

}  // namespace dynamiccl::real_nccl
