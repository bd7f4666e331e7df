// SPDX-License-Identifier: Apache-2.0
// One communicator's conversation with the tuner plugin: init, questions, finalize, with the behaviour of
// NCCL 2.28 to 2.32.
#pragma once

#include <memory>
#include <optional>

#include "src/collective/communicator_info.h"
#include "src/cost_model/cost_model.h"
#include "src/hostccl/plugin_host/tuner_plugin.h"

namespace dynamiccl::hostccl {

// Holds the arguments of getCollInfo.
struct TunerQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  int n_pipe_ops = 1;
  bool registered = false;  // regBuff
};

// Holds what the plugin made of one question.
struct TunerAnswer {
  ncclResult_t result = ncclSuccess;
  CostTable table;   // entries that came in as impossible stay impossible
  int channels = 0;  // 0: the plugin leaves the number to NCCL
};

// The planner owns it; the thread that ends groups calls it. Finalize is called at the latest by the
// destructor.
class TunerSession {
 public:
  TunerSession(std::shared_ptr<const TunerInterface> tuner, void* context)
      : tuner_(std::move(tuner)), context_(context) {}
  TunerSession(TunerSession&&) = default;
  ~TunerSession() { Finalize(); }

  // Calls the plugin's init, which may edit the constants of `model`. Returns ncclSuccess and no session when
  // there is no plugin, and the plugin's error when init fails.
  static ncclResult_t Open(const CommunicatorInfo& info, CostModelInput& model,
                           std::optional<TunerSession>& session);

  // Lets the plugin change a copy of the table.
  TunerAnswer Ask(const TunerQuestion& question, const CostTable& table);

  // Returns whether the plugin decides chunk sizes (version 6 with getChunkSize).
  bool sets_chunks() const { return tuner_->functions.getChunkSize != nullptr; }
  // Calls getChunkSize for the part of a call that one channel carries. `chunk_bytes` is the preset and then
  // the answer.
  ncclResult_t AskChunk(Collective collective, uint64_t bytes, const CollectiveConfig& config,
                        size_t& chunk_bytes);

  // Calls the plugin's finalize, once. The library may be closed by it.
  void Finalize();

 private:
  std::shared_ptr<const TunerInterface> tuner_;
  void* context_;
};

}  // namespace dynamiccl::hostccl
