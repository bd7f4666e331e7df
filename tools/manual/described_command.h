// SPDX-License-Identifier: Apache-2.0
// Every command with its options, as the commands themselves register them: what completions and manual pages
// are made of.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl {

struct DescribedOption {
  std::vector<std::string> names;    // "-o", "--output"; a positional argument's one name is without dashes
  std::string value;                 // "PATH"; empty for a flag
  std::vector<std::string> choices;  // all values there are, where they are listed
  std::string sentence;
  std::string default_value;
  bool required = false;

  bool positional() const { return !names.front().starts_with('-'); }
};

struct DescribedCommand {
  std::string name;  // "trace import"
  std::string sentence;
  std::vector<std::string> examples;
  std::vector<DescribedOption> options;
  std::vector<DescribedCommand> actions;  // "trace import" of "trace"
  std::string footer;
};

// In the order of the help. No command is carried out.
std::vector<DescribedCommand> DescribeCommands();

}  // namespace dynamiccl
