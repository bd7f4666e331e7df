// SPDX-License-Identifier: Apache-2.0
// The calls of the tuner plugin for one communicator: init, questions, finalize. They behave like those of
// NCCL 2.28 to 2.32.
#pragma once

#include <memory>
#include <optional>

#include "src/collective/communicator_info.h"
#include "src/cost_model/cost_model.h"
#include "src/hostccl/plugin_host/tuner_plugin.h"

namespace dynamiccl::hostccl {

// The arguments of the plugin's getCollInfo.
struct TunerQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  int n_pipe_ops = 1;
  bool registered = false;  // regBuff
};

// The plugin's answer to one question.
struct TunerAnswer {
  ncclResult_t result = ncclSuccess;
  CostTable table;   // entries that were impossible stay impossible
  int channels = 0;  // 0: the plugin leaves the number to NCCL
};

// The planner owns the session and lets one thread at a time use it. The destructor calls Finalize if nobody
// has called it before.
class TunerSession {
 public:
  TunerSession(std::shared_ptr<const TunerInterface> tuner, void* context)
      : tuner_(std::move(tuner)), context_(context) {}
  TunerSession(TunerSession&&) = default;
  ~TunerSession() { Finalize(); }

  // Calls the plugin's init, which may change the constants of `model`. `newest` is the newest version of the
  // interface that the emulated release knows. Returns ncclSuccess without a session if there is no plugin,
  // and the plugin's error if init fails.
  static ncclResult_t Open(const CommunicatorInfo& info, int newest, CostModelInput& model,
                           std::optional<TunerSession>& session);

  // Asks the plugin one question. The plugin changes a copy of the table, which the answer contains. After
  // Finalize the answer is the table itself.
  TunerAnswer Ask(const TunerQuestion& question, const CostTable& table);

  // Returns true if the plugin decides chunk sizes. Versions 6 and 7 can, if they have getChunkSize.
  bool sets_chunks() const { return tuner_ != nullptr && tuner_->functions.getChunkSize != nullptr; }
  // Calls getChunkSize for the part of a call that one channel carries. `chunk_bytes` holds the default
  // before the call and the plugin's answer after it.
  ncclResult_t AskChunk(Collective collective, uint64_t bytes, const CollectiveConfig& config,
                        size_t& chunk_bytes);

  // Calls the plugin's finalize, only the first time. This may close the library.
  void Finalize();

 private:
  std::shared_ptr<const TunerInterface> tuner_;
  void* context_;
};

}  // namespace dynamiccl::hostccl
