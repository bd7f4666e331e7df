// SPDX-License-Identifier: Apache-2.0
// Brings the event descriptors of all versions of NCCL's profiler interface into one form. The versions use
// the same names for the same things. So each descriptor is read member by member, and members that its
// version does not have are skipped. The file of a version (profiler_vN.cc) is the table of its functions.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "plugin/border/no_throw.h"
#include "plugin/chain/chained_profiler.h"
#include "plugin/profiler/event_pairs.h"
#include "plugin/profiler/profiler_session.h"
#include "src/nccl_abi/profiler_types.h"

namespace dynamiccl {

// Reads a member that is a text from version 2 of the interface on, and NCCL's number before that. Returns
// nothing if this build does not know the value.
template <typename Value, typename Given>
std::optional<Value> ReadName(std::optional<Value> (*parse)(std::string_view), int values, Given given) {
  if constexpr (std::is_pointer_v<Given>) {
    return given == nullptr ? std::nullopt : parse(given);
  } else {
    return given < values ? std::optional(static_cast<Value>(given)) : std::nullopt;
  }
}

// Returns the bits of NCCL's activation mask that make NCCL send events of this type
// (src/plugin/profiler.cc). NCCL sends the parents of wanted events, too.
constexpr int BitsThatSend(uint64_t type) {
  constexpr int kKernel = ncclProfileKernelCh | ncclProfileKernelPhase;
  constexpr int kTask = ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin | kKernel;
  constexpr int kColl = ncclProfileColl | kTask;
  constexpr int kP2p = ncclProfileP2p | kTask;
  switch (type) {
    case ncclProfileKernelCh:
      return kKernel;
    case ncclProfileColl:
      return kColl;
    case ncclProfileP2p:
      return kP2p;
    case ncclProfileCollApi:
      return ncclProfileCollApi | kColl;
    case ncclProfileP2pApi:
      return ncclProfileP2pApi | kP2p;
    case ncclProfileGroup:
      return ncclProfileGroup | kColl | kP2p;
    case ncclProfileGroupApi:
      return ncclProfileGroupApi | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch |
             ncclProfileGroup | kColl | kP2p;
    default:
      return -1;  // never sent for our bits alone
  }
}

// The profiler functions that NCCL calls, for plugin-interface version `Known`. Each event goes to
// DynamICCL's own session and to the plugin that the job would have had without DynamICCL. That plugin sees
// only what it would have seen without DynamICCL. NCCL calls the functions on any thread; they throw no
// exceptions.
template <int Known>
struct ProfilerAdapter {
  using Descriptor = typename ProfilerAbi<Known>::Descriptor;
  using StateArguments = typename ProfilerAbi<Known>::StateArguments;
  using Chained = ChainedAs<Known>;

  // The context of one communicator; NCCL keeps it from init to finalize.
  struct Context {
    std::unique_ptr<ProfilerSession> ours;  // null: nothing is timed
    const ChainedProfiler* plugin = nullptr;
    void* theirs = nullptr;
  };

  // Begins DynamICCL's session and the chained plugin's. If one of them fails, it is left out; NCCL never
  // gets an error.
  static ncclResult_t Begin(void** context, const ChainedProfilerInit& init) {
    *context = nullptr;
    NoThrow([&] {
      auto both = std::make_unique<Context>();
      both->plugin = ProfilerToChain(Known);
      if (both->plugin != nullptr && Chained::Init(*both->plugin, &both->theirs, init) != ncclSuccess)
        both->plugin = nullptr;
      both->ours = ProfilerSession::Begin({Known, init.communicator, init.n_ranks, init.mask});
      if (both->ours || both->plugin != nullptr) *context = both.release();
    });
    return ncclSuccess;
  }

  // These serve as init: the first of versions 1 to 3, the second of version 5 and later.
  static ncclResult_t BeginWithMask(void** context, int* mask) { return Begin(context, {.mask = mask}); }
  static ncclResult_t BeginWithName(void** context, uint64_t communicator, int* mask, const char* name,
                                    int n_nodes, int n_ranks, int rank, ncclDebugLogger_t logger) {
    return Begin(context, {mask, communicator, name, n_nodes, n_ranks, rank, logger});
  }

  // Returns nothing for symmetric kernels and for algorithms of a newer NCCL, which DynamICCL cannot choose.
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

  // Starts the event in DynamICCL's session and in the chained plugin. NCCL gets one handle that stands for
  // both.
  static ncclResult_t StartEvent(void* context, void** handle, Descriptor* event) {
    *handle = nullptr;
    auto* const both = static_cast<Context*>(context);
    if (both == nullptr) return ncclSuccess;
    void* const ours = both->ours ? StartOurs(*both->ours, *event) : nullptr;
    void* theirs = nullptr;
    if (both->plugin != nullptr) theirs = StartTheirs(*both, *event);
    NoThrow([&] { *handle = PairsOfProcess().Join(ours, theirs); });
    return ncclSuccess;
  }

  // Returns DynamICCL's handle if the event is needed for durations; else null.
  static void* StartOurs(ProfilerSession& session, const Descriptor& event) {
    if constexpr (requires { event.groupApi; }) {
      if (event.type == ncclProfileGroupApi) session.GroupBegins(event.groupApi.graphCaptured);
    }
    if (event.type == ncclProfileColl) {
      if (const auto collective = ReadCollective(event)) return session.BeginCollective(*collective);
    }
    if constexpr (requires { event.kernelCh; }) {
      if (event.type == ncclProfileKernelCh)
        return session.BeginChannel(PairsOfProcess().OursOf(event.parentObj), StampOf(event));
    }
    return nullptr;
  }

  // Returns the chained plugin's handle. The plugin must see events as if DynamICCL were not there. So it
  // does not get events that NCCL sends only because DynamICCL has set bits in the mask.
  static void* StartTheirs(const Context& both, const Descriptor& event) {
    if (both.ours && (BitsThatSend(event.type) & both.ours->WantedByOthers()) == 0) return nullptr;
    Descriptor own = event;
    own.parentObj = EventPairs::TheirsOf(event.parentObj);
    void* handle = nullptr;
    Chained::Start(*both.plugin, both.theirs, &handle, own);
    return handle;
  }

  static ncclResult_t StopEvent(void* handle) {
    EventPairs& pairs = PairsOfProcess();
    void* const ours = pairs.OursOf(handle);
    ProfilerSession::End(ours);
    // The end of a collective's own event only means that the collective is enqueued. Events of its channels
    // still come and refer to its handle, so only a channel's handle is forgotten here.
    if (ProfilerSession::IsChannel(ours)) pairs.Forget(handle);
    void* const theirs = EventPairs::TheirsOf(handle);
    const ChainedProfiler* plugin = theirs == nullptr ? nullptr : ProfilerToChain(Known);
    return plugin == nullptr ? ncclSuccess : Chained::Stop(*plugin, theirs);
  }

  // DynamICCL reads only the GPU's time stamp at which a channel stopped. The chained plugin gets every
  // state.
  static ncclResult_t RecordEventState(void* handle, ncclProfilerEventState_t state,
                                       StateArguments* arguments) {
    if constexpr (requires { arguments->kernelCh; }) {
      if (state == ncclProfilerKernelChStop && arguments != nullptr)
        ProfilerSession::StopStamp(PairsOfProcess().OursOf(handle),
                                   static_cast<int64_t>(arguments->kernelCh.pTimer));
    }
    void* const theirs = EventPairs::TheirsOf(handle);
    const ChainedProfiler* plugin = theirs == nullptr ? nullptr : ProfilerToChain(Known);
    return plugin == nullptr ? ncclSuccess : Chained::Record(*plugin, theirs, state, arguments);
  }

  static ncclResult_t Finalize(void* context) {
    const std::unique_ptr<Context> both(static_cast<Context*>(context));
    // As in NCCL, finalize is not called for a plugin that set no context.
    if (both == nullptr || both->theirs == nullptr || both->plugin == nullptr) return ncclSuccess;
    return Chained::Finalize(*both->plugin, both->theirs);
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
