// SPDX-License-Identifier: Apache-2.0
// Reads the processor's name from /proc/cpuinfo.
#include "tools/launch/machine_description.h"

#include <fmt/format.h>

#include <fstream>
#include <thread>

namespace dynamiccl {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string MachineDescription() {
  return fmt::format("{}, {} cores", ProcessorName(), std::thread::hardware_concurrency());
}

}  // namespace dynamiccl
