// SPDX-License-Identifier: Apache-2.0
// The tuner plugin that the job would have had without DynamICCL. It answers first, and its answer is the
// default that stays wherever DynamICCL chooses nothing.
#pragma once

#include <memory>
#include <string>

#include "src/base/dynamic_library.h"
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl {

// The arguments that NCCL passes to a tuner's init, under one name for all versions of the interface.
struct TunerInit {
  uint64_t communicator = 0;
  size_t n_ranks = 0;
  size_t n_nodes = 0;
  ncclDebugLogger_t logger = nullptr;
  ncclNvlDomainInfo_v5_t* nvl_domains = nullptr;
  ncclTunerConstants_v5_t* constants = nullptr;
  ncclTunerConstants_v7_t* all_constants = nullptr;  // the same with the row of Rubin; null before version 7
  bool asks_chunk_sizes = false;                     // version 6 and later
};

// Holds the question that NCCL asks a tuner about one batch of collectives.
struct TunerRequest {
  ncclFunc_t function = ncclFuncBroadcast;
  size_t bytes = 0;
  int n_pipe_ops = 0;
  float* table = nullptr;  // [n_algorithms][n_protocols]
  int n_algorithms = 0;
  int n_protocols = 0;
  int registered = 0;
  int* channels = nullptr;
};

// The user's plugin, of any supported version. It is loaded once per process and never unloaded; sessions
// call it on the thread on which NCCL calls them.
class ChainedTuner {
 public:
  // Finds the plugin in NCCL's search order. `named` is the value of NCCL_TUNER_PLUGIN: a path, a file name,
  // X for libnccl-tuner-X.so, or empty for libnccl-tuner.so. If there is no such library, the network plugin
  // is searched. Versions 7 to 2 of the interface are understood.
  static Result<std::unique_ptr<ChainedTuner>> Find(const std::string& named);

  // The functions for one communicator, identified by `context`. They return the plugin's own results. After
  // Init, all constants that `init` points to contain the plugin's edits.
  ncclResult_t Init(const TunerInit& init, void** context) const;
  ncclResult_t Ask(void* context, const TunerRequest& request) const;
  ncclResult_t Finalize(void* context) const;

  const char* name() const { return tuner_.functions.name; }
  // The plugin's function for chunk sizes; null below version 6.
  decltype(ncclTuner_v7_t::getChunkSize) chunk_size() const { return tuner_.functions.getChunkSize; }

 private:
  DynamicLibrary library_;
  TunerInterface tuner_;
};

}  // namespace dynamiccl
