// SPDX-License-Identifier: Apache-2.0
// Prints, as NAME=value lines, the environment in which any program runs on NVIDIA's NCCL and the stand-in.
// Programs that open NCCL themselves use it, and so does the rehearsal of benchmarks/gpu.
//   standin_environment RELEASE MACHINE FOLDER    for example 2.28.9 dgx_h100 /tmp/x
// The topology file is written into FOLDER. Exit codes: 0 printed; 1 the release was fetched but cannot be
// run; 2 usage; 3 the release was not fetched. With 1 and 3 a message says why.
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
  // NCCL is preloaded too, because the stand-in redirects only libraries that are loaded before main.
  environment["LD_PRELOAD"].append(":").append(*FindNcclLibraryFolder(*release)).append("/libnccl.so.2");
  environment.erase("PATH");
  for (const auto& [name, value] : environment) std::printf("%s=%s\n", name.c_str(), value.c_str());
  return 0;
}
