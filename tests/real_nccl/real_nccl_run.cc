// SPDX-License-Identifier: Apache-2.0
// Builds the driver's command line and runs it. CMake passes the paths of the built objects.
#include "tests/real_nccl/real_nccl_run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/topology_xml.h"

namespace dynamiccl::real_nccl {

std::string MachineFile(const RunRequest& request) {
  if (request.machine.find('/') != std::string::npos) return request.machine;
  return std::string(REAL_NCCL_MACHINES) + "/" + request.machine + ".machine";
}

namespace {

std::string WriteTopology(const RunRequest& request) {
  std::string error;
  const auto machine = cuda_standin::LoadMachine(MachineFile(request), &error);
  const std::string path = request.scratch_folder + "/topology.xml";
  std::ofstream(path) << (machine ? cuda_standin::TopologyXml(*machine) : "");
  return path;
}

constexpr const char* kTunerLink = "libnccl-tuner-dynamiccl.so";

void NameTuner(const NcclRelease& release, Environment* environment) {
  const bool by_name = release.loads_plugins_by_name_only();
  if (by_name) (*environment)["LD_LIBRARY_PATH"] += ":" REAL_NCCL_DYNAMICCL_FOLDER;
  (*environment)["NCCL_TUNER_PLUGIN"] =
      std::string(by_name ? "" : REAL_NCCL_DYNAMICCL_FOLDER "/") + kTunerLink;
}

void OpenDoor(const NcclRelease& release, Door door, Environment* environment) {
  if (door == Door::kPreload || door == Door::kBoth || door == Door::kStaticPlugin)
    (*environment)["LD_PRELOAD"] += std::string(":") + REAL_NCCL_DYNAMICCL_FOLDER "/libdynamiccl.so";
  if (door == Door::kTuner || door == Door::kBoth) NameTuner(release, environment);
  if (door == Door::kStaticPlugin) (*environment)["NCCL_TUNER_PLUGIN"] = "STATIC_PLUGIN";
}

}  // namespace

Environment JobEnvironment(const RunRequest& request) {
  const std::string folder = FindNcclLibraryFolder(request.release).value_or("");
  Environment environment = {
      {"PATH", "/usr/bin:/bin"},
      {"HOME", request.scratch_folder},  // a folder without .nccl.conf
      {"LD_PRELOAD", REAL_NCCL_STANDIN},
      {"LD_LIBRARY_PATH", std::string(REAL_NCCL_DRIVER_LIBRARIES) + ":" + folder},
      {"CUDA_STANDIN_MACHINE", MachineFile(request)},
      {"NCCL_TOPO_FILE", WriteTopology(request)},
      // The value is a suffix and no path, because releases up to 2.20 accept only a suffix.
      {"NCCL_NET_PLUGIN", "instant"},
      {"NCCL_SOCKET_IFNAME", "lo"},
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,TUNING"},
  };
  if (request.release.logs_no_choice()) environment["NCCL_PROFILER_PLUGIN"] = REAL_NCCL_WITNESS;
  OpenDoor(request.release, request.door, &environment);
  for (const auto& [name, value] : request.environment) {
    const bool adds = name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH";
    environment[name] = adds ? environment[name] + ":" + value : value;
  }
  return environment;
}

namespace {

// `options` select one rank when each rank has a process of its own.
std::string CommandLine(const RunRequest& request, const Environment& environment,
                        const std::string& options) {
  std::ostringstream line;
  line << "timeout -k 5 " << request.limit_s << " env -i";
  for (const auto& [name, value] : environment) line << " '" << name << "=" << value << "'";
  line << " '" << REAL_NCCL_DRIVER << "' " << options << "--program " << request.program << " --repeat "
       << request.repeats << " '" << request.scratch_folder << "/ids' " << request.nodes << " "
       << request.ranks_per_node;
  for (const size_t bytes : request.bytes) line << " " << bytes;
  return line.str();
}

void EmptyIds(const RunRequest& request) {
  std::filesystem::remove_all(request.scratch_folder + "/ids");
  std::filesystem::create_directories(request.scratch_folder + "/ids");
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs the commands side by side and waits for all of them. Output goes to files, so that no process waits
// for a reader.
std::vector<RunOutcome> RunTogether(const std::vector<std::string>& commands, const std::string& folder,
                                    bool output_stays) {
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
    if (output_stays) continue;
    outcomes[index].output = ReadAll(output);
    outcomes[index].choices = ParseTuningLog(outcomes[index].output);
  }
  return outcomes;
}

}  // namespace

namespace {

// Returns whether the process maps the file. When the process ends meanwhile, reading fails, and getline
// reports the end of the file.
bool Maps(const std::filesystem::path& process, const std::string& path) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

bool MappedBySomebody(const std::string& path) {
  std::error_code ignored;  // processes may start and end meanwhile
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    if (Maps(process.path(), path)) return true;
  }
  return false;
}

constexpr const char* kSharedMemory = "/dev/shm/";

// Keeps only the names that exist and that no living process maps.
void KeepUnused(std::vector<std::string>* names) {
  std::erase_if(*names, [](const std::string& name) {
    return !std::filesystem::exists(kSharedMemory + name) || MappedBySomebody(kSharedMemory + name);
  });
}

constexpr std::string_view kDoorNames[] = {"none", "preload", "tuner", "both", "static_plugin"};
}  // namespace

std::string_view Name(Door door) {
  return kDoorNames[static_cast<size_t>(door)];
}

std::optional<Door> ParseDoor(std::string_view name) {
  for (size_t door = 0; door < std::size(kDoorNames); ++door) {
    if (kDoorNames[door] == name) return static_cast<Door>(door);
  }
  return std::nullopt;
}

RunOutcome RunDriver(const RunRequest& request) {
  EmptyIds(request);
  return RunTogether({CommandLine(request, JobEnvironment(request), "")}, request.scratch_folder, false)
      .front();
}

std::vector<RunOutcome> RunDriverProcesses(const RunRequest& request, const std::vector<Environment>& own,
                                           bool output_stays) {
  EmptyIds(request);
  std::vector<std::string> commands;
  for (size_t rank = 0; rank < own.size(); ++rank) {
    Environment environment = JobEnvironment(request);
    for (const auto& [name, value] : own[rank]) environment[name] = value;
    commands.push_back(CommandLine(request, environment, "--rank " + std::to_string(rank) + " "));
  }
  return RunTogether(commands, request.scratch_folder, output_stays);
}

std::vector<std::string> SharedMemoryNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSharedMemory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nccl-")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> LeftSharedMemory(const std::vector<std::string>& before) {
  std::vector<std::string> left;
  std::ranges::set_difference(SharedMemoryNames(), before, std::back_inserter(left));
  KeepUnused(&left);
  if (left.empty()) return left;
  // A file of another job is unmapped for a moment after it is created and before it is removed. A second
  // look after 500 ms leaves out such files.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  KeepUnused(&left);
  return left;
}

}  // namespace dynamiccl::real_nccl
