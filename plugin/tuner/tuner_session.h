// SPDX-License-Identifier: Apache-2.0
// One communicator as NCCL's tuner interface sees it: the single form behind the versions of that interface.
//
// NCCL calls init when it initialises the communicator, then asks about each batch of collectives before it
// launches it. A session reads what is asked about from the IssuedGroup of its thread, asks the table of the
// communicator, and writes the answer into NCCL's own table of costs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugin/chain/chained_tuner.h"
#include "plugin/runtime/communicator_attestation.h"
#include "plugin/runtime/decision_log.h"
#include "plugin/runtime/issued_group.h"
#include "plugin/runtime/process_runtime.h"
#include "src/base/interpolated_clock.h"
#include "src/decision/chunk_choice.h"
#include "src/decision/decision_engine.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {

class IssuingThread;

// Owned by NCCL's communicator through the context that a tuner_vN.cc returns. NCCL uses it from one thread
// at a time: the issuing thread of a blocking communicator, else a thread of its own. No function fails
// towards NCCL: it would hand an error to the program. What cannot be decided is left to NCCL.
class TunerSession {
 public:
  // Blocks until the ranks have agreed or not. Null when there is nothing to do: in modes that do not choose.
  // NCCL's tables then stay as they are.
  static std::unique_ptr<TunerSession> Begin(const TunerInit& init) noexcept;
  ~TunerSession();

  // Writes exactly one 0.0 and the channels, or leaves the answer of the chained plugin or of NCCL as it is.
  void Answer(const TunerRequest& request) noexcept;

  // Sets `*chunk_bytes` to the chunk size of the rule that decided the call, else to the chained plugin's;
  // else it stays as it is.
  ncclResult_t ChunkSize(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                         size_t* chunk_bytes) noexcept;

 private:
  explicit TunerSession(ProcessRuntime& runtime) : runtime_(runtime) {}
  void Start(const TunerInit& init);
  // Gets what ranks of the session's standing need: a table, and a way to exchange masks.
  void AdoptStanding(const EngineOptions& options, const std::string& constants);
  // Finds out which communicator this is about, by the call that NCCL asks about.
  void FindByCall(IssuingThread& thread);
  void OpenLog();
  void StartChained(const TunerInit& init);
  // Has the chained plugin answer first. True when it did; what it answers is then the default.
  bool AskChained(const TunerRequest& request, const CostTable& before) noexcept;
  // Whether the table may change while the job runs: in mode adaptive, if the calls have an order.
  bool CanSwitch(const EngineOptions& options) const;
  // The ranks' tables change together from now on.
  void JoinSwitching(EngineOptions options, const TunerInit& init);
  // Times are sent from now on, and on the leader's rank a guard watches the calls.
  void BeGuarded(const CostModelInput& input, const TunerInit& init);
  // What may be chosen for this question on every rank; empty: NCCL's choice.
  ConfigMask AllowedOnAllRanks(const DecisionKey& question, const ConfigMask& seen, const IssuedGroup* group);
  void AskChainedForChunk(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                          size_t* chunk_bytes) noexcept;
  // The facts of the call that NCCL asks about; null when it cannot be told which one that is.
  const GroupFacts* FactsOf(const IssuedGroup* group) const;
  // Remembers the chunk size for the questions about chunk sizes that follow.
  void NoteChunk(const DecisionKey& question, const Decision& decision, const IssuedGroup* group);
  void Decide(const TunerRequest& request, const CostTable& table, bool chained_answered);
  // Whether the user's variables or the program's configuration pin the number of channels.
  bool ChannelsStayNccls();
  bool SetsChunks(const TunerInit& init);
  void MarkQuestion(const DecisionKey& question, const ConfigMask& seen, IssuedGroup* group) const;
  static void Feed(const DecisionKey& question, const Decision& decision, const ConfigMask& allowed,
                   const IssuedGroup& group, InterpolatedClock& clock);
  void WarnThatItIsGone(const DecisionKey& question, const CollectiveConfig& config);
  // The table that the call in flight is to use.
  VersionedTable TableOf(const IssuedGroup* group) const;
  // Counts the decision, and writes it to the log and the trace.
  void Note(const DecisionKey& question, const Decision& decision, IssuedGroup* group,
            InterpolatedClock& clock);

  // For a session whose communicator is not known yet, because NCCL initialised several that it could be in
  // one group: what is needed once a call shows which.
  struct Unfound {
    EngineOptions options;
    std::string constants;
  };

  ProcessRuntime& runtime_;
  std::shared_ptr<Communicator> communicator_;  // null: cannot be told
  std::unique_ptr<Unfound> unfound_;            // null: nothing to find out
  bool channels_are_pinned_ = false;
  bool sets_chunks_ = false;  // rules have chunk sizes, and NCCL asks for them
  ChunkChoice chunks_;
  Standing standing_ = Standing::kNotAttested;
  std::shared_ptr<DecisionEngine> engine_;  // null: not attested
  std::unique_ptr<MaskAgreement> masks_;    // null: the ranks cannot exchange them
  std::shared_ptr<DecisionLog> log_;        // null: there is none
  const ChainedTuner* chained_ = nullptr;   // null: there is none, or its init failed
  void* chained_context_ = nullptr;
};

}  // namespace dynamiccl
