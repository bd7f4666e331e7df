// SPDX-License-Identifier: Apache-2.0
#include "plugin/tuner/tuner_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/interpose/call_stream.h"
#include "plugin/runtime/c_boundary.h"
#include "plugin/runtime/mask_meetings.h"
#include "plugin/tuner/nccl_logger.h"
#include "src/base/settings.h"
#include "src/cost_model/tuner_constants.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {
namespace {

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

void WriteTable(const TunerRequest& request, const CostTable& table) {
  for (int a = 0; a < std::min(request.n_algorithms, kAlgorithms); ++a) {
    for (int p = 0; p < std::min(request.n_protocols, kProtocols); ++p) {
      request.table[a * request.n_protocols + p] = table.microseconds[a][p];
    }
  }
}

void WriteAnswer(const TunerRequest& request, const CollectiveConfig& config) {
  request
      .table[static_cast<int>(config.algorithm) * request.n_protocols + static_cast<int>(config.protocol)] =
      0.0f;
  *request.channels = config.channels;
}

std::string DigestOf(const ncclTunerConstants_v5_t& constants) {
  const std::span bytes(reinterpret_cast<const std::byte*>(&constants), sizeof(constants));
  return ToHex(Sha256Of(bytes)).substr(0, 32);
}

std::array<uint8_t, 16> FabricOf(const ncclTunerConstants_v5_t& constants) {
  const std::span bytes(reinterpret_cast<const std::byte*>(&constants), sizeof(constants));
  std::array<uint8_t, 16> half;
  std::copy_n(Sha256Of(bytes).begin(), half.size(), half.begin());
  return half;
}

// NCCL 2.31.2 asks before it has set its constants, which are zero then: as good as none.
bool AreSet(const ncclTunerConstants_v5_t& constants) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&constants);
  return std::any_of(bytes, bytes + sizeof(constants), [](unsigned char byte) { return byte != 0; });
}

// The only place that makes a key. Null `flight`: NCCL asks on a thread of its own.
[[gnu::hot]] DecisionKey KeyOf(const TunerRequest& request, const GroupInFlight* flight) {
  const auto collective = static_cast<Collective>(request.function);
  if (flight == nullptr) return {collective, request.bytes, request.n_pipe_ops};
  return {collective,
          request.bytes,
          request.n_pipe_ops,
          RecognisedRole(*flight->communicator, collective, request.bytes),
          flight->facts.call_number,
          !flight->facts.simulated};
}

// 0 where NCCL's constants do not say.
int ChannelsOf(const TunerInit& init) {
  if (init.constants == nullptr || !CarriesFabric(*init.constants)) return 0;
  return FromTunerConstants(*init.constants, static_cast<int>(init.n_ranks), static_cast<int>(init.n_nodes))
      .fabric.max_channels;
}

}  // namespace

std::unique_ptr<TunerSession> TunerSession::Begin(const TunerInit& init) noexcept {
  std::unique_ptr<TunerSession> session;
  Guarded([&] {
    ProcessRuntime* runtime = ProcessRuntime::Get();
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

void TunerSession::Start(const TunerInit& as_given) {
  TunerInit init = as_given;
  if (init.constants != nullptr && !AreSet(*init.constants)) init.constants = nullptr;
  const int n_ranks = static_cast<int>(init.n_ranks);
  const int n_nodes = static_cast<int>(init.n_nodes);
  communicator_ = runtime_.communicators().Claim(n_ranks, n_nodes);
  // The plugin may edit the constants, so they are attested as NCCL gave them.
  const std::string constants = init.constants == nullptr ? "none" : DigestOf(*init.constants);
  EngineOptions options;
  options.n_nodes = n_nodes;
  options.n_ranks = n_ranks;
  options.max_channels = ChannelsOf(init);
  options.channels_are_pinned = channels_are_pinned_ = ChannelsStayNccls();
  options.rules = runtime_.rules();
  sets_chunks_ = SetsChunks(init);
  options.policy = runtime_.PolicyFor(init.constants, n_ranks, n_nodes);
  StartChained(as_given);
  OpenLog();
  const auto several = communicator_ ? std::nullopt : runtime_.communicators().SeveralThatFit(n_ranks);
  if (several) {
    for (const auto& each : *several) DeclineToAttest(runtime_, *each);
    unfound_ = std::make_unique<Unfound>(Unfound{options, constants});
    return;
  }
  standing_ = AttestCommunicator(runtime_, communicator_.get(), constants);
  const bool switches = standing_ == Standing::kAttested && CanSwitch(options);
  // The first table is guarded as well: some of its calls are left to NCCL, to compare with.
  if (switches && runtime_.guards_tables()) options.plan = std::make_shared<PlannedTable>(TablePlan{});
  TakeStanding(options, constants);
  if (switches) JoinSwitching(options, init);
}

void TunerSession::TakeStanding(const EngineOptions& options, const std::string& constants) {
  if (standing_ != Standing::kNotAttested) engine_ = std::make_shared<DecisionEngine>(options);
  if (standing_ == Standing::kAttested) masks_ = NewMaskAgreement(runtime_, communicator_);
  if (standing_ == Standing::kByCalls)
    masks_ = NewMaskAgreement(runtime_, communicator_, AttestedOf(runtime_, *communicator_, constants));
}

void TunerSession::OpenLog() {
  const std::string& path = runtime_.settings().decision_log_path;
  if (path.empty()) return;
  log_ = DecisionLog::At(
      ExpandPath(path, communicator_ ? communicator_->process_rank : runtime_.settings().rank));
}

// What the program calls in a group with others does not show which of them NCCL asks about.
void TunerSession::FindByCall() {
  const GroupInFlight* const flight = OnlyInFlightOnThisThread();
  if (flight == nullptr) return;
  const EngineOptions& expected = unfound_->options;
  communicator_ =
      runtime_.communicators().ClaimByCall(*flight->communicator, expected.n_ranks, expected.n_nodes);
  if (!communicator_) return;
  const std::unique_ptr<Unfound> found = std::move(unfound_);
  found->options.channels_are_pinned = channels_are_pinned_ = ChannelsStayNccls();
  OpenLog();
  standing_ = StandingByCalls(runtime_, *communicator_);
  TakeStanding(found->options, found->constants);
}

// As the user's variables or the program's configuration of the communicator want it.
bool TunerSession::ChannelsStayNccls() {
  if (communicator_ && !communicator_->pinned_ctas.empty()) {
    const std::string said = "what the program pinned stays as it set it: " + communicator_->pinned_ctas;
    if (runtime_.FirstTime(said)) Log(LogLevel::kWarn, "{} of a communicator; its channels are NCCL's", said);
    return true;
  }
  return ChannelsArePinned();
}

bool TunerSession::SetsChunks(const TunerInit& init) {
  const auto rules = runtime_.rules();
  if (!rules || !rules->any_chunk_bytes()) return false;
  if (!init.asks_chunk_sizes && runtime_.FirstTime("chunks"))
    Log(LogLevel::kWarn, "'chunk_bytes' of the rules is not used: NCCL before 2.30.3 asks for no chunk size");
  return init.asks_chunk_sizes;
}

bool TunerSession::CanSwitch(const EngineOptions& options) const {
  return runtime_.settings().mode == Mode::kAdaptive && options.policy && communicator_->blocking &&
         communicator_->meeting.valid();
}

void TunerSession::JoinSwitching(EngineOptions options, const TunerInit& init) {
  const Communicator& of = *communicator_;
  // The first table's own.
  const bool guarded = std::exchange(options.plan, nullptr) != nullptr;
  const CostModelInput input = ProcessRuntime::InputOf(init.constants, options.n_ranks, options.n_nodes);
  communicator_->tables = std::make_shared<SwitchableTables>(
      engine_,
      [&runtime = runtime_, options, input, guarded](
          const std::shared_ptr<const Policy>& policy,
          std::span<const std::byte> plan) -> std::shared_ptr<DecisionEngine> {
        EngineOptions changed = options;
        std::optional<TablePlan> read = plan.empty() ? TablePlan{} : DecodePlan(plan);
        // What this build does not understand it does not use.
        if (!read) return nullptr;
        // Without a guard, and so without a plan, nothing is sampled.
        if (!plan.empty() || guarded) changed.plan = std::make_shared<PlannedTable>(std::move(*read));
        changed.policy = runtime.EntriesOf(policy, input);
        return std::make_shared<DecisionEngine>(std::move(changed));
      });
  SwitchThread& thread = runtime_.switch_thread();
  if (guarded) BeGuarded(input, init);
  thread.Join(of.meeting, {of.meeting.root, of.token, of.member, of.info.n_ranks}, communicator_->tables,
              communicator_->times);
}

void TunerSession::BeGuarded(const CostModelInput& input, const TunerInit& init) {
  communicator_->times =
      std::make_shared<TimesReport>([&thread = runtime_.switch_thread()] { thread.TellTimes(); });
  if (!runtime_.Leads(communicator_->meeting)) return;
  auto feed = std::make_shared<CallFeed>();
  GuardSubject subject{communicator_->token, communicator_->info.n_ranks, feed, input};
  subject.number_in_trace = [communicator = std::weak_ptr<const Communicator>(communicator_)] {
    const auto alive = communicator.lock();
    return alive ? alive->number : 0;
  };
  subject.place.n_ranks = static_cast<int32_t>(init.n_ranks);
  subject.place.n_nodes = static_cast<int32_t>(init.n_nodes);
  if (init.constants != nullptr) subject.place.fabric = FabricOf(*init.constants);
  if (runtime_.GuardTable(std::move(subject))) communicator_->feed = std::move(feed);
}

[[gnu::hot]] VersionedTable TunerSession::TableOf(const GroupInFlight* flight) const {
  if (flight != nullptr && flight->table.version != kDefaultTableVersion) return flight->table;
  const bool switches = communicator_ && communicator_->tables;
  // Asked about a call that is not this thread's, or of an aborted communicator.
  if (switches) return {};
  return {engine_.get(), engine_ ? kFirstTableVersion : kDefaultTableVersion};
}

void TunerSession::StartChained(const TunerInit& init) {
  chained_ = runtime_.chained_tuner();
  if (chained_ == nullptr) return;
  if (chained_->Init(init, &chained_context_) != ncclSuccess) chained_ = nullptr;
}

bool TunerSession::AskChained(const TunerRequest& request, const CostTable& before) noexcept {
  if (chained_ == nullptr) return false;
  if (chained_->Ask(chained_context_, request) == ncclSuccess) {
    return ReadTable(request).microseconds != before.microseconds || *request.channels != 0;
  }
  // An error would fail the program's collective.
  WriteTable(request, before);
  *request.channels = 0;
  return false;
}

[[gnu::hot]] void TunerSession::Answer(const TunerRequest& request) noexcept {
  if (request.table == nullptr || request.channels == nullptr || request.n_protocols <= 0) return;
  const CostTable table = ReadTable(request);
  const bool chained_answered = AskChained(request, table);
  // NCCL 2.31 and later ask once more with no operations; that answer is not used and must not count.
  if (request.n_pipe_ops == 0) return;
  Guarded([&] { Decide(request, table, chained_answered); });
}

const GroupFacts* TunerSession::FactsOf(const GroupInFlight* flight) const {
  if (flight != nullptr) return &flight->facts;
  return communicator_ && !communicator_->blocking ? &communicator_->in_flight : nullptr;
}

void TunerSession::NoteChunk(const DecisionKey& question, const Decision& decision,
                             const GroupInFlight* flight) {
  const GroupFacts* const facts = FactsOf(flight);
  // A simulated group has the number of the call that comes after it, and not on all ranks.
  if (facts == nullptr || facts->simulated) return;
  chunks_.Note(facts->call_number, question.collective, decision.config, decision.chunk_bytes);
}

[[gnu::hot]] ConfigMask TunerSession::AllowedOnAllRanks(const DecisionKey& question, const ConfigMask& seen,
                                                        const GroupInFlight* flight) {
  if (standing_ == Standing::kAlone) return seen;
  if (standing_ == Standing::kVouchedFor) return seen & OfferedEverywhere(question.collective);
  const GroupFacts* const facts = FactsOf(flight);
  // Without the call nothing tells which situation it is.
  if (masks_ == nullptr || facts == nullptr) return {};
  // What NCCL offers is narrowed to the program's own choice then, for this call only.
  if (facts->configured) return {};
  const CallSituation situation{question.collective, SizeClassOf(question.bytes),
                                facts->operands[static_cast<size_t>(question.collective)]};
  const auto agreed =
      facts->simulated ? masks_->Settled(situation) : masks_->At(situation, facts->call_number, seen);
  return agreed.value_or(ConfigMask());
}

// What all ranks were offered when they agreed is impossible here now. Nothing that is written could change
// that.
void TunerSession::SayThatItIsGone(const DecisionKey& question, const CollectiveConfig& config) {
  const std::string what =
      fmt::format("NCCL no longer offers {}/{} for {} of {} bytes to rank {}", Name(config.algorithm),
                  Name(config.protocol), Name(question.collective), question.bytes,
                  communicator_ ? communicator_->member : -1);
  if (runtime_.FirstTime(what))
    Log(LogLevel::kWarn, "{}, as it did when all ranks agreed: ranks may now differ", what);
}

// For the ledger of what a tuner can change.
[[gnu::hot]] void TunerSession::NoteQuestion(const DecisionKey& question, const ConfigMask& seen,
                                             GroupInFlight* flight) const {
  // From 2.31 on NCCL asks with nothing to choose from while it considers symmetric kernels (src/enqueue.cc).
  if (flight == nullptr || seen.none()) return;
  const auto kind = static_cast<size_t>(question.collective);
  const auto bit = static_cast<uint8_t>(1u << kind);
  if (flight->communicator->times) flight->asked_about[kind] = SizeClassOf(question.bytes);
  flight->asked |= bit;
  const unsigned long cells = seen.to_ulong();
  const bool several = (cells & (cells - 1)) != 0;
  if (several || !channels_are_pinned_) flight->had_choice |= bit;
}

[[gnu::hot]] void TunerSession::Decide(const TunerRequest& request, const CostTable& table,
                                       bool chained_answered) {
  const int function = request.function;
  if (function < 0 || function >= kTunableCollectives) return;
  if (unfound_) FindByCall();
  GroupInFlight* flight = communicator_ ? InFlightOnThisThread(communicator_->token) : nullptr;
  const DecisionKey question = KeyOf(request, flight);
  const ConfigMask seen = ChoosableCells(table);
  NoteQuestion(question, seen, flight);
  const VersionedTable chosen = TableOf(flight);
  const ConfigMask allowed = chosen.engine ? AllowedOnAllRanks(question, seen, flight) : ConfigMask();
  Decision decision = chosen.engine ? chosen.engine->Decide(question, allowed) : Decision{};
  if (!decision.config.leaves_nccl_alone() &&
      table.at(decision.config.algorithm, decision.config.protocol) < 0) {
    SayThatItIsGone(question, decision.config);
    decision = Decision{};
  }
  if (!decision.config.leaves_nccl_alone()) {
    if (chained_answered) WriteTable(request, table);
    WriteAnswer(request, decision.config);
  } else if (chained_answered) {
    decision.decided_by = DecidedBy::kChainedTuner;
  }
  if (sets_chunks_ && !seen.none()) NoteChunk(question, decision, flight);
  Note(question, decision, flight);
  if (flight != nullptr && !allowed.none()) Feed(question, decision, allowed, *flight);
}

// The leader's guard hears of what the policy's table decided.
[[gnu::hot]] void TunerSession::Feed(const DecisionKey& question, const Decision& decision,
                                     const ConfigMask& allowed, const GroupInFlight& flight) {
  CallFeed* const feed = flight.communicator->feed.get();
  if (feed == nullptr || !question.is_call || decision.decided_by == DecidedBy::kRule) return;
  DecidedCall call;
  call.number = question.call_number;
  call.key = {question.collective, SizeClassOf(question.bytes), question.role};
  call.use = decision.use;
  call.config = decision.asked_for;
  call.policy_choice = decision.policy_choice;
  call.allowed = allowed;
  call.version = flight.table.version;
  call.events = flight.collectives[static_cast<size_t>(question.collective)];
  call.timed = flight.timed;
  call.captured = flight.captured;
  call.on_suspicion = flight.on_suspicion;
  call.issued_ns = ClockOfThisThread();
  feed->Push(call);
}

[[gnu::hot]] void TunerSession::Note(const DecisionKey& question, const Decision& decision,
                                     GroupInFlight* flight) {
  const VersionedTable table = TableOf(flight);
  const uint32_t table_version = table.engine != nullptr ? table.version : kDefaultTableVersion;
  const uint64_t call_number = flight != nullptr ? flight->facts.call_number : 0;
  if (flight != nullptr)
    flight->communicator->ledger.CountDecision(question.collective, decision.decided_by);
  else
    runtime_.ledger_of_strangers().CountDecisionOfAnyThread(question.collective, decision.decided_by);
  if (flight != nullptr && communicator_->tables && !flight->facts.simulated)
    communicator_->tables->digest().Add(question, decision.config, table_version);
  if (log_) {
    log_->Append(
        {communicator_ ? communicator_->info.id : 0, call_number, question, decision, table_version});
  }
  Recorder* recorder = runtime_.recorder();
  if (recorder == nullptr || flight == nullptr) return;
  CollectiveCall call;
  call.call_number = call_number;
  call.bytes = question.bytes;
  call.collective = question.collective;
  call.index_in_group = flight->questions++;
  call.group_size = flight->n_collectives;
  recorder->Append(DecisionRecord(
      flight->communicator->number, call,
      {ClockOfThisThread(), decision.config, decision.decided_by, static_cast<uint8_t>(table_version)}));
}

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
  const GroupFacts* const facts = FactsOf(InFlightOnThisThread(communicator_->token));
  if (facts == nullptr || facts->simulated) return ncclSuccess;
  const uint64_t chosen = chunks_.At(facts->call_number, static_cast<Collective>(function),
                                     static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol));
  if (chosen != 0) *chunk_bytes = static_cast<size_t>(chosen);
  return ncclSuccess;
}

}  // namespace dynamiccl
