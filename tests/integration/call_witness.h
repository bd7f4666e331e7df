// SPDX-License-Identifier: Apache-2.0
// A library between the preloaded object and hostccl in every_function_job. It keeps the arguments of each
// call on this thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

// The arguments of one call, as the witness keeps them.
template <typename... Arguments>
std::vector<unsigned char> BytesOf(const Arguments&... arguments) {
  std::vector<unsigned char> bytes((sizeof(arguments) + ... + 0));
  [[maybe_unused]] unsigned char* next = bytes.data();
  [[maybe_unused]] const auto add = [&](const auto& argument) {
    std::memcpy(next, &argument, sizeof(argument));
    next += sizeof(argument);
  };
  (add(arguments), ...);
  return bytes;
}

extern "C" {
// Returns the number of calls of this thread since the last WitnessForget.
int WitnessCalls();
const char* WitnessName(int call);
// Returns the bytes of a call's arguments, one after the other.
const unsigned char* WitnessArguments(int call, size_t* bytes);
int WitnessResult(int call);
void WitnessForget();
}
