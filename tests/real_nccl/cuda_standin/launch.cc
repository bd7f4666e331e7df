// SPDX-License-Identifier: Apache-2.0
// Counts kernel launches and finds kernel names by the addresses of the kernels' host functions.
#include "tests/real_nccl/cuda_standin/launch.h"

#include <atomic>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

namespace cuda_standin {
namespace {

std::atomic<uint64_t> launches{0};

// The map is never destroyed, because NCCL's threads may launch kernels while the process exits.
std::map<const void*, std::string>& Names() {
  static auto* names = new std::map<const void*, std::string>;
  return *names;
}

ThreadLaunches& OfThisThread() {
  static thread_local ThreadLaunches of_thread;
  return of_thread;
}

// Returns <name> of a mangled "_Z<length><name><parameters>". The result is empty when the symbol is no
// function of a kernel.
std::string KernelName(const std::string& mangled) {
  if (!mangled.starts_with("_Z") || mangled.find("Kernel") == std::string::npos) return "";
  size_t digits = 2, length = 0;
  while (digits < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[digits])) != 0)
    length = length * 10 + static_cast<size_t>(mangled[digits++] - '0');
  return mangled.substr(digits, length);
}

std::mutex& OwnNamesMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::set<std::string>& OwnNames() {
  static auto* names = new std::set<std::string>;
  return *names;
}

const char* NameOf(const void* kernel) {
  {
    // The handle of a program's own kernel is the address of its stored name.
    const std::lock_guard<std::mutex> lock(OwnNamesMutex());
    for (const std::string& name : OwnNames()) {
      if (name.c_str() == kernel) return name.c_str();
    }
  }
  const auto row = Names().find(kernel);
  return row == Names().end() ? "unknown" : row->second.c_str();
}

}  // namespace

void NameKernels(uintptr_t address, std::span<const FunctionSymbol> functions) {
  for (const FunctionSymbol& function : functions) {
    std::string name = KernelName(function.name);
    if (name.starts_with("nccl"))
      Names().emplace(reinterpret_cast<const void*>(address + function.offset), std::move(name));
  }
}

const void* NameOwnKernel(const char* name) {
  const std::lock_guard<std::mutex> lock(OwnNamesMutex());
  return OwnNames().insert(name).first->c_str();
}

void CountLaunch(const void* kernel, unsigned grid, unsigned block) {
  launches.fetch_add(1, std::memory_order_relaxed);
  ++OfThisThread().count;
  OfThisThread().last = {NameOf(kernel), grid, block};
}

uint64_t LaunchCount() {
  return launches.load(std::memory_order_relaxed);
}

const ThreadLaunches& LaunchesOfThisThread() {
  return OfThisThread();
}

}  // namespace cuda_standin
