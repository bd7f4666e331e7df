// SPDX-License-Identifier: Apache-2.0
// The profiler plugin that the job would have had without DynamICCL. The plugin still receives the same
// events. NCCL calls DynamICCL with the newest interface version that both know. DynamICCL calls the plugin
// with the newest version that the plugin and NCCL know, and converts events as NCCL would convert them.
#pragma once

#include <string>

#include "plugin/chain/profiler_conversion.h"
#include "src/base/dynamic_library.h"

namespace dynamiccl {

// Holds what NCCL passes to a profiler's init about a communicator. Up to version 3 that is only the mask.
struct ChainedProfilerInit {
  int* mask = nullptr;
  uint64_t communicator = 0;
  const char* name = nullptr;
  int n_nodes = 0;
  int n_ranks = 0;
  int rank = 0;
  ncclDebugLogger_t logger = nullptr;
};

// A loaded plugin. It is loaded once per process and never unloaded; any thread may call it, as NCCL does.
struct ChainedProfiler {
  DynamicLibrary library;
  int version = 0;
  const void* interface = nullptr;  // ProfilerAbi<version>::Interface

  // Finds the plugin. `named` is the value of NCCL_PROFILER_PLUGIN, empty if the variable is not set.
  // `newest` is the newest interface version that this NCCL knows.
  static Result<ChainedProfiler> Find(const std::string& named, int newest);
};

// Calls `function` with the version of the plugin's interface as a compile-time constant. The version is at
// most Newest.
template <int Newest, typename Function>
ncclResult_t WithVersionOf(const ChainedProfiler& plugin, Function&& function) {
  if (plugin.version == Newest) {
    using Interface = typename ProfilerAbi<Newest>::Interface;
    return function(std::integral_constant<int, Newest>(), *static_cast<const Interface*>(plugin.interface));
  }
  if constexpr (Newest > 1) {
    return WithVersionOf<Newest - 1>(plugin, function);
  } else {
    return ncclSuccess;
  }
}

// Calls the plugin's functions with arguments of version Known, the one in which NCCL calls DynamICCL. Each
// returns the plugin's own result. An event that the plugin's version does not know is dropped, with success.
template <int Known>
struct ChainedAs {
  using Descriptor = typename ProfilerAbi<Known>::Descriptor;
  using StateArguments = typename ProfilerAbi<Known>::StateArguments;

  static ncclResult_t Init(const ChainedProfiler& plugin, void** context, const ChainedProfilerInit& i) {
    return WithVersionOf<Known>(plugin, [&](auto version, const auto& interface) {
      if constexpr (version() <= 3) {
        return interface.init(context, i.mask);
      } else if constexpr (version() == 4) {
        return interface.init(context, i.mask, i.name, i.communicator, i.n_nodes, i.n_ranks, i.rank,
                              i.logger);
      } else {
        return interface.init(context, i.communicator, i.mask, i.name, i.n_nodes, i.n_ranks, i.rank,
                              i.logger);
      }
    });
  }

  static ncclResult_t Start(const ChainedProfiler& plugin, void* context, void** handle, Descriptor& event) {
    return WithVersionOf<Known>(plugin, [&](auto version, const auto& interface) {
      if constexpr (version() == Known) {
        return interface.startEvent(context, handle, &event);
      } else {
        typename ProfilerAbi<version()>::Descriptor older{};
        return ConvertEvent(event, older) ? interface.startEvent(context, handle, &older) : ncclSuccess;
      }
    });
  }

  static ncclResult_t Stop(const ChainedProfiler& plugin, void* handle) {
    return WithVersionOf<Known>(plugin,
                                [&](auto, const auto& interface) { return interface.stopEvent(handle); });
  }

  static ncclResult_t Record(const ChainedProfiler& plugin, void* handle, ncclProfilerEventState_t state,
                             StateArguments* arguments) {
    return WithVersionOf<Known>(plugin, [&](auto version, const auto& interface) {
      if constexpr (version() == Known) {
        return interface.recordEventState(handle, state, arguments);
      } else {
        typename ProfilerAbi<version()>::StateArguments older{};
        if (!ConvertState<version()>(state, arguments, older)) return ncclSuccess;
        return interface.recordEventState(handle, state, arguments == nullptr ? nullptr : &older);
      }
    });
  }

  static ncclResult_t Finalize(const ChainedProfiler& plugin, void* context) {
    return WithVersionOf<Known>(plugin,
                                [&](auto, const auto& interface) { return interface.finalize(context); });
  }
};

}  // namespace dynamiccl
