// SPDX-License-Identifier: Apache-2.0
// One communicator's conversation with the tuner plugin: init, questions, finalize, with the semantics of
// NCCL 2.28 to 2.32.
#pragma once

#include <memory>
#include <optional>

#include "src/collective/communicator_info.h"
#include "src/cost_model/cost_model.h"
#include "src/hostccl/plugin_host/tuner_plugin.h"

namespace dynamiccl::hostccl {

struct TunerQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total
  int n_pipe_ops = 1;
  bool registered = false;  // regBuff
};

// What the plugin made of one question.
struct TunerAnswer {
  ncclResult_t result = ncclSuccess;
  CostTable table;   // entries that came in as impossible stay impossible
  int channels = 0;  // 0: NCCL decides
};

class TunerSession {
 public:
  TunerSession(std::shared_ptr<const TunerInterface> tuner, void* context)
      : tuner_(std::move(tuner)), context_(context) {}
  TunerSession(TunerSession&&) = default;
  ~TunerSession() { Finalize(); }

  // Calls the plugin's init, which may edit the constants of `model`. No session and ncclSuccess: there is no
  // plugin.
  static ncclResult_t Open(const CommunicatorInfo& info, CostModelInput& model,
                           std::optional<TunerSession>& session);

  TunerAnswer Ask(const TunerQuestion& question, const CostTable& table);

  // Whether the plugin has an opinion on chunk sizes (version 6 with getChunkSize).
  bool sets_chunks() const { return tuner_->functions.getChunkSize != nullptr; }
  // getChunkSize for the part of a call that one channel carries. `chunk_bytes`: the preset, and the answer.
  ncclResult_t AskChunk(Collective collective, uint64_t bytes, const CollectiveConfig& config,
                        size_t& chunk_bytes);

  // Once; the library may be closed by it.
  void Finalize();

 private:
  std::shared_ptr<const TunerInterface> tuner_;
  void* context_;
};

}  // namespace dynamiccl::hostccl
