// SPDX-License-Identifier: Apache-2.0
// The algorithms, one coroutine each. All ranks start the coroutine for the same call, and each coroutine
// does its rank's part on one channel. `work` must outlive the coroutine. docs/algorithms.md explains the
// algorithms.
#pragma once

#include "src/hostccl/algorithms/channel_work.h"
#include "src/hostccl/lane.h"
#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

// Ring: the ranks form a circle, and data travel in one direction.
Lane RingAllReduce(Primitives& ring, const ChannelWork& work);
Lane RingAllGather(Primitives& ring, const ChannelWork& work);
Lane RingReduceScatter(Primitives& ring, const ChannelWork& work);
Lane RingBroadcast(Primitives& ring, const ChannelWork& work);
Lane RingReduce(Primitives& ring, const ChannelWork& work);

// Tree: the two halves of an AllReduce, up to the root and down again, run side by side on a channel.
Lane TreeReduceUp(Primitives& tree, const ChannelWork& work);
Lane TreeBroadcastDown(Primitives& tree, const ChannelWork& work);

// PAT uses binomial trees, one for each rank's block, and moves data along all of them at once (pat_tree.h).
Lane PatAllGather(Primitives& peers, const ChannelWork& work);
Lane PatReduceScatter(Primitives& peers, const ChannelWork& work);

// NVLS: the ranks of one node access each other's buffers directly. If the buffers cannot be reached, the
// data go through `slots`.
Lane OnePassAllReduce(Primitives& slots, const ChannelWork& work);
Lane OnePassAllGather(Primitives& slots, const ChannelWork& work);
Lane OnePassReduceScatter(Primitives& slots, const ChannelWork& work);

// NVLSTree: NVLS on each node and a tree between the nodes. The two lanes run side by side on a channel, and
// NvlsTreeUp is polled first.
Lane NvlsTreeUp(Primitives& tree, const ChannelWork& work);
Lane NvlsTreeDown(Primitives& tree, const ChannelWork& work);

// With HOSTCCL_SUM=rank_order these replace every algorithm that reduces. Their result does not depend on
// algorithm, protocol or number of channels.
Lane OrderedAllReduce(Primitives& peers, const ChannelWork& work);
Lane OrderedReduceScatter(Primitives& peers, const ChannelWork& work);
Lane OrderedReduce(Primitives& peers, const ChannelWork& work);

}  // namespace dynamiccl::hostccl
