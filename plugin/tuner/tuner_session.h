// SPDX-License-Identifier: Apache-2.0
// One communicator in NCCL's tuner interface, in a single form for all versions of the interface.
//
// NCCL calls init when it initialises the communicator, and then asks about each batch of collectives before
// it launches the batch. For each question a session reads the facts of the call from the IssuedGroup of its
// thread, asks the communicator's table, and writes the answer into NCCL's cost table.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugin/chain/chained_tuner.h"
#include "plugin/runtime/communicator_attestation.h"
#include "plugin/runtime/decision_log.h"
#include "plugin/runtime/issued_group.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/tuner/question_stream.h"
#include "src/base/interpolated_clock.h"
#include "src/decision/chunk_choice.h"
#include "src/decision/decision_engine.h"
#include "src/decision/mask_agreement.h"

namespace dynamiccl {

class IssuingThread;

// Owned by NCCL's communicator through the context that a tuner_vN.cc returns. NCCL uses it from one thread
// at a time: the issuing thread of a blocking communicator, else a thread of NCCL. No function returns an
// error to NCCL, because NCCL would pass it to the program. If no decision is possible, the choice is left to
// NCCL.
class TunerSession {
 public:
  // Blocks until the ranks have a verdict. Returns null in modes that do not choose; NCCL's tables then stay
  // as they are.
  static std::unique_ptr<TunerSession> Begin(const TunerInit& init) noexcept;
  ~TunerSession();

  // Writes a cost of 0.0 for exactly one pair of algorithm and protocol, and the number of channels. If no
  // decision is possible, leaves the answer of the chained plugin or of NCCL unchanged.
  void Answer(const TunerRequest& request) noexcept;

  // Sets `*chunk_bytes` to the chunk size of the rule that decided the call, else to the chained plugin's;
  // otherwise it stays unchanged.
  ncclResult_t ChunkSize(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                         size_t* chunk_bytes) noexcept;

 private:
  explicit TunerSession(ProcessRuntime& runtime) : runtime_(runtime) {}
  void Start(const TunerInit& init);
  // Makes what is allowed after the attestation: a table, and the exchange of masks.
  void ApplyAttestation(const EngineOptions& options, const std::string& constants);
  // Recognises the job from NCCL's questions, if the calls are not seen and rules ask for it.
  void RecogniseByQuestions(int n_ranks);
  // Returns the key of the decision that NCCL asks for.
  DecisionKey KeyOf(const TunerRequest& request, const IssuedGroup* group) const;
  // Finds the session's communicator by the call that NCCL asks about.
  void FindByCall(IssuingThread& thread);
  void OpenLog();
  void StartChained(const TunerInit& init);
  // Lets the chained plugin answer first. Returns true if it did; its answer is then the default.
  bool AskChained(const TunerRequest& request, const CostTable& before) noexcept;
  // Returns true if the table may change while the job runs: in mode adaptive, if the calls have an order.
  bool CanSwitch(const EngineOptions& options) const;
  // From now on the ranks change their tables together. `attested` comes from the constants as NCCL passed
  // them.
  void JoinSwitching(EngineOptions options, const CostModelInput& attested, const TunerInit& init);
  // From now on times are sent, and on the leader's rank a guard watches the calls.
  void StartGuard(const CostModelInput& input, const TunerInit& init);
  // Returns the configs that every rank may choose for this question; empty if only NCCL's choice is left.
  ConfigMask AllowedOnAllRanks(const DecisionKey& question, const ConfigMask& seen, const IssuedGroup* group);
  void AskChainedForChunk(ncclFunc_t function, size_t bytes, int algorithm, int protocol, int channels,
                          size_t* chunk_bytes) noexcept;
  // Returns the facts of the call that NCCL asks about; null if the call is not known.
  const GroupFacts* FactsOf(const IssuedGroup* group) const;
  // Remembers the chunk size for NCCL's later questions about chunk sizes.
  void NoteChunk(const DecisionKey& question, const Decision& decision, const IssuedGroup* group);
  void Decide(const TunerRequest& request, const CostTable& table, bool chained_answered);
  // Returns true if the user's variables or the program's configuration pin the number of channels.
  bool ChannelsStayNccls();
  bool SetsChunks(const TunerInit& init);
  void MarkQuestion(const DecisionKey& question, const ConfigMask& seen, IssuedGroup* group) const;
  // The part of NCCL's cost table that the guard needs.
  struct Offered {
    CollectiveConfig nccls;  // algorithm and protocol that NCCL uses by itself on this rank
    ConfigMask allowed;      // pairs that NCCL offers on all ranks
  };
  static void Feed(const DecisionKey& question, const Decision& decision, const Offered& offered,
                   const IssuedGroup& group, InterpolatedClock& clock);
  void WarnThatConfigIsNotOffered(const DecisionKey& question, const CollectiveConfig& config);
  // Returns the table for the call under way.
  VersionedTable TableOf(const IssuedGroup* group) const;
  // Counts the decision, and writes it to the log and the trace.
  void Note(const DecisionKey& question, const Decision& decision, IssuedGroup* group,
            InterpolatedClock& clock);

  // Keeps the arguments of init until a call shows which communicator the session belongs to. Init cannot
  // tell if NCCL initialises several communicators of this size in one group.
  struct DeferredInit {
    EngineOptions options;
    std::string constants;
  };

  ProcessRuntime& runtime_;
  std::shared_ptr<Communicator> communicator_;   // null: not known
  std::unique_ptr<DeferredInit> deferred_init_;  // null: the communicator is known or cannot be found
  bool channels_are_pinned_ = false;
  bool sets_chunks_ = false;  // rules have chunk sizes, and NCCL asks for chunk sizes
  ChunkChoice chunks_;
  AttestationState attestation_ = AttestationState::kNotAttested;
  std::shared_ptr<DecisionEngine> engine_;  // null: not attested
  std::unique_ptr<MaskAgreement> masks_;    // null: the ranks cannot exchange masks
  std::unique_ptr<QuestionStream> stream_;  // null: the interposer sees the calls, or nobody needs the roles
  std::shared_ptr<DecisionLog> log_;        // null: there is none
  const ChainedTuner* chained_ = nullptr;   // null: there is none, or its init failed
  void* chained_context_ = nullptr;
};

}  // namespace dynamiccl
