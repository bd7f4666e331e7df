// SPDX-License-Identifier: Apache-2.0
// Prints, as NAME=value lines, the environment in which any program meets NVIDIA's NCCL over the stand-in:
// for programs that open NCCL themselves, and for the rehearsal of benchmarks/gpu.
//   standin_environment RELEASE MACHINE FOLDER    e.g. 2.28.9 dgx_h100 /tmp/x; FOLDER gets the topology file
// Exit codes: 0 printed, 1 the release was fetched but cannot be run, 2 usage, 3 it was not fetched (1 and 3
// say why).
#include <cstdio>

#include "tests/real_nccl/real_nccl_run.h"

int main(int count, char** words) {
  using namespace dynamiccl::real_nccl;
  const auto release = count == 4 ? ParseRelease(words[1]) : std::nullopt;
  if (!release) {
    std::fprintf(stderr, "usage: standin_environment RELEASE MACHINE FOLDER\n");
    return 2;
  }
  const std::string why_not = WhyNotRunnable(*release);
  if (!why_not.empty()) {
    std::fprintf(stderr, "%s\n", why_not.c_str());
    return WhyNotFetched(*release).empty() ? 1 : 3;
  }
  Environment environment =
      JobEnvironment({.release = *release, .machine = words[2], .scratch_folder = words[3]});
  // The stand-in redirects what is loaded before main.
  environment["LD_PRELOAD"].append(":").append(*FindNcclLibraryFolder(*release)).append("/libnccl.so.2");
  environment.erase("PATH");
  for (const auto& [name, value] : environment) std::printf("%s=%s\n", name.c_str(), value.c_str());
  return 0;
}
