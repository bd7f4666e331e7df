// SPDX-License-Identifier: Apache-2.0
// Decides which configuration a merged batch of calls runs with: the cost model's choice, the tuner plugin's,
// or what the user pinned. Every communicator has one planner on each rank. All ranks get the same answers as
// long as they have the same environment, fabric and plugin: nothing that is measured locally enters.
//
// Order of precedence: NCCL_ALGO and NCCL_PROTO, then the call's algSelection, then the tuner's cost table,
// then the model. The channel limits of the call lie within those of the communicator.
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

// Holds what an NCCL call returns, and the line of the log, which has already been written as NCCL WARN.
struct PlanError {
  ncclResult_t result = ncclInternalError;
  std::string message;
};

template <typename T>
using PlanResult = tl::expected<T, PlanError>;

// Holds what the communicator's configuration says about planning.
struct PlannerOptions {
  // ncclConfig_t's minCTAs and maxCTAs as given (NCCL_CONFIG_UNDEF_INT: not set). NCCL_MIN_CTAS,
  // NCCL_MAX_CTAS and the older NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS override them.
  int min_ctas = NCCL_CONFIG_UNDEF_INT;
  int max_ctas = NCCL_CONFIG_UNDEF_INT;
  // The device as ncclCommCuDevice reports it; the log shows it.
  int device = 0;
  EmulatedRelease emulated = EmulatedRelease::k230;
};

// Calls of one group on one communicator that run as one batch: same collective, operator and data type.
struct PlannedBatch {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;                       // NCCL's total (TotalBytes), summed over the calls
  int n_pipe_ops = 1;                       // ceil(calls of the group on this communicator / channels())
  DataType data_type = DataType::kFloat32;  // for messages only: NCCL does not tell a tuner
  ReduceOp op = ReduceOp::kSum;             // decides which pairs are possible
  bool registered = false;                  // regBuff: all buffers lie in registered windows on all ranks
  CallChoice choice;                        // of a batch of one call
};

// One call of a batch whose configuration is chosen.
struct ChunkQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total of this call
  CollectiveConfig config;
  size_t default_bytes = 0;  // the chunk that the protocol would use
};

// Interface of a communicator's planner, so that tests can put another one in its place. The communicator
// owns it. Not thread-safe: the thread that ends a group calls it.
class Planner {
 public:
  // Called by every rank at communicator init, once the fabric is known. Loads the tuner plugin and calls its
  // init. An error is that of the plugin's init, or a variable that does not parse; making the communicator
  // fails with it.
  static PlanResult<std::unique_ptr<Planner>> Create(const CommunicatorInfo& info, const Fabric& fabric,
                                                     const PlannerOptions& options);

  virtual ~Planner() = default;

  // Called once for each merged batch at the group's end; never for one rank, zero bytes or point-to-point.
  // The answer has algorithm, protocol and channels (1 to channels()). ncclInvalidUsage when NCCL_ALGO and
  // NCCL_PROTO leave nothing; otherwise a plugin's error.
  virtual PlanResult<CollectiveConfig> Choose(const PlannedBatch& batch) = 0;

  // Bytes of a chunk for one call: the default, or what a tuner of version 6 wants (not clamped). Errors as
  // for Choose.
  virtual PlanResult<size_t> ChunkBytes(const ChunkQuestion& question) = 0;
  // The cost model expects the batch to take this long with the configuration.
  virtual float Microseconds(const PlannedBatch& batch, const CollectiveConfig& config) const = 0;

  // Writes NCCL's TUNING line for one scheduled call, on rank 0 of the communicator and only when the log
  // asks for it. `api_bytes` is count * element size as the API got it, which is per rank for AllGather and
  // ReduceScatter.
  virtual void LogScheduled(Collective collective, uint64_t api_bytes,
                            const CollectiveConfig& config) const = 0;

  // Number of channels to set up on this communicator.
  virtual int channels() const = 0;

  // Calls the plugin's finalize, at destroy and before the communicator's memory goes. Further calls do
  // nothing.
  virtual void Finalize() = 0;
};

}  // namespace dynamiccl::hostccl
