// SPDX-License-Identifier: Apache-2.0
// How the descriptors of all versions of NCCL's profiler interface become one form. The versions name the
// same things alike, so each is read by what it has; its file (profiler_vN.cc) is the table of its functions.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "plugin/profiler/profiler_session.h"
#include "src/nccl_abi/profiler_types.h"

namespace dynamiccl {

// A name from version 2 on, NCCL's number before; empty for what we do not know.
template <typename Value, typename Given>
std::optional<Value> ReadName(std::optional<Value> (*parse)(std::string_view), int values, Given given) {
  if constexpr (std::is_pointer_v<Given>) {
    return given == nullptr ? std::nullopt : parse(given);
  } else {
    return given < values ? std::optional(static_cast<Value>(given)) : std::nullopt;
  }
}

template <typename Descriptor, typename StateArguments>
struct ProfilerDoor {
  static void* Begin(const ProfilerInit& init) { return ProfilerSession::Begin(init).release(); }

  // Empty for symmetric kernels and algorithms of a newer NCCL: they are not ours to choose.
  static std::optional<ProfiledCollective> ReadCollective(const Descriptor& event) {
    const auto& coll = event.coll;
    const auto collective = ReadName<Collective>(ParseCollective, kTunableCollectives, coll.func);
    const auto data_type = ReadName<DataType>(ParseDataType, kDataTypes, coll.datatype);
    const auto algorithm = ReadName<Algorithm>(ParseAlgorithm, kAlgorithms, coll.algo);
    const auto protocol = ReadName<Protocol>(ParseProtocol, kProtocols, coll.proto);
    if (!collective || !data_type || !algorithm || !protocol) return std::nullopt;
    ProfiledCollective read{event.rank, *collective, coll.count, *data_type, {*algorithm, *protocol, 0}};
    if constexpr (requires { coll.nChannels; }) {
      read.config.channels = coll.nChannels;
    } else {
      read.config.channels = coll.nMaxChannels;
    }
    return read;
  }

  static ncclResult_t StartEvent(void* context, void** handle, Descriptor* event) {
    *handle = nullptr;
    auto* const session = static_cast<ProfilerSession*>(context);
    if (session == nullptr) return ncclSuccess;
    if constexpr (requires { event->groupApi; }) {
      if (event->type == ncclProfileGroupApi) session->GroupBegins(event->groupApi.graphCaptured);
    }
    if (event->type == ncclProfileColl) {
      if (const auto collective = ReadCollective(*event)) *handle = session->BeginCollective(*collective);
    }
    if constexpr (requires { event->kernelCh; }) {
      if (event->type == ncclProfileKernelCh)
        *handle = session->BeginChannel(event->parentObj, StampOf(*event));
    }
    return ncclSuccess;
  }

  static ncclResult_t StopEvent(void* handle) {
    ProfilerSession::End(handle);
    return ncclSuccess;
  }

  static ncclResult_t RecordEventState(void* handle, ncclProfilerEventState_t state,
                                       StateArguments* arguments) {
    if constexpr (requires { arguments->kernelCh; }) {
      if (state == ncclProfilerKernelChStop && arguments != nullptr)
        ProfilerSession::StopStamp(handle, static_cast<int64_t>(arguments->kernelCh.pTimer));
    }
    return ncclSuccess;
  }

  static ncclResult_t Finalize(void* context) {
    delete static_cast<ProfilerSession*>(context);
    return ncclSuccess;
  }

 private:
  static int64_t StampOf(const Descriptor& event) {
    if constexpr (requires { event.kernelCh.pTimer; }) {
      return static_cast<int64_t>(event.kernelCh.pTimer);
    } else {
      return 0;
    }
  }
};

}  // namespace dynamiccl
