// SPDX-License-Identifier: Apache-2.0
// The commands of `dynamiccl-lab`. Each has its own source in studies/commands.
#pragma once

#include "tools/command_program.h"

namespace dynamiccl {

Result<int> HeadroomCommand(CommandLine& line);
Result<int> ClustersCommand(CommandLine& line);
Result<int> CompareCommand(CommandLine& line);
Result<int> HeldOutCommand(CommandLine& line);
Result<int> TradeoffsCommand(CommandLine& line);
Result<int> CappedCommand(CommandLine& line);
Result<int> ZeroPaperCommand(CommandLine& line);
Result<int> HostcclCalibrationCommand(CommandLine& line);

}  // namespace dynamiccl
