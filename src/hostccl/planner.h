// SPDX-License-Identifier: Apache-2.0
// Decides the configuration of a batch of merged calls by the cost model, the tuner plugin, or the user's
// pins. Every communicator has one planner on each rank. All ranks get the same answers if they have the same
// environment, fabric and plugin, because no local measurement is used.
//
// Order of precedence: NCCL_ALGO and NCCL_PROTO, then the call's algSelection, then the tuner's cost table,
// then the model. A call's limits on channels apply within those of the communicator.
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

// Says why a batch cannot be planned: the result of the NCCL call, and the message, which was already logged
// as NCCL WARN.
struct PlanError {
  ncclResult_t result = ncclInternalError;
  std::string message;
};

template <typename T>
using PlanResult = tl::expected<T, PlanError>;

// The part of the communicator's configuration that planning needs.
struct PlannerOptions {
  // minCTAs and maxCTAs as the program gave them in ncclConfig_t (NCCL_CONFIG_UNDEF_INT: not set).
  // NCCL_MIN_CTAS, NCCL_MAX_CTAS and the older NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS override them.
  int min_ctas = NCCL_CONFIG_UNDEF_INT;
  int max_ctas = NCCL_CONFIG_UNDEF_INT;
  // The device that ncclCommCuDevice reports; log lines show it.
  int device = 0;
  EmulatedRelease emulated = EmulatedRelease::k230;
  // False on a single node whose links are not emulated. A call then gets fewer channels (see FewChannels in
  // planner.cc).
  bool links = true;
};

// The calls of one group on one communicator that run as one batch. They have the same collective, operator
// and data type.
struct PlannedBatch {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;                       // NCCL's total (TotalBytes), summed over the calls
  int n_pipe_ops = 1;                       // ceil(calls of the group on this communicator / channels())
  DataType data_type = DataType::kFloat32;  // only for messages: NCCL does not pass it to a tuner
  ReduceOp op = ReduceOp::kSum;             // decides which pairs are possible
  bool registered = false;                  // regBuff: all buffers lie in registered windows on all ranks
  CallChoice choice;                        // only for a batch of one call
};

// One call of a batch whose configuration was chosen, for the question how large its chunks are.
struct ChunkQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total of this call
  CollectiveConfig config;
  size_t default_bytes = 0;  // the chunk that the protocol would use
};

// The interface of a communicator's planner; tests replace it. The communicator owns the planner. Only the
// thread that ends a group calls it.
class Planner {
 public:
  // Makes the planner. Every rank calls it when the communicator is made, once the fabric is known. It loads
  // the tuner plugin and calls the plugin's init. It returns an error if init fails or a variable does not
  // parse; no communicator is made then.
  static PlanResult<std::unique_ptr<Planner>> Create(const CommunicatorInfo& info, const Fabric& fabric,
                                                     const PlannerOptions& options);

  virtual ~Planner() = default;

  // Returns algorithm, protocol and channels (1 to channels()) of a merged batch. It is called once for each
  // batch at the group's end, and never for one rank, zero bytes or point-to-point. Returns ncclInvalidUsage
  // if NCCL_ALGO and NCCL_PROTO allow no pair, and otherwise a plugin's error.
  virtual PlanResult<CollectiveConfig> Choose(const PlannedBatch& batch) = 0;

  // Returns true if the answer to a batch never changes, so that it may be kept. That is not so with a tuner
  // plugin, which has to be asked for each call.
  virtual bool answers_last() const { return false; }

  // Returns the bytes of a chunk for one call: the default, or the size that a tuner of version 6 or 7 gives,
  // which is not limited. The errors are those of Choose.
  virtual PlanResult<size_t> ChunkBytes(const ChunkQuestion& question) = 0;
  // Returns the time that the cost model expects for the batch with this configuration, in microseconds.
  virtual float Microseconds(const PlannedBatch& batch, const CollectiveConfig& config) const = 0;

  // Writes NCCL's TUNING line for one call, on rank 0 of the communicator, if the log shows such lines.
  // `api_bytes` is the API's count * element size, which is per rank for AllGather and ReduceScatter.
  virtual void LogScheduled(Collective collective, uint64_t api_bytes,
                            const CollectiveConfig& config) const = 0;

  // Returns the number of channels of a batch with this algorithm and protocol, if neither a tuner nor the
  // call sets one.
  virtual int UsualChannels(const PlannedBatch&, const CollectiveConfig&) const { return channels(); }

  // Returns the number of channels to set up on this communicator.
  virtual int channels() const = 0;

  // Calls the plugin's finalize, before the communicator's memory is freed. Further calls of this function do
  // nothing.
  virtual void Finalize() = 0;
};

}  // namespace dynamiccl::hostccl
