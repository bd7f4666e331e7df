// SPDX-License-Identifier: Apache-2.0
// Every algorithm, one coroutine each: called by all ranks with the same call, it does this rank's part on
// one channel. `work` must outlive the lane.
#pragma once

#include "src/hostccl/algorithms/channel_work.h"
#include "src/hostccl/lane.h"
#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

Lane RingAllReduce(Primitives& ring, const ChannelWork& work);
Lane RingAllGather(Primitives& ring, const ChannelWork& work);
Lane RingReduceScatter(Primitives& ring, const ChannelWork& work);
Lane RingBroadcast(Primitives& ring, const ChannelWork& work);
Lane RingReduce(Primitives& ring, const ChannelWork& work);

// The two halves of Tree AllReduce, side by side on a channel.
Lane TreeReduceUp(Primitives& tree, const ChannelWork& work);
Lane TreeBroadcastDown(Primitives& tree, const ChannelWork& work);

Lane PatAllGather(Primitives& peers, const ChannelWork& work);
Lane PatReduceScatter(Primitives& peers, const ChannelWork& work);

// The NVLS slot: the ranks of one node on each other's buffers; through `slots` where they cannot be reached.
Lane OnePassAllReduce(Primitives& slots, const ChannelWork& work);
Lane OnePassAllGather(Primitives& slots, const ChannelWork& work);
Lane OnePassReduceScatter(Primitives& slots, const ChannelWork& work);

// The NVLSTree slot: that on each node, and a tree between the nodes; side by side on a channel, up first.
Lane NvlsTreeUp(Primitives& tree, const ChannelWork& work);
Lane NvlsTreeDown(Primitives& tree, const ChannelWork& work);

// HOSTCCL_SUM=rank_order, in place of the above.
Lane OrderedAllReduce(Primitives& peers, const ChannelWork& work);
Lane OrderedReduceScatter(Primitives& peers, const ChannelWork& work);
Lane OrderedReduce(Primitives& peers, const ChannelWork& work);

}  // namespace dynamiccl::hostccl
