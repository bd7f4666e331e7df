// SPDX-License-Identifier: Apache-2.0
// The functions to which the profiler plugins forward events. The test program records the events.
#pragma once

#include "src/nccl_abi/profiler_types.h"

extern "C" {

// The members that the tests check. A member that a version or a kind of event lacks keeps its default.
// Strings from the library outlive the plugin. The empty default strings belong to the plugin and do not.
struct ScriptedEvent {
  uint64_t type = 0;
  void* parent = nullptr;
  void* parent_group = nullptr;
  int rank = -1;
  const char* function = "";
  const char* type_name = "";
  const char* algorithm = "";
  const char* protocol = "";
  int function_number = -1;   // In version 1 only.
  int algorithm_number = -1;  // In version 1 only.
  uint64_t sequence = 0;
  size_t count = 0;
  int channels = -1;
  int channel = -1;
  int peer = -1;
  int phase = -1;
  int depth = -1;
  uint64_t timer = 0;
};

ncclResult_t scriptedInit(void** context, uint64_t id, int rank, int* mask);
ncclResult_t scriptedStart(void* context, void** handle, const ScriptedEvent* event);
ncclResult_t scriptedStop(void* handle);
ncclResult_t scriptedRecord(void* handle, int state, uint64_t timer);
ncclResult_t scriptedFinalize(void* context);
}
