// SPDX-License-Identifier: Apache-2.0
// One communicator as NCCL's tuner interface sees it: the single form behind the versions of that interface.
#pragma once

#include <memory>
#include <optional>

#include "plugin/chain/chained_tuner.h"
#include "plugin/runtime/communicator_attestation.h"
#include "plugin/runtime/decision_log.h"
#include "plugin/runtime/process_runtime.h"
#include "src/decision/decision_engine.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {

struct GroupInFlight;

class TunerSession {
 public:
  // Blocks until the ranks have agreed or not. Null when there is nothing to do: not in frozen mode, and no
  // plugin to chain to; NCCL's tables then stay as they are.
  static std::unique_ptr<TunerSession> Begin(const TunerInit& init) noexcept;
  ~TunerSession();

  // Writes exactly one 0.0 and the channels, or leaves the answer of the chained plugin or of NCCL as it is.
  // Never fails: whatever an error would mean, NCCL would hand it to the program.
  void Answer(const TunerRequest& request) noexcept;

  // What NCCL gets as the chunk size's answer from the chained plugin; leaves `*chunk_bytes` alone without
  // one.
  ncclResult_t ChunkSize(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                         size_t* chunk_bytes) noexcept;

 private:
  explicit TunerSession(ProcessRuntime& runtime) : runtime_(runtime) {}
  void Start(const TunerInit& init);
  void StartChained(const TunerInit& init);
  bool AskChained(const TunerRequest& request, const CostTable& before) noexcept;
  // In adaptive mode: the ranks' tables change together from now on.
  void JoinSwitching(const EngineOptions& options, const TunerInit& init);
  // What may be chosen for this question on every rank; empty: NCCL's choice.
  ConfigMask AllowedOnAllRanks(const TunerQuestion& question, const ConfigMask& seen,
                               const GroupInFlight* flight);
  void Decide(const TunerRequest& request, const CostTable& table, bool chained_answered);
  static void NoteQuestion(Collective collective, const ConfigMask& seen, GroupInFlight* flight);
  void SayThatItIsGone(const TunerQuestion& question, const CollectiveConfig& config);
  // That the call in flight is to use.
  VersionedTable TableOf(const GroupInFlight* flight) const;
  void Note(const TunerQuestion& question, const Decision& decision, GroupInFlight* flight);

  ProcessRuntime& runtime_;
  std::shared_ptr<Communicator> communicator_;  // null: cannot be told
  Standing standing_ = Standing::kNotAttested;
  std::shared_ptr<DecisionEngine> engine_;  // null: not attested
  std::unique_ptr<MaskAgreement> masks_;    // null: the ranks cannot exchange them
  std::shared_ptr<DecisionLog> log_;
  const ChainedTuner* chained_ = nullptr;
  void* chained_context_ = nullptr;
};

}  // namespace dynamiccl
