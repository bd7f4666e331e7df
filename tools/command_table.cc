// SPDX-License-Identifier: Apache-2.0
// Dispatches a command line to its command. The rows come from tools/command_table.def, which is included
// twice: command_table.h declares the functions, this file builds the table.
#include "tools/command_table.h"

namespace dynamiccl {
namespace {

constexpr CommandRow kCommands[] = {
#define DYNAMICCL_COMMAND(name, function, sentence, examples) {{#name, sentence, examples}, function},
#define DYNAMICCL_HELPER(name, function, sentence, examples) {{#name, sentence, examples}, function, true},
#include "tools/command_table.def"
#undef DYNAMICCL_HELPER
#undef DYNAMICCL_COMMAND
};

constexpr CommandProgram kDynamiccl{
    "dynamiccl", "chooses NCCL's algorithm, protocol and channels from what a training job is doing.",
    "dynamiccl doctor\n"
    "dynamiccl demo --quick\n"
    "dynamiccl run --policy p.dcpolicy -- torchrun --nproc-per-node 8 train.py",
    kCommands};

}  // namespace

std::span<const CommandRow> AllCommands() {
  return kCommands;
}

int RunDynamiccl(std::vector<std::string> arguments) {
  return RunCommandProgram(kDynamiccl, std::move(arguments));
}

}  // namespace dynamiccl
