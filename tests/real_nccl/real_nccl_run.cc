// SPDX-License-Identifier: Apache-2.0
// Builds the driver's command line. Paths of the built objects come from CMake.
#include "tests/real_nccl/real_nccl_run.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"

namespace dynamiccl::real_nccl {
namespace {

std::string WriteTopology(const std::string& folder) {
  std::string error;
  const auto machine = cuda_standin::LoadMachine(REAL_NCCL_MACHINE, &error);
  const std::string path = folder + "/topology.xml";
  std::ofstream(path) << (machine ? cuda_standin::TopologyXml(*machine) : "");
  return path;
}

std::map<std::string, std::string> Environment(const RunRequest& request) {
  const std::string preload =
      std::string(REAL_NCCL_STANDIN) + (request.preloaded.empty() ? "" : ":") + request.preloaded;
  std::map<std::string, std::string> environment = {
      {"PATH", "/usr/bin:/bin"},
      {"HOME", request.scratch_folder},  // no ~/.nccl.conf
      {"LD_PRELOAD", preload},
      {"LD_LIBRARY_PATH", std::string(REAL_NCCL_DRIVER_LIBRARIES) + ":" + request.nccl_folder},
      {"CUDA_STANDIN_MACHINE", REAL_NCCL_MACHINE},
      {"NCCL_TOPO_FILE", WriteTopology(request.scratch_folder)},
      {"NCCL_NET_PLUGIN", REAL_NCCL_NET_PLUGIN},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,TUNING"},
  };
  for (const auto& [name, value] : request.environment) environment[name] = value;
  return environment;
}

std::string CommandLine(const RunRequest& request) {
  std::ostringstream line;
  line << "env -i";
  for (const auto& [name, value] : Environment(request)) line << " '" << name << "=" << value << "'";
  line << " timeout -k 5 60 '" << REAL_NCCL_DRIVER << "' " << kNodes << " " << kRanksPerNode;
  for (const size_t bytes : request.bytes) line << " " << bytes;
  line << " 2>&1";
  return line.str();
}

}  // namespace

std::optional<std::string> FindNcclLibraryFolder(const std::string& version) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root =
      cache != nullptr && *cache != '\0' ? cache : std::string(home == nullptr ? "" : home) + "/.cache";
  const std::string folder = root + "/dynamiccl/wheels/nccl-" + version + "/nvidia/nccl/lib";
  if (!std::filesystem::exists(folder + "/libnccl.so.2")) return std::nullopt;
  return folder;
}

RunOutcome RunDriver(const RunRequest& request) {
  RunOutcome outcome;
  FILE* pipe = popen(CommandLine(request).c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> chunk;
  while (const size_t bytes = std::fread(chunk.data(), 1, chunk.size(), pipe))
    outcome.output.append(chunk.data(), bytes);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.choices = ParseTuningLog(outcome.output);
  return outcome;
}

}  // namespace dynamiccl::real_nccl
