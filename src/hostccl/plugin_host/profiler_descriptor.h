// SPDX-License-Identifier: Apache-2.0
// Converts an event descriptor of the newest profiler interface to an older version. The adapters
// (profiler_v*.cc) share these functions, which are templates over the older structures.
#pragma once

#include "src/nccl_abi/profiler_v7.h"

namespace dynamiccl::hostccl {

using NewestDescriptor = ncclProfilerEventDescr_v7_t;

// Fills in the members that all events share, for versions 1 to 4. These versions have no API events, so the
// parent of a collective or transfer is the Group event.
template <typename Old>
Old FlatHead(const NewestDescriptor& event) {
  Old old{};
  old.type = static_cast<decltype(old.type)>(event.type);
  old.parentObj = event.parentObj;
  if (event.type == ncclProfileColl) old.parentObj = event.coll.parentGroup;
  if (event.type == ncclProfileP2p) old.parentObj = event.p2p.parentGroup;
  old.rank = event.rank;
  return old;
}

// Copies a collective's members for versions 2 and later, in which names are strings.
template <typename Coll>
void CopyCollective(const NewestDescriptor& event, Coll& old) {
  old.seqNumber = event.coll.seqNumber;
  old.func = event.coll.func;
  old.sendBuff = event.coll.sendBuff;
  old.recvBuff = event.coll.recvBuff;
  old.count = event.coll.count;
  old.root = event.coll.root;
  old.datatype = event.coll.datatype;
  old.nWarps = event.coll.nWarps;
  old.algo = event.coll.algo;
  old.proto = event.coll.proto;
}

// Copies the members of a send or receive for versions 2 and later.
template <typename P2p>
void CopyTransfer(const NewestDescriptor& event, P2p& old) {
  old.func = event.p2p.func;
  old.buff = event.p2p.buff;
  old.datatype = event.p2p.datatype;
  old.count = event.p2p.count;
  old.peer = event.p2p.peer;
}

// Converts Group, Coll and P2p events for versions 2 and 3. Returns false for other events. The
// communicator's name and hash stay empty, as in those NCCL releases that also support version 4.
template <typename Old>
bool ConvertTasks(const NewestDescriptor& event, Old& old) {
  old = FlatHead<Old>(event);
  switch (event.type) {
    case ncclProfileGroup:
      return true;
    case ncclProfileColl:
      CopyCollective(event, old.coll);
      old.coll.nMaxChannels = event.coll.nChannels;
      return true;
    case ncclProfileP2p:
      CopyTransfer(event, old.p2p);
      return true;
    default:
      return false;
  }
}

// Converts API events for versions 5 and 6. Returns false for other events.
template <typename Old>
bool ConvertApiEvents(const NewestDescriptor& event, Old& old) {
  switch (event.type) {
    case ncclProfileGroupApi:
      old.groupApi.graphCaptured = event.groupApi.graphCaptured;
      old.groupApi.groupDepth = event.groupApi.groupDepth;
      return true;
    case ncclProfileCollApi:
      old.collApi.func = event.collApi.func;
      old.collApi.count = event.collApi.count;
      old.collApi.datatype = event.collApi.datatype;
      old.collApi.root = event.collApi.root;
      old.collApi.stream = event.collApi.stream;
      old.collApi.graphCaptured = event.collApi.graphCaptured;
      return true;
    case ncclProfileP2pApi:
      old.p2pApi.func = event.p2pApi.func;
      old.p2pApi.count = event.p2pApi.count;
      old.p2pApi.datatype = event.p2pApi.datatype;
      old.p2pApi.stream = event.p2pApi.stream;
      old.p2pApi.graphCaptured = event.p2pApi.graphCaptured;
      return true;
    case ncclProfileKernelLaunch:
      old.kernelLaunch.stream = event.kernelLaunch.stream;
      return true;
    default:
      return false;
  }
}

// Converts all events that versions 5 and 6 know. Returns false for others.
template <typename Old>
bool ConvertWithParents(const NewestDescriptor& event, Old& old) {
  old = Old{};
  old.type = event.type;
  old.parentObj = event.parentObj;
  old.rank = event.rank;
  switch (event.type) {
    case ncclProfileGroup:
      return true;
    case ncclProfileColl:
      CopyCollective(event, old.coll);
      old.coll.nChannels = event.coll.nChannels;
      old.coll.parentGroup = event.coll.parentGroup;
      return true;
    case ncclProfileP2p:
      CopyTransfer(event, old.p2p);
      old.p2p.nChannels = event.p2p.nChannels;
      old.p2p.parentGroup = event.p2p.parentGroup;
      return true;
    case ncclProfileKernelCh:
      old.kernelCh.channelId = event.kernelCh.channelId;
      old.kernelCh.pTimer = event.kernelCh.pTimer;
      return true;
    default:
      return ConvertApiEvents(event, old);
  }
}

}  // namespace dynamiccl::hostccl
