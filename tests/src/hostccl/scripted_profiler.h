// SPDX-License-Identifier: Apache-2.0
// What the recording profiler plugins forward to: the test program keeps their events.
#pragma once

#include "src/nccl_abi/profiler_types.h"

extern "C" {

// The members that the tests look at; those that a version or kind of event does not have stay as here.
// Names that the library wrote outlive the plugin; the empty ones here are the plugin's and do not.
struct ScriptedEvent {
  uint64_t type = 0;
  void* parent = nullptr;
  void* parent_group = nullptr;
  int rank = -1;
  const char* function = "";
  const char* type_name = "";
  const char* algorithm = "";
  const char* protocol = "";
  int function_number = -1;   // version 1
  int algorithm_number = -1;  // version 1
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
