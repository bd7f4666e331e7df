// SPDX-License-Identifier: Apache-2.0
// One communicator's conversation with the tuner plugin: init, questions, finalize, with the semantics of
// NCCL 2.28 to 2.30.
#pragma once

#include <memory>
#include <optional>

#include "src/collective/communicator_info.h"
#include "src/cost_model/cost_model.h"
#include "src/hostccl/plugin_host/tuner_plugin.h"

namespace dynamiccl::hostccl {

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

  TunerAnswer Ask(Collective collective, uint64_t bytes, int n_pipe_ops, const CostTable& table);

  // Once; the library may be closed by it.
  void Finalize();

 private:
  std::shared_ptr<const TunerInterface> tuner_;
  void* context_;
};

}  // namespace dynamiccl::hostccl
