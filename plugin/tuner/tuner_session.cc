// SPDX-License-Identifier: Apache-2.0
#include "plugin/tuner/tuner_session.h"

#include <algorithm>

#include "plugin/interpose/call_stream.h"
#include "plugin/runtime/c_boundary.h"
#include "plugin/runtime/mask_meetings.h"
#include "plugin/tuner/nccl_logger.h"
#include "src/base/clock.h"
#include "src/base/settings.h"
#include "src/cost_model/tuner_constants.h"
#include "src/decision/guard/plan_bytes.h"

namespace dynamiccl {
namespace {

CostTable ReadTable(const TunerRequest& request) {
  CostTable table;
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

// What the calls before this one say that it is for. Unknown where the order of calls and decisions does not
// hold: NCCL asks on another thread, or initialised the communicator as non-blocking.
Role RecognisedRole(const GroupInFlight* flight, Collective collective) {
  if (flight == nullptr || !flight->communicator->blocking || !flight->communicator->structure)
    return Role::kUnknown;
  return flight->communicator->structure->recognised().next_role[static_cast<size_t>(collective)];
}

std::string DigestOf(const ncclTunerConstants_v5_t& constants) {
  const std::span bytes(reinterpret_cast<const std::byte*>(&constants), sizeof(constants));
  return ToHex(Sha256Of(bytes)).substr(0, 32);
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

void TunerSession::Start(const TunerInit& init) {
  const int n_ranks = static_cast<int>(init.n_ranks);
  const int n_nodes = static_cast<int>(init.n_nodes);
  communicator_ = runtime_.communicators().Claim(n_ranks, n_nodes);
  // The plugin may edit the constants, so they are attested as NCCL gave them.
  const std::string constants = init.constants == nullptr ? "none" : DigestOf(*init.constants);
  EngineOptions options;
  options.n_nodes = n_nodes;
  options.n_ranks = n_ranks;
  options.max_channels = ChannelsOf(init);
  options.channels_are_pinned = ChannelsArePinned();
  options.rules = runtime_.rules();
  options.policy = runtime_.PolicyFor(init.constants, n_ranks, n_nodes);
  StartChained(init);
  standing_ = AttestCommunicator(runtime_, communicator_.get(), constants);
  if (standing_ != Standing::kNotAttested) engine_ = std::make_shared<DecisionEngine>(options);
  if (standing_ == Standing::kAttested) {
    masks_ = NewMaskAgreement(runtime_, communicator_);
    JoinSwitching(options, init);
  }
  const std::string& path = runtime_.settings().decision_log_path;
  if (path.empty()) return;
  log_ = DecisionLog::At(
      ExpandPath(path, communicator_ ? communicator_->process_rank : runtime_.settings().rank));
}

void TunerSession::JoinSwitching(const EngineOptions& options, const TunerInit& init) {
  const Communicator& of = *communicator_;
  const bool possible = options.policy && of.blocking && of.meeting.valid();
  if (runtime_.settings().mode != Mode::kAdaptive || !possible) return;
  const CostModelInput input = ProcessRuntime::InputOf(init.constants, options.n_ranks, options.n_nodes);
  communicator_->tables = std::make_shared<SwitchableTables>(
      engine_,
      [&runtime = runtime_, options, input](
          const std::shared_ptr<const Policy>& policy,
          std::span<const std::byte> plan) -> std::shared_ptr<DecisionEngine> {
        EngineOptions changed = options;
        if (!plan.empty()) {
          auto read = DecodePlan(plan);
          // What this build does not understand it does not use.
          if (!read) return nullptr;
          changed.plan = std::make_shared<PlannedTable>(std::move(*read));
        }
        changed.policy = runtime.EntriesOf(policy, input);
        return std::make_shared<DecisionEngine>(std::move(changed));
      });
  runtime_.switch_thread().Join(of.meeting, {of.meeting.root, of.token, of.member, of.info.n_ranks},
                                communicator_->tables);
}

VersionedTable TunerSession::TableOf(const GroupInFlight* flight) const {
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

void TunerSession::Answer(const TunerRequest& request) noexcept {
  if (request.table == nullptr || request.channels == nullptr || request.n_protocols <= 0) return;
  const CostTable table = ReadTable(request);
  const bool chained_answered = AskChained(request, table);
  // NCCL 2.31 and later ask once more with no operations; that answer is not used and must not count.
  if (request.n_pipe_ops == 0) return;
  Guarded([&] { Decide(request, table, chained_answered); });
}

ConfigMask TunerSession::AllowedOnAllRanks(const TunerQuestion& question, const ConfigMask& seen,
                                           const GroupInFlight* flight) {
  if (standing_ == Standing::kAlone) return seen;
  if (standing_ == Standing::kVouchedFor) return seen & OfferedEverywhere(question.collective);
  const GroupFacts* facts = flight != nullptr         ? &flight->facts
                            : communicator_->blocking ? nullptr
                                                      : &communicator_->in_flight;
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
void TunerSession::SayThatItIsGone(const TunerQuestion& question, const CollectiveConfig& config) {
  const std::string what =
      fmt::format("NCCL no longer offers {}/{} for {} of {} bytes to rank {}", Name(config.algorithm),
                  Name(config.protocol), Name(question.collective), question.bytes,
                  communicator_ ? communicator_->member : -1);
  if (runtime_.FirstTime(what))
    Log(LogLevel::kWarn, "{}, as it did when all ranks agreed: ranks may now differ", what);
}

// For the ledger of what a tuner can change.
void TunerSession::NoteQuestion(Collective collective, const ConfigMask& seen, GroupInFlight* flight) {
  if (flight == nullptr) return;
  static const bool channels_are_pinned = ChannelsArePinned();
  const auto bit = static_cast<uint8_t>(1u << static_cast<unsigned>(collective));
  flight->asked |= bit;
  const size_t cells = seen.count();
  if (cells > 1 || (cells == 1 && !channels_are_pinned)) flight->had_choice |= bit;
}

void TunerSession::Decide(const TunerRequest& request, const CostTable& table, bool chained_answered) {
  const int function = request.function;
  if (function < 0 || function >= kTunableCollectives) return;
  GroupInFlight* flight = communicator_ ? InFlightOnThisThread(communicator_->token) : nullptr;
  TunerQuestion question{static_cast<Collective>(function), request.bytes, request.n_pipe_ops,
                         Role::kUnknown};
  const ConfigMask seen = ChoosableCells(table);
  NoteQuestion(question.collective, seen, flight);
  question.role = RecognisedRole(flight, question.collective);
  if (flight != nullptr) {
    question.call_number = flight->facts.call_number;
    question.is_call = !flight->facts.simulated;
  }
  const VersionedTable chosen = TableOf(flight);
  Decision decision =
      chosen.engine ? chosen.engine->Decide(question, AllowedOnAllRanks(question, seen, flight)) : Decision{};
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
  Note(question, decision, flight);
}

void TunerSession::Note(const TunerQuestion& question, const Decision& decision, GroupInFlight* flight) {
  const VersionedTable table = TableOf(flight);
  const uint32_t table_version = table.engine != nullptr ? table.version : kDefaultTableVersion;
  const uint64_t call_number = flight != nullptr ? flight->facts.call_number : 0;
  if (flight != nullptr)
    flight->communicator->ledger.CountDecision(question.collective, decision.decided_by);
  else
    runtime_.ledger_of_strangers().CountDecisionOfAnyThread(question.collective, decision.decided_by);
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
      {MonotonicNanoseconds(), decision.config, decision.decided_by, static_cast<uint8_t>(table_version)}));
}

ncclResult_t TunerSession::ChunkSize(ncclFunc_t function, size_t bytes, int algorithm, int protocol,
                                     int channels, size_t* chunk_bytes) noexcept {
  if (chained_ == nullptr || chained_->chunk_size() == nullptr) return ncclSuccess;
  const size_t before = *chunk_bytes;
  const auto ask = chained_->chunk_size();
  if (ask(chained_context_, function, bytes, algorithm, protocol, channels, chunk_bytes) != ncclSuccess) {
    *chunk_bytes = before;
  }
  return ncclSuccess;
}

}  // namespace dynamiccl
