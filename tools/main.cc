// SPDX-License-Identifier: Apache-2.0
// The program `dynamiccl`: everything it does is a library function listed in tools/command_table.def.
#include <string>
#include <vector>

#include "tools/command_table.h"
#include "tools/talk.h"

int main(int argc, char** argv) {
  dynamiccl::StartTalk();
  return dynamiccl::RunDynamiccl(std::vector<std::string>(argv + 1, argv + argc));
}
