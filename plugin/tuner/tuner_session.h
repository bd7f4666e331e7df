// SPDX-License-Identifier: Apache-2.0
// One communicator as NCCL's tuner interface sees it: the single form behind the versions of that interface.
#pragma once

#include <memory>
#include <optional>

#include "plugin/chain/chained_tuner.h"
#include "plugin/runtime/communicator_attestation.h"
#include "plugin/runtime/decision_log.h"
#include "plugin/runtime/process_runtime.h"
#include "src/decision/chunk_choice.h"
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

  // The chunk size of the rule that decided the call, else of the chained plugin, else `*chunk_bytes` as it
  // is.
  ncclResult_t ChunkSize(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                         size_t* chunk_bytes) noexcept;

 private:
  explicit TunerSession(ProcessRuntime& runtime) : runtime_(runtime) {}
  void Start(const TunerInit& init);
  // Of the ranks that agree, or may at its calls.
  void TakeStanding(const EngineOptions& options, const std::string& constants);
  // Which communicator this is about, by the call that NCCL asks about.
  void FindByCall();
  void OpenLog();
  void StartChained(const TunerInit& init);
  bool AskChained(const TunerRequest& request, const CostTable& before) noexcept;
  // In adaptive mode, of a communicator whose calls have an order.
  bool CanSwitch(const EngineOptions& options) const;
  // The ranks' tables change together from now on.
  void JoinSwitching(EngineOptions options, const TunerInit& init);
  void BeGuarded(const CostModelInput& input, const TunerInit& init);
  // What may be chosen for this question on every rank; empty: NCCL's choice.
  ConfigMask AllowedOnAllRanks(const DecisionKey& question, const ConfigMask& seen,
                               const GroupInFlight* flight);
  void AskChainedForChunk(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                          size_t* chunk_bytes) noexcept;
  // Null when it cannot be told which call NCCL asks about.
  const GroupFacts* FactsOf(const GroupInFlight* flight) const;
  // For the questions about chunk sizes that follow.
  void NoteChunk(const DecisionKey& question, const Decision& decision, const GroupInFlight* flight);
  void Decide(const TunerRequest& request, const CostTable& table, bool chained_answered);
  bool ChannelsStayNccls();
  bool SetsChunks(const TunerInit& init);
  void NoteQuestion(const DecisionKey& question, const ConfigMask& seen, GroupInFlight* flight) const;
  static void Feed(const DecisionKey& question, const Decision& decision, const ConfigMask& allowed,
                   const GroupInFlight& flight);
  void SayThatItIsGone(const DecisionKey& question, const CollectiveConfig& config);
  // That the call in flight is to use.
  VersionedTable TableOf(const GroupInFlight* flight) const;
  void Note(const DecisionKey& question, const Decision& decision, GroupInFlight* flight);

  ProcessRuntime& runtime_;
  std::shared_ptr<Communicator> communicator_;  // null: cannot be told
  // NCCL initialised several that it could be in one group: what is needed once a call shows which.
  struct Unfound {
    EngineOptions options;
    std::string constants;
  };
  std::unique_ptr<Unfound> unfound_;
  bool channels_are_pinned_ = false;
  bool sets_chunks_ = false;  // rules have chunk sizes, and NCCL asks for them
  ChunkChoice chunks_;
  Standing standing_ = Standing::kNotAttested;
  std::shared_ptr<DecisionEngine> engine_;  // null: not attested
  std::unique_ptr<MaskAgreement> masks_;    // null: the ranks cannot exchange them
  std::shared_ptr<DecisionLog> log_;
  const ChainedTuner* chained_ = nullptr;
  void* chained_context_ = nullptr;
};

}  // namespace dynamiccl
