// SPDX-License-Identifier: Apache-2.0
// The program `dynamiccl`. Everything it does is a library function that tools/command_table.def lists.
#include <string>
#include <vector>

#include "tools/command_table.h"
#include "tools/console_log.h"

int main(int argc, char** argv) {
  dynamiccl::StartConsoleLog();
  return dynamiccl::RunDynamiccl(std::vector<std::string>(argv + 1, argv + argc));
}
