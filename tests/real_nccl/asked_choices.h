// SPDX-License-Identifier: Apache-2.0
// What DynamICCL asked NCCL for, call by call, from its decision log; and policies and rules that ask.
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
  int channels = 0;  // 0: NCCL's
  std::string decided_by;
};

std::ostream& operator<<(std::ostream& out, const AskedChoice& asked);

// One line of a decision log.
std::optional<AskedChoice> ParseDecisionLine(const std::string& line);

// The decisions in a log that `ranks` ranks of one communicator wrote, by call number. Nothing, with *error
// set, where ranks differ or a rank has no decision for a call.
std::optional<std::vector<AskedChoice>> ReadAskedChoices(const std::string& path, int ranks,
                                                         std::string* error);

// The same for processes that are not preloaded and see no calls: a decision about function and bytes is the
// same each time, and each of `calls` gets its own.
std::optional<std::vector<AskedChoice>> ReadAskedSituations(const std::string& path,
                                                            const std::vector<Choice>& calls,
                                                            std::string* error);

// A policy with random weights: choices vary with collective, size and recognised role. The file's SHA-256.
std::string WriteRandomPolicy(const std::string& path, uint64_t seed);

// Rules of every kind that NCCL has on all machines; what they do not name is the policy's.
void WriteSomeRules(const std::string& path);

// Rules that ask for the same pairs as `asked`, and leave the channels to NCCL.
void WriteRulesWithoutChannels(const std::string& path, const std::vector<AskedChoice>& asked);

}  // namespace dynamiccl::real_nccl
