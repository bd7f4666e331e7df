// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/call_witness.h"

#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/nccl_abi/nccl_api.h"

namespace {

struct Call {
  const char* name;
  std::vector<unsigned char> arguments;
  int result = -1;
};
thread_local std::vector<Call> t_calls;

}  // namespace

// Defines the strong names, which the interposer looks for. They call hostccl's.
#define WITNESSED(since, door, result, name, parameters, arguments) \
  WITNESS_##result(name, parameters, arguments)
#define WITNESS_ncclResult_t(name, parameters, arguments)                                                \
  extern "C" __attribute__((visibility("default"))) ncclResult_t pnccl##name parameters {                \
    static const auto real = reinterpret_cast<decltype(&nccl##name)>(::dlsym(RTLD_NEXT, "pnccl" #name)); \
    t_calls.push_back({#name, BytesOf arguments});                                                       \
    const size_t place = t_calls.size() - 1;                                                             \
    const ncclResult_t answer = real arguments;                                                          \
    t_calls[place].result = answer;                                                                      \
    return answer;                                                                                       \
  }
#define WITNESS_Passed(since, door, result, name, parameters, arguments)
#define WITNESS_Moves WITNESSED
#define WITNESS_MovesFromInside WITNESSED
#define WITNESS_MovesAsConfigured WITNESSED
#define WITNESS_Named WITNESSED
#define WITNESS(since, door, result, name, parameters, arguments) \
  WITNESS_##door(since, door, result, name, parameters, arguments)

DYNAMICCL_NCCL_FUNCTIONS(WITNESS)
DYNAMICCL_NCCL_FURTHER_FUNCTIONS(WITNESS)

#define SHOWN extern "C" __attribute__((visibility("default")))

SHOWN int WitnessCalls() {
  return static_cast<int>(t_calls.size());
}
SHOWN const char* WitnessName(int call) {
  return t_calls[static_cast<size_t>(call)].name;
}
SHOWN const unsigned char* WitnessArguments(int call, size_t* bytes) {
  *bytes = t_calls[static_cast<size_t>(call)].arguments.size();
  return t_calls[static_cast<size_t>(call)].arguments.data();
}
SHOWN int WitnessResult(int call) {
  return t_calls[static_cast<size_t>(call)].result;
}
SHOWN void WitnessForget() {
  t_calls.clear();
}
