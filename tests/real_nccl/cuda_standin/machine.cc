// SPDX-License-Identifier: Apache-2.0
// Parses the description of a machine.
#include "tests/real_nccl/cuda_standin/machine.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>

namespace cuda_standin {
namespace {

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

using Values = std::map<std::string, std::string>;

bool ReadValues(const std::string& text, Values* values, std::string* error) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = Trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos ||
        !values->emplace(Trimmed(line.substr(0, equals)), Trimmed(line.substr(equals + 1))).second) {
      *error = "line " + std::to_string(number) + ": expected one 'key = value' a key, got '" + line + "'";
      return false;
    }
  }
  return true;
}

bool TakeText(Values* values, const char* key, std::string* out, std::string* error) {
  const auto row = values->find(key);
  if (row == values->end() || row->second.empty()) {
    *error = std::string("no value for '") + key + "'";
    return false;
  }
  *out = row->second;
  values->erase(row);
  return true;
}

bool TakeNumber(Values* values, const char* key, int* out, std::string* error) {
  std::string text;
  if (!TakeText(values, key, &text, error)) return false;
  char* end = nullptr;
  *out = static_cast<int>(std::strtol(text.c_str(), &end, 10));
  if (*end == '\0' && *out >= 0) return true;
  *error = std::string("'") + key + "' is not a number: '" + text + "'";
  return false;
}

bool TakeNumberIfThere(Values* values, const char* key, int* out, std::string* error) {
  return !values->contains(key) || TakeNumber(values, key, out, error);
}

// Reads one or more numbers in the given base.
bool TakeNumbers(Values* values, const char* key, int base, std::vector<int>* out, std::string* error) {
  std::string text;
  if (!TakeText(values, key, &text, error)) return false;
  std::istringstream words(text);
  words >> std::setbase(base);
  for (int number = 0; words >> number;) out->push_back(number);
  if (words.eof() && !out->empty()) return true;
  *error = std::string("'") + key + "' holds something that is no " +
           (base == 16 ? "hexadecimal number" : "number") + ": '" + text + "'";
  return false;
}

bool TakeIdentity(Values* values, Machine* machine, std::string* error) {
  std::vector<int> numbers;
  if (!TakeNumbers(values, "gpu_identity", 16, &numbers, error)) return false;
  if (numbers.size() != 2) {
    *error = "'gpu_identity' needs a device and a board";
    return false;
  }
  machine->gpu_device = numbers[0];
  machine->gpu_board = numbers[1];
  return true;
}

bool TakeCpu(Values* values, Machine* machine, std::string* error) {
  std::string text;
  if (!TakeText(values, "cpu", &text, error)) return false;
  std::istringstream words(text);
  if (words >> machine->cpu_vendor >> machine->cpu_family >> machine->cpu_model) return true;
  *error = "'cpu' needs vendor, family and model: '" + text + "'";
  return false;
}

bool TakeAdapters(Values* values, Machine* machine, std::string* error) {
  const auto row = values->find("adapters_at");
  if (row != values->end() && row->second == "none") {
    values->erase(row);
    return true;
  }
  if (!TakeNumbers(values, "adapters_at", 10, &machine->adapters_at, error)) return false;
  const int devices = static_cast<int>(machine->gpu_buses.size());
  int least = 0;
  for (const int gpu : machine->adapters_at) {
    if (gpu < least || gpu >= devices) {
      *error = "'adapters_at' needs 'none' or ascending numbers of GPUs, below " + std::to_string(devices);
      return false;
    }
    least = gpu + 1;
  }
  return true;
}

bool TakePlaces(Values* values, Machine* machine, std::string* error) {
  if (!TakeNumbers(values, "gpu_buses", 16, &machine->gpu_buses, error) ||
      !TakeNumber(values, "gpus_per_switch", &machine->gpus_per_switch, error) ||
      !TakeNumber(values, "gpus_per_numa_node", &machine->gpus_per_numa_node, error))
    return false;
  if (machine->gpus_per_switch > 0 && machine->gpus_per_numa_node > 0 &&
      machine->gpus_per_numa_node % machine->gpus_per_switch == 0)
    return true;
  *error = "'gpus_per_numa_node' must be a multiple of 'gpus_per_switch'";
  return false;
}

// Reads the value of the key "lacks", which names the parts that do not work on this machine.
bool TakeLacks(Values* values, Lacks* lacks, std::string* error) {
  if (!values->contains("lacks")) return true;
  std::string text;
  if (!TakeText(values, "lacks", &text, error)) return false;
  const std::map<std::string, bool*> known = {{"peer_access", &lacks->peer_access},
                                              {"multicast_binding", &lacks->multicast_binding},
                                              {"fabric_handles", &lacks->fabric_handles}};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto one = known.find(word);
    if (one == known.end()) {
      *error = "'lacks' knows peer_access, multicast_binding and fabric_handles, not '" + word + "'";
      return false;
    }
    *one->second = true;
  }
  return true;
}

}  // namespace

std::optional<Machine> ParseMachine(const std::string& text, std::string* error) {
  Values values;
  Machine machine;
  const bool complete =
      ReadValues(text, &values, error) && TakeText(&values, "name", &machine.name, error) &&
      TakeNumber(&values, "architecture", &machine.architecture, error) &&
      TakeNumber(&values, "multiprocessors", &machine.multiprocessors, error) &&
      TakeNumber(&values, "shared_memory_bytes", &machine.shared_memory_bytes, error) &&
      TakeNumber(&values, "memory_gib", &machine.memory_gib, error) &&
      TakeNumber(&values, "driver_version", &machine.driver_version, error) &&
      TakePlaces(&values, &machine, error) && TakeIdentity(&values, &machine, error) &&
      TakeCpu(&values, &machine, error) && TakeText(&values, "pcie_speed", &machine.pcie_speed, error) &&
      TakeNumber(&values, "nvlinks_per_gpu", &machine.nvlinks_per_gpu, error) &&
      TakeNumber(&values, "multicast", &machine.multicast, error) &&
      TakeNumber(&values, "network_mbps", &machine.network_mbps, error) &&
      TakeAdapters(&values, &machine, error) &&
      TakeNumberIfThere(&values, "c2c_links", &machine.c2c_links, error) &&
      TakeNumberIfThere(&values, "nvlink_domain_nodes", &machine.nvlink_domain_nodes, error) &&
      TakeLacks(&values, &machine.lacks, error);
  if (!complete) return std::nullopt;
  if (!values.empty()) {
    *error = "unknown key '" + values.begin()->first + "'";
    return std::nullopt;
  }
  return machine;
}

std::optional<Machine> LoadMachine(const std::string& path, std::string* error) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    *error = "cannot read " + path;
    return std::nullopt;
  }
  auto machine = ParseMachine(text.str(), error);
  if (!machine) *error = path + ": " + *error;
  return machine;
}

std::string PciAddress(const Machine& machine, int device) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02x:00.0",
                static_cast<unsigned>(machine.gpu_buses.at(device)) & 0xff);
  return text;
}

int DeviceAtPciAddress(const Machine& machine, const char* address) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) return -1;
  if (domain != 0 || slot != 0 || function != 0) return -1;
  for (size_t device = 0; device < machine.gpu_buses.size(); ++device) {
    if (static_cast<unsigned>(machine.gpu_buses[device]) == bus) return static_cast<int>(device);
  }
  return -1;
}

const Machine& ThisMachine() {
  // The machine is never destroyed, because destructors of other libraries may still read it.
  static const Machine* machine = [] {
    const char* path = std::getenv("CUDA_STANDIN_MACHINE");
    std::string error = "CUDA_STANDIN_MACHINE names no machine file";
    auto loaded = path == nullptr ? std::nullopt : LoadMachine(path, &error);
    if (!loaded) {
      std::fprintf(stderr, "cuda_standin: %s\n", error.c_str());
      std::_Exit(3);
    }
    return new Machine(*loaded);
  }();
  return *machine;
}

}  // namespace cuda_standin
