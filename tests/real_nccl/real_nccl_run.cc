// SPDX-License-Identifier: Apache-2.0
// Builds the driver's command line. Paths of the built objects come from CMake.
#include "tests/real_nccl/real_nccl_run.h"

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

Environment JobEnvironment(const RunRequest& request) {
  const std::string preload =
      std::string(REAL_NCCL_STANDIN) + (request.preloaded.empty() ? "" : ":") + request.preloaded;
  Environment environment = {
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

// `options` select the rank where it has a process of its own.
std::string CommandLine(const RunRequest& request, const Environment& environment,
                        const std::string& options) {
  std::ostringstream line;
  line << "timeout -k 5 60 env -i";
  for (const auto& [name, value] : environment) line << " '" << name << "=" << value << "'";
  line << " '" << REAL_NCCL_DRIVER << "' " << options << request.nodes << " " << request.ranks_per_node;
  for (const size_t bytes : request.bytes) line << " " << bytes;
  return line.str();
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs the commands side by side and waits for all. Output goes to files, so that no process waits for a
// reader.
std::vector<RunOutcome> RunTogether(const std::vector<std::string>& commands, const std::string& folder) {
  std::ostringstream script;
  for (size_t index = 0; index < commands.size(); ++index) {
    const std::string output = folder + "/output_" + std::to_string(index);
    script << "( " << commands[index] << " >'" << output << "' 2>&1; echo $? >'" << output << ".code' ) & ";
  }
  script << "wait";
  std::vector<RunOutcome> outcomes(commands.size());
  if (std::system(script.str().c_str()) != 0) return outcomes;
  for (size_t index = 0; index < commands.size(); ++index) {
    const std::string output = folder + "/output_" + std::to_string(index);
    std::istringstream(ReadAll(output + ".code")) >> outcomes[index].exit_code;
    outcomes[index].output = ReadAll(output);
    outcomes[index].choices = ParseTuningLog(outcomes[index].output);
  }
  return outcomes;
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
  return RunTogether({CommandLine(request, JobEnvironment(request), "")}, request.scratch_folder).front();
}

std::vector<RunOutcome> RunDriverProcesses(const RunRequest& request, const std::vector<Environment>& own) {
  const std::string id_file = request.scratch_folder + "/unique_id";
  std::filesystem::remove(id_file);
  std::vector<std::string> commands;
  for (size_t rank = 0; rank < own.size(); ++rank) {
    Environment environment = JobEnvironment(request);
    for (const auto& [name, value] : own[rank]) environment[name] = value;
    const std::string options = "--rank " + std::to_string(rank) + " --id '" + id_file + "' ";
    commands.push_back(CommandLine(request, environment, options));
  }
  return RunTogether(commands, request.scratch_folder);
}

}  // namespace dynamiccl::real_nccl
