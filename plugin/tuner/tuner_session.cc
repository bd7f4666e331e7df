// SPDX-License-Identifier: Apache-2.0
#include "plugin/tuner/tuner_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/border/first_time.h"
#include "plugin/border/no_throw.h"
#include "plugin/border/real_nccl.h"
#include "plugin/runtime/issuing_thread.h"
#include "plugin/runtime/mask_votes.h"
#include "plugin/runtime/runtime_instance.h"
#include "plugin/tuner/nccl_logger.h"
#include "src/base/settings.h"
#include "src/cost_model/tuner_constants.h"
#include "src/decision/guard/expected_effect.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {
namespace {

// Reads NCCL's cost table, whatever its size: a newer NCCL may have more algorithms, an older one fewer.
// Cells that NCCL does not have become impossible.
[[gnu::hot]] CostTable ReadTable(const TunerRequest& request) {
  CostTable table;
  if (request.n_algorithms == kAlgorithms && request.n_protocols == kProtocols) {
    std::memcpy(&table.microseconds, request.table, sizeof(table.microseconds));
    return table;
  }
  for (auto& row : table.microseconds) row.fill(NCCL_ALGO_PROTO_IGNORE);
  for (int a = 0; a < std::min(request.n_algorithms, kAlgorithms); ++a) {
    for (int p = 0; p < std::min(request.n_protocols, kProtocols); ++p) {
      table.microseconds[a][p] = request.table[a * request.n_protocols + p];
    }
  }
  return table;
}

// Restores the table to its values before a chained plugin wrote into it.
void WriteTable(const TunerRequest& request, const CostTable& table) {
  for (int a = 0; a < std::min(request.n_algorithms, kAlgorithms); ++a) {
    for (int p = 0; p < std::min(request.n_protocols, kProtocols); ++p) {
      request.table[a * request.n_protocols + p] = table.microseconds[a][p];
    }
  }
}

// A cost of 0 makes NCCL use this pair of algorithm and protocol. With 0 channels NCCL chooses the number.
void WriteAnswer(const TunerRequest& request, const CollectiveConfig& config) {
  request
      .table[static_cast<int>(config.algorithm) * request.n_protocols + static_cast<int>(config.protocol)] =
      0.0f;
  *request.channels = config.channels;
}

// Returns the attested digest of the constants.
std::string DigestOf(const ncclTunerConstants_v5_t& constants) {
  const std::span bytes(reinterpret_cast<const std::byte*>(&constants), sizeof(constants));
  return ToHex(Sha256Of(bytes)).substr(0, 32);
}

// Returns the digest by which the site store distinguishes fabrics.
std::array<uint8_t, 16> FabricOf(const ncclTunerConstants_v5_t& constants) {
  const std::span bytes(reinterpret_cast<const std::byte*>(&constants), sizeof(constants));
  std::array<uint8_t, 16> half;
  std::copy_n(Sha256Of(bytes).begin(), half.size(), half.begin());
  return half;
}

// Returns true if NCCL has set its constants. NCCL 2.31.2 calls init before it sets them; they are then zero
// and useless.
bool AreSet(const ncclTunerConstants_v5_t& constants) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&constants);
  return std::any_of(bytes, bytes + sizeof(constants), [](unsigned char byte) { return byte != 0; });
}

// Returns the largest number of channels according to NCCL's constants; 0 if they do not contain it.
int ChannelsOf(const TunerInit& init) {
  if (init.constants == nullptr || !CarriesFabric(*init.constants)) return 0;
  return FromTunerConstants(*init.constants, static_cast<int>(init.n_ranks), static_cast<int>(init.n_nodes))
      .fabric.max_channels;
}

// Makes the engine of a table version from its policy and its plan. It is a pure function of these and of
// attested values, so all ranks make the same engine. Called on the switch thread, without a lock that a call
// needs.
class VersionedEngines {
 public:
  // `first` holds the options of the first table, without its plan. If `guarded`, versions without a plan of
  // their own take samples as the first table does; else they take none.
  VersionedEngines(const LoadedChoices& choices, EngineOptions first, const CostModelInput& input,
                   bool guarded)
      : choices_(choices), first_(std::move(first)), input_(input), guarded_(guarded) {}

  // Returns null for a plan that this build does not understand; then no rank uses the version.
  std::shared_ptr<DecisionEngine> operator()(const std::shared_ptr<const Policy>& policy,
                                             std::span<const std::byte> plan) const {
    std::optional<TablePlan> read = plan.empty() ? FirstPlan(policy.get()) : DecodePlan(plan);
    if (!read) return nullptr;
    EngineOptions options = first_;
    if (!plan.empty() || guarded_) options.plan = std::make_shared<PlannedTable>(std::move(*read));
    options.policy = choices_.PolicyEntries(policy, input_);
    return std::make_shared<DecisionEngine>(std::move(options));
  }

 private:
  const LoadedChoices& choices_;
  const EngineOptions first_;
  const CostModelInput input_;
  const bool guarded_;
};

}  // namespace

std::unique_ptr<TunerSession> TunerSession::Begin(const TunerInit& init) noexcept {
  std::unique_ptr<TunerSession> session;
  NoThrow([&] {
    ProcessRuntime* runtime = RuntimeInstance::Get();
    if (runtime == nullptr || !Chooses(runtime->settings().mode)) return;
    LogThroughNccl(init.logger);
    session.reset(new TunerSession(*runtime));
    session->Start(init);
  });
  return session;
}

TunerSession::~TunerSession() {
  if (chained_context_ != nullptr) chained_->Finalize(chained_context_);
}

// Attestation, which may block for long, happens here: inside NCCL's init, where waiting is safe.
void TunerSession::Start(const TunerInit& as_given) {
  TunerInit init = as_given;
  if (init.constants != nullptr && !AreSet(*init.constants)) init.constants = nullptr;
  const int n_ranks = static_cast<int>(init.n_ranks);
  const int n_nodes = static_cast<int>(init.n_nodes);
  communicator_ = runtime_.communicators().Claim(n_ranks, n_nodes);
  // A chained plugin may edit the constants, so they are attested as NCCL passed them.
  const std::string constants = init.constants == nullptr ? "none" : DigestOf(*init.constants);
  EngineOptions options;
  options.n_nodes = n_nodes;
  options.n_ranks = n_ranks;
  options.max_channels = ChannelsOf(init);
  options.channels_are_pinned = channels_are_pinned_ = ChannelsStayNccls();
  options.rules = runtime_.choices().rules();
  const auto& in_turn = runtime_.choices().rules_in_turn();
  if (!in_turn.empty()) options.turns = std::make_shared<RuleTurns>(in_turn, runtime_.settings().turn_steps);
  sets_chunks_ = SetsChunks(init);
  options.policy = runtime_.choices().EntriesFor(init.constants, n_ranks, n_nodes);
  const CostModelInput attested = InputOf(init.constants, n_ranks, n_nodes);
  StartChained(as_given);
  OpenLog();
  const auto several = communicator_ ? std::nullopt : runtime_.communicators().AmbiguousCandidates(n_ranks);
  if (several) {
    for (const auto& each : *several) DeclineToAttest(runtime_.choices(), runtime_.rendezvous(), *each);
    deferred_init_ = std::make_unique<DeferredInit>(DeferredInit{options, constants});
    return;
  }
  attestation_ = AttestCommunicator(runtime_.choices(), runtime_.rendezvous(), runtime_.settings().rank,
                                    communicator_.get(), constants);
  RecogniseByQuestions(n_ranks);
  const bool switches = attestation_ == AttestationState::kAttested && CanSwitch(options);
  // A guard watches the first table too: some of its calls are left to NCCL for comparison.
  if (switches && GuardsTables(runtime_.settings()))
    options.plan = std::make_shared<PlannedTable>(FirstPlan(runtime_.choices().policy().get()));
  ApplyAttestation(options, constants);
  if (switches) JoinSwitching(options, attested, init);
}

// Releases before 2.22 ask several times about one call, so the LSTM would see each call several times.
void TunerSession::RecogniseByQuestions(int n_ranks) {
  const LoadedChoices& choices = runtime_.choices();
  constexpr int kAsksOnce = 22200;  // NCCL 2.22
  if (attestation_ == AttestationState::kVouchedFor && choices.policy() && choices.RulesNeedRecognition() &&
      NcclVersion() >= kAsksOnce)
    stream_ = std::make_unique<QuestionStream>(*choices.policy(), n_ranks);
}

void TunerSession::ApplyAttestation(const EngineOptions& options, const std::string& constants) {
  if (attestation_ != AttestationState::kNotAttested) engine_ = std::make_shared<DecisionEngine>(options);
  if (attestation_ == AttestationState::kAttested)
    masks_ = NewMaskAgreement(runtime_.rendezvous(), communicator_);
  if (attestation_ == AttestationState::kDeferred)
    masks_ = NewMaskAgreement(runtime_.rendezvous(), communicator_,
                              AttestedOf(runtime_.choices(), *communicator_, constants));
}

void TunerSession::OpenLog() {
  const std::string& path = runtime_.settings().decision_log_path;
  if (path.empty()) return;
  log_ = DecisionLog::At(
      ExpandPath(path, communicator_ ? communicator_->identity.process_rank : runtime_.settings().rank));
}

// A group with calls on several communicators does not show which one NCCL asks about. So this function waits
// for a group on one communicator alone.
void TunerSession::FindByCall(IssuingThread& thread) {
  const IssuedGroup* const group = thread.OnlyGroup();
  if (group == nullptr) return;
  const EngineOptions& expected = deferred_init_->options;
  communicator_ =
      runtime_.communicators().ClaimByCall(*group->communicator, expected.n_ranks, expected.n_nodes);
  if (!communicator_) return;
  const std::unique_ptr<DeferredInit> found = std::move(deferred_init_);
  found->options.channels_are_pinned = channels_are_pinned_ = ChannelsStayNccls();
  OpenLog();
  attestation_ = DeferAttestation(runtime_.choices(), runtime_.rendezvous(), *communicator_);
  ApplyAttestation(found->options, found->constants);
}

// Returns true if the user's variables, or the program's configuration of the communicator, fix the channels.
bool TunerSession::ChannelsStayNccls() {
  if (communicator_ && !communicator_->config.pinned_ctas.empty()) {
    const std::string text =
        "what the program pinned stays as it set it: " + communicator_->config.pinned_ctas;
    if (FirstTime(text)) Log(LogLevel::kWarn, "{} of a communicator; its channels are NCCL's", text);
    return true;
  }
  return ChannelsArePinned();
}

bool TunerSession::SetsChunks(const TunerInit& init) {
  if (!runtime_.choices().SetsChunks()) return false;
  if (!init.asks_chunk_sizes && FirstTime("chunks"))
    Log(LogLevel::kWarn, "'chunk_bytes' of the rules is not used: NCCL before 2.30.3 asks for no chunk size");
  return init.asks_chunk_sizes;
}

bool TunerSession::CanSwitch(const EngineOptions& options) const {
  return runtime_.settings().mode == Mode::kAdaptive && options.policy && communicator_->config.blocking &&
         communicator_->identity.rendezvous.valid();
}

// The tables of all ranks come from the attested constants. The leader's guard computes what it expects of
// the tables from the constants that NCCL uses, which the chained plugin may have edited.
void TunerSession::JoinSwitching(EngineOptions options, const CostModelInput& attested,
                                 const TunerInit& init) {
  const CommunicatorIdentity& of = communicator_->identity;
  SwitchingState& switching = communicator_->switching;
  // The first table has the plan already. Tables of later versions are made from these options, without it.
  const bool guarded = std::exchange(options.plan, nullptr) != nullptr;
  const CostModelInput used = InputOf(init.constants, options.n_ranks, options.n_nodes);
  switching.tables = std::make_shared<SwitchableTables>(
      engine_, VersionedEngines(runtime_.choices(), std::move(options), attested, guarded));
  SwitchThread& thread = runtime_.tables().switch_thread();
  if (guarded) StartGuard(used, init);
  thread.Join(of.rendezvous, {of.rendezvous.root, of.token, of.member, of.info.n_ranks}, switching.tables,
              switching.times);
}

// The leader's orders come over the switch thread's connection; before that no times are sent.
void TunerSession::StartGuard(const CostModelInput& input, const TunerInit& init) {
  const CommunicatorIdentity& of = communicator_->identity;
  communicator_->switching.times = std::make_shared<TimesReport>(
      [&thread = runtime_.tables().switch_thread()] { thread.SendTimesSoon(); });
  if (!runtime_.rendezvous().IsLocal(of.rendezvous)) return;
  auto feed = std::make_shared<CallFeed>();
  GuardSubject subject{of.token, of.info.n_ranks, feed, input};
  subject.number_in_trace = [communicator = std::weak_ptr<const Communicator>(communicator_)] {
    const auto alive = communicator.lock();
    return alive ? alive->identity.number : 0;
  };
  subject.channels_are_known = init.constants != nullptr && CarriesFabric(*init.constants);
  subject.place.n_ranks = static_cast<int32_t>(init.n_ranks);
  subject.place.n_nodes = static_cast<int32_t>(init.n_nodes);
  if (init.constants != nullptr) subject.place.fabric = FabricOf(*init.constants);
  if (runtime_.GuardTable(std::move(subject))) communicator_->switching.feed = std::move(feed);
}

[[gnu::hot]] VersionedTable TunerSession::TableOf(const IssuedGroup* group) const {
  if (group != nullptr && group->table.version != kDefaultTableVersion) return group->table;
  const bool switches = communicator_ && communicator_->switching.tables;
  // NCCL asks about a call that this thread did not issue, or about an aborted communicator.
  if (switches) return {};
  return {engine_.get(), engine_ ? kFirstTableVersion : kDefaultTableVersion};
}

void TunerSession::StartChained(const TunerInit& init) {
  chained_ = runtime_.plugins().chained_tuner();
  if (chained_ == nullptr) return;
  if (chained_->Init(init, &chained_context_) != ncclSuccess) chained_ = nullptr;
}

bool TunerSession::AskChained(const TunerRequest& request, const CostTable& before) noexcept {
  if (chained_ == nullptr) return false;
  if (chained_->Ask(chained_context_, request) == ncclSuccess) {
    return ReadTable(request).microseconds != before.microseconds || *request.channels != 0;
  }
  // The plugin's error is not returned to NCCL, because NCCL would fail the program's collective.
  WriteTable(request, before);
  *request.channels = 0;
  return false;
}

[[gnu::hot]] void TunerSession::Answer(const TunerRequest& request) noexcept {
  if (request.table == nullptr || request.channels == nullptr || request.n_protocols <= 0) return;
  const CostTable table = ReadTable(request);
  const bool chained_answered = AskChained(request, table);
  // NCCL 2.31 and later ask once more with no operations; they do not use that answer, so it must not count.
  if (request.n_pipe_ops == 0) return;
  NoThrow([&] { Decide(request, table, chained_answered); });
}

// Makes the key of the decision; no other function makes keys. `group` is null if NCCL asks on its own
// thread, or if the calls are not seen. In both cases the fields that only the issuing thread knows keep
// their defaults.
[[gnu::hot]] DecisionKey TunerSession::KeyOf(const TunerRequest& request, const IssuedGroup* group) const {
  DecisionKey key{static_cast<Collective>(request.function), request.bytes, request.n_pipe_ops};
  if (group == nullptr) {
    if (stream_) Recognise(stream_->recognised(), key);
    return key;
  }
  key.call_number = group->facts.call_number;
  key.is_call = !group->facts.simulated;
  key.memory = group->table.memory;
  if (const RecognisedStructure* const recognised = RecognisedOn(*group->communicator))
    Recognise(*recognised, key);
  return key;
}

const GroupFacts* TunerSession::FactsOf(const IssuedGroup* group) const {
  if (group != nullptr) return &group->facts;
  return communicator_ && !communicator_->config.blocking ? &communicator_->issuing.in_flight : nullptr;
}

void TunerSession::NoteChunk(const DecisionKey& question, const Decision& decision,
                             const IssuedGroup* group) {
  const GroupFacts* const facts = FactsOf(group);
  // A simulated group has the same number as the call after it, and some ranks may not simulate the group.
  if (facts == nullptr || facts->simulated) return;
  chunks_.Note(facts->call_number, question.collective, decision.config, decision.chunk_bytes);
}

[[gnu::hot]] ConfigMask TunerSession::AllowedOnAllRanks(const DecisionKey& question, const ConfigMask& seen,
                                                        const IssuedGroup* group) {
  if (attestation_ == AttestationState::kSingleRank) return seen;
  if (attestation_ == AttestationState::kVouchedFor) return seen & OfferedEverywhere(question.collective);
  const GroupFacts* const facts = FactsOf(group);
  // Without the call's facts the situation is not known.
  if (masks_ == nullptr || facts == nullptr) return {};
  // For a configured call NCCL's offer is limited to the program's own choice, so it must not enter the
  // exchange of masks.
  if (facts->configured) return {};
  const CallSituation situation{question.collective, SizeClassOf(question.bytes),
                                facts->operands[static_cast<size_t>(question.collective)]};
  const auto agreed =
      facts->simulated ? masks_->Settled(situation) : masks_->AgreedMask(situation, facts->call_number, seen);
  return agreed.value_or(ConfigMask());
}

// Warns that NCCL no longer offers this rank a configuration that it offered to all ranks when they agreed.
// This rank can do nothing about it.
void TunerSession::WarnThatConfigIsNotOffered(const DecisionKey& question, const CollectiveConfig& config) {
  const std::string what =
      fmt::format("NCCL no longer offers {}/{} for {} of {} bytes to rank {}", Name(config.algorithm),
                  Name(config.protocol), Name(question.collective), Name(SizeClassOf(question.bytes)),
                  communicator_ ? communicator_->identity.member : -1);
  if (FirstTime(what))
    Log(LogLevel::kWarn, "{}, as it did when all ranks agreed: ranks may now differ", what);
}

// Leaves marks in the group, from which the interposer derives whether a tuner can change the call.
[[gnu::hot]] void TunerSession::MarkQuestion(const DecisionKey& question, const ConfigMask& seen,
                                             IssuedGroup* group) const {
  // NCCL 2.31 and later ask with nothing to choose from while they consider symmetric kernels
  // (src/enqueue.cc).
  if (group == nullptr || seen.none()) return;
  const auto kind = static_cast<size_t>(question.collective);
  const auto bit = static_cast<uint8_t>(1u << kind);
  TunerMarks& marks = group->marks;
  if (group->communicator->switching.times) marks.asked_about[kind] = SizeClassOf(question.bytes);
  marks.asked |= bit;
  const unsigned long cells = seen.to_ulong();
  const bool several = (cells & (cells - 1)) != 0;
  if (several || !channels_are_pinned_) marks.had_choice |= bit;
}

// Chooses only by facts that are equal on all ranks: the situation, the mask on which all ranks agreed, and
// the table of the call. Facts that only this rank knows can only leave the call to NCCL.
[[gnu::hot]] void TunerSession::Decide(const TunerRequest& request, const CostTable& table,
                                       bool chained_answered) {
  const int function = request.function;
  if (function < 0 || function >= kTunableCollectives) return;
  IssuingThread& thread = IssuingThread::Current();
  if (deferred_init_) FindByCall(thread);
  IssuedGroup* group = communicator_ ? thread.GroupOn(communicator_->identity.token) : nullptr;
  const DecisionKey question = KeyOf(request, group);
  const ConfigMask seen = ChoosableCells(table);
  MarkQuestion(question, seen, group);
  const VersionedTable chosen = TableOf(group);
  const ConfigMask allowed = chosen.engine ? AllowedOnAllRanks(question, seen, group) : ConfigMask();
  Decision decision = chosen.engine ? chosen.engine->Decide(question, allowed) : Decision{};
  if (!decision.config.leaves_nccl_alone() &&
      table.at(decision.config.algorithm, decision.config.protocol) < 0) {
    WarnThatConfigIsNotOffered(question, decision.config);
    decision = Decision{};
  }
  if (!decision.config.leaves_nccl_alone()) {
    if (chained_answered) WriteTable(request, table);
    WriteAnswer(request, decision.config);
  } else if (chained_answered) {
    decision.decided_by = DecidedBy::kChainedTuner;
  }
  if (sets_chunks_ && !seen.none()) NoteChunk(question, decision, group);
  Note(question, decision, group, thread.clock);
  // NCCL 2.31 and later ask with nothing to choose from while they consider symmetric kernels.
  if (stream_ && !seen.none()) stream_->Step(question);
  if (group != nullptr && !allowed.none() && group->communicator->switching.feed)
    Feed(question, decision, {CheapestCell(table), allowed}, *group, thread.clock);
}

// Passes the decision to the leader's guard, unless a rule made it.
[[gnu::hot]] void TunerSession::Feed(const DecisionKey& question, const Decision& decision,
                                     const Offered& offered, const IssuedGroup& group,
                                     InterpolatedClock& clock) {
  if (!question.is_call || decision.decided_by == DecidedBy::kRule) return;
  DecidedCall call;
  call.number = question.call_number;
  call.key = {question.collective, SizeClassOf(question.bytes), question.role};
  call.use = decision.use;
  call.config = decision.asked_for;
  call.policy_choice = decision.policy_choice;
  call.nccls = offered.nccls;
  call.allowed = offered.allowed;
  call.version = group.table.version;
  call.events = group.collectives[static_cast<size_t>(question.collective)];
  call.timed = group.timed;
  call.stamped = group.stamped;
  call.captured = group.captured;
  call.on_suspicion = group.on_suspicion;
  call.structure_changes = static_cast<uint32_t>(group.communicator->issuing.ledger.changes());
  call.stage = question.stage;
  call.issued_ns = clock.Now();
  group.communicator->switching.feed->Push(call);
}

[[gnu::hot]] void TunerSession::Note(const DecisionKey& question, const Decision& decision,
                                     IssuedGroup* group, InterpolatedClock& clock) {
  const VersionedTable table = TableOf(group);
  const uint32_t table_version =
      table.engine != nullptr ? table.version + decision.turn : kDefaultTableVersion;
  const uint64_t call_number = group != nullptr ? group->facts.call_number : 0;
  if (group != nullptr)
    group->communicator->issuing.ledger.CountDecision(question.collective, decision.decided_by);
  else
    runtime_.unattributed_ledger().CountDecisionOfAnyThread(question.collective, decision.decided_by);
  if (group != nullptr && question.is_call && runtime_.accounts_for_calls())
    group->communicator->issuing.ledger.CountRecognised(question);
  if (group != nullptr && communicator_->switching.tables && !group->facts.simulated)
    communicator_->switching.tables->digest().Add(question, decision.config, table_version);
  if (log_) {
    log_->Append({communicator_ ? communicator_->identity.info.id : 0, call_number, question, decision,
                  table_version});
  }
  Recorder* recorder = runtime_.recorder();
  if (recorder == nullptr || group == nullptr) return;
  CollectiveCall call;
  call.call_number = call_number;
  call.bytes = question.bytes;
  call.collective = question.collective;
  call.index_in_group = group->marks.questions++;
  call.group_size = group->n_collectives;
  recorder->Append(
      DecisionRecord(group->communicator->identity.number, call,
                     {clock.Now(), decision.config, decision.decided_by, static_cast<uint8_t>(table_version),
                      question.role, question.phase, question.stage}));
}

// If the plugin returns an error, the chunk size stays as NCCL set it.
void TunerSession::AskChainedForChunk(ncclFunc_t function, size_t bytes, int algorithm, int protocol,
                                      int channels, size_t* chunk_bytes) noexcept {
  if (chained_ == nullptr || chained_->chunk_size() == nullptr) return;
  const size_t before = *chunk_bytes;
  const auto ask = chained_->chunk_size();
  if (ask(chained_context_, function, bytes, algorithm, protocol, channels, chunk_bytes) != ncclSuccess) {
    *chunk_bytes = before;
  }
}

ncclResult_t TunerSession::ChunkSize(ncclFunc_t function, size_t bytes, int algorithm, int protocol,
                                     int channels, size_t* chunk_bytes) noexcept {
  AskChainedForChunk(function, bytes, algorithm, protocol, channels, chunk_bytes);
  if (!sets_chunks_ || !communicator_ || function < 0 || function >= kTunableCollectives) return ncclSuccess;
  const GroupFacts* const facts = FactsOf(IssuingThread::Current().GroupOn(communicator_->identity.token));
  if (facts == nullptr || facts->simulated) return ncclSuccess;
  const uint64_t chosen =
      chunks_.ChunkBytes(facts->call_number, static_cast<Collective>(function),
                         static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol));
  if (chosen != 0) *chunk_bytes = static_cast<size_t>(chosen);
  return ncclSuccess;
}

}  // namespace dynamiccl
