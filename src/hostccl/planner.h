// SPDX-License-Identifier: Apache-2.0
// Which config a merged batch of calls runs with: the cost model's choice, the tuner plugin's, or what the
// user pinned. One Planner a communicator and rank. All ranks get the same answers as long as they have the
// same environment, fabric and plugin: nothing measured locally enters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/communicator_info.h"
#include "src/collective/data_type.h"
#include "src/collective/fabric.h"
#include "src/collective/reduce_op.h"
#include "src/hostccl/call_choice.h"
#include "src/hostccl/emulated_release.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::hostccl {

// What an NCCL call is to return, and the line of the log (already written as NCCL WARN).
struct PlanError {
  ncclResult_t result = ncclInternalError;
  std::string message;
};

template <typename T>
using PlanResult = tl::expected<T, PlanError>;

struct PlannerOptions {
  // ncclConfig_t's minCTAs and maxCTAs as given (NCCL_CONFIG_UNDEF_INT: not set). NCCL_MIN_CTAS,
  // NCCL_MAX_CTAS and the older NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS win over them.
  int min_ctas = NCCL_CONFIG_UNDEF_INT;
  int max_ctas = NCCL_CONFIG_UNDEF_INT;
  // As ncclCommCuDevice reports it: shown in the log.
  int device = 0;
  EmulatedRelease emulated = EmulatedRelease::k230;
};

// Calls of one group on one communicator that run as one batch: same collective, operator and data type.
struct PlannedBatch {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;                       // NCCL's total (TotalBytes), summed over the calls
  int n_pipe_ops = 1;                       // ceil(calls of the group on this communicator / channels())
  DataType data_type = DataType::kFloat32;  // for messages only: NCCL does not tell a tuner
  ReduceOp op = ReduceOp::kSum;             // decides what is possible
  bool registered = false;                  // regBuff: all buffers lie in registered windows, on all ranks
  CallChoice choice;                        // of a batch of one call
};

// One call of a batch whose config is chosen.
struct ChunkQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total of this call
  CollectiveConfig config;
  size_t default_bytes = 0;  // the chunk that the protocol would use
};

class Planner {
 public:
  // Called by every rank at communicator init, once the fabric is known; loads the tuner plugin and calls its
  // init. An error is the plugin's own (init failed) or a variable that does not parse: communicator creation
  // fails with it.
  static PlanResult<std::unique_ptr<Planner>> Create(const CommunicatorInfo& info, const Fabric& fabric,
                                                     const PlannerOptions& options);

  virtual ~Planner() = default;

  // Once a merged batch at group end, on the thread that ends the group; never for n_ranks 1, zero bytes or
  // point-to-point. Algorithm, protocol and channels (1 to channels()) are all filled in. Not thread-safe per
  // communicator. ncclInvalidUsage when NCCL_ALGO and NCCL_PROTO leave nothing; a plugin's error result
  // otherwise.
  virtual PlanResult<CollectiveConfig> Choose(const PlannedBatch& batch) = 0;

  // Bytes of a chunk for one call: the default, or what a tuner of version 6 wants (not clamped). Same thread
  // and errors as Choose.
  virtual PlanResult<size_t> ChunkBytes(const ChunkQuestion& question) = 0;
  // What the cost model expects the batch to take with this config.
  virtual float Microseconds(const PlannedBatch& batch, const CollectiveConfig& config) const = 0;

  // NCCL's TUNING line of one scheduled call; `api_bytes` is count * element size as the API got it (per rank
  // for AllGather and ReduceScatter). Writes on rank 0 of the communicator only, and only when the log asks
  // for it.
  virtual void LogScheduled(Collective collective, uint64_t api_bytes,
                            const CollectiveConfig& config) const = 0;

  // Channels to set up on this communicator.
  virtual int channels() const = 0;

  // At destroy, before the communicator's memory goes: the plugin's finalize. Further calls do nothing.
  virtual void Finalize() = 0;
};

}  // namespace dynamiccl::hostccl
