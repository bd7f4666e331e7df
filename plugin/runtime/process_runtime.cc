// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/process_runtime.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugin/interpose/real_nccl.h"
#include "plugin/runtime/build_id.h"
#include "plugin/runtime/c_boundary.h"
#include "plugin/runtime/fresh_secret.h"
#include "plugin/runtime/nccl_variable.h"
#include "src/base/log.h"
#include "src/base/settings.h"
#include "src/base/status.h"
#include "src/base/whole_file.h"
#include "src/cost_model/tuner_constants.h"
#include "src/decision/site_store/site_store_file.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_checks.h"
#include "src/policy/policy_file.h"

namespace dynamiccl {
namespace {

enum class State : int { kNew, kReady, kForked };

std::atomic<State> g_state{State::kNew};
std::atomic<ProcessRuntime*> g_runtime{nullptr};
std::atomic<ProcessRuntime*> g_watching{nullptr};
std::once_flag g_once;

// The child has none of the parent's threads and none of its communicators: it passes everything through.
void PassThroughInChild() {
  if (g_state.load() != State::kReady) return;
  g_state.store(State::kForked);
  g_runtime.store(nullptr);
  g_watching.store(nullptr);
}

std::span<const uint8_t, kUniqueIdBytes> BytesOf(const ncclUniqueId& id) {
  return std::span<const uint8_t, kUniqueIdBytes>(reinterpret_cast<const uint8_t*>(id.internal),
                                                  kUniqueIdBytes);
}

// Reading has compared the outputs with the file's; what is attested is computed here, by this machine.
std::string DigestOfGoldenOutputs(const PolicyTensors& tensors) {
  const auto computed = std::make_unique<PolicyTensors>(tensors);
  ComputeGoldenOutputs(*computed);
  Sha256 digest;
  digest.Update(std::as_bytes(std::span(computed->golden_logits)));
  digest.Update(std::as_bytes(std::span(computed->golden_residuals)));
  digest.Update(std::as_bytes(std::span(computed->golden_tree_residuals)));
  return ToHex(digest.Finish()).substr(0, 32);
}

// NCCL_VERSION_CODE; 0: unknown.
int VersionOfLibrary() {
  int version = 0;
  DYNAMICCL_FORWARD(GetVersion, &version);
  return version;
}

std::string LibraryVersion() {
  const int version = VersionOfLibrary();
  return version == 0 ? "unknown"
                      : fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

ProcessRuntime* ProcessRuntime::Get() noexcept {
  if (g_state.load(std::memory_order_acquire) == State::kNew) {
    // No exception may cross call_once: the C library's part of it is unwound by another unwinder than ours,
    // which ends the process.
    Guarded([] {
      std::call_once(g_once, [] {
        Guarded(Create);
        g_state.store(State::kReady, std::memory_order_release);
      });
    });
  }
  return g_runtime.load(std::memory_order_acquire);
}

ProcessRuntime* ProcessRuntime::Existing() noexcept {
  return g_runtime.load(std::memory_order_acquire);
}

bool ProcessRuntime::WasTried() noexcept {
  return g_state.load(std::memory_order_acquire) != State::kNew;
}

[[gnu::hot]] ProcessRuntime* ProcessRuntime::Watching() noexcept {
  if (g_state.load(std::memory_order_acquire) == State::kNew) Get();
  return g_watching.load(std::memory_order_acquire);
}

void ProcessRuntime::Create() {
  ::pthread_atfork(nullptr, nullptr, PassThroughInChild);
  auto* runtime = new ProcessRuntime();
  g_runtime.store(runtime, std::memory_order_release);
  const JobSettings& settings = runtime->settings_;
  const bool recording =
      settings.mode == Mode::kObserve && !(settings.trace_path.empty() && settings.metrics_path.empty());
  if (recording || Chooses(settings.mode)) g_watching.store(runtime, std::memory_order_release);
}

ProcessRuntime::ProcessRuntime() : settings_(ReadJobSettings()) {
  if (Chooses(settings_.mode)) {
    LoadRules();
    LoadPolicy();
    LoadDecisions();
  }
  if (settings_.times != Timed::kNone && settings_.mode != Mode::kOff) StartTiming();
  if (!broken_.empty()) Log(LogLevel::kWarn, "{}; NCCL's choice stays", broken_);
  if (settings_.mode == Mode::kObserve && settings_.trace_path.empty() && settings_.metrics_path.empty()) {
    Log(LogLevel::kWarn, "mode observe without DYNAMICCL_TRACE or DYNAMICCL_METRICS: nothing is recorded");
  }
}

void ProcessRuntime::StartTiming() {
  times_ = std::make_unique<CollectiveTimes>();
  static const CollectiveTimes* at_exit = nullptr;
  at_exit = times_.get();
  ::atexit([] { Guarded([] { Log(LogLevel::kInfo, "{}", at_exit->Summary()); }); });
}

void ProcessRuntime::LoadRules() {
  if (settings_.rules_path.empty()) return;
  auto rules = OverrideRules::ReadFile(settings_.rules_path);
  if (rules) {
    rules_ = std::make_shared<OverrideRules>(std::move(*rules));
    rules_state_ = ToHex(rules_->digest()).substr(0, 32);
  } else {
    broken_ = rules.error().message;
  }
}

void ProcessRuntime::LoadPolicy() {
  if (settings_.policy_path.empty()) return;
  auto policy = ReadPolicyFile(settings_.policy_path);
  if (!policy) {
    broken_ = policy.error().message;
    return;
  }
  policy_ = std::move(*policy);
  policy_hash_ = ToHex(policy_->sha256);
  std::copy_n(policy_->sha256.begin(), policy_digest_.size(), policy_digest_.begin());
  golden_ = DigestOfGoldenOutputs(policy_->tensors);
}

void ProcessRuntime::LoadDecisions() {
  const std::string& path = settings_.decisions_path;
  // To be written by this run.
  if (path.empty() || (settings_.reproducible && ::access(path.c_str(), F_OK) != 0)) return;
  auto saved = SavedDecisions::ReadFile(path);
  if (!saved) {
    broken_ = saved.error().message;
  } else if (saved->policy_hash() != policy_hash_) {
    broken_ = fmt::format("{}: was made with policy {}, and this is {}", path,
                          saved->policy_hash().empty() ? "none" : saved->policy_hash(),
                          policy_hash_.empty() ? "none" : policy_hash_);
  } else {
    decisions_ = std::make_shared<SavedDecisions>(std::move(*saved));
  }
}

bool ProcessRuntime::FirstTime(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (std::find(said_.begin(), said_.end(), reason) != said_.end()) return false;
  said_.push_back(reason);
  return true;
}

void ProcessRuntime::OpenFiles(int rank) {
  const std::lock_guard lock(mutex_);
  if (files_opened_) return;
  files_opened_ = true;
  rank_ = settings_.rank >= 0 ? settings_.rank : rank;
  if (!settings_.trace_path.empty()) OpenTrace();
  if (!settings_.metrics_path.empty()) OpenMetrics();
  ::atexit([] {
    ProcessRuntime* runtime = g_runtime.load();
    if (runtime == nullptr) return;
    runtime->SaveDecisions();
    runtime->KeepLearnt();
  });
}

void ProcessRuntime::OpenTrace() {
  const auto records = IntegerSetting(Setting::kTraceRecords);
  RecorderOptions options;
  options.path = ExpandPath(settings_.trace_path, rank_);
  options.records_per_thread = records && *records > 0 ? static_cast<uint64_t>(*records) : 262144;
  options.rank = rank_;
  options.world = settings_.world;
  options.library = "NCCL " + LibraryVersion();
  auto recorder = Recorder::Open(options);
  if (!recorder) {
    Log(LogLevel::kWarn, "nothing is recorded: {}", recorder.error().message);
    return;
  }
  static Recorder* at_exit = nullptr;
  at_exit = recorder->release();
  recorder_.store(at_exit, std::memory_order_release);
  ::atexit([] { at_exit->Close(); });
}

void ProcessRuntime::SaveDecisions() noexcept {
  if (!settings_.reproducible || settings_.decisions_path.empty() || decisions_ || rank_ != 0) return;
  Guarded([this] {
    SavedDecisions saved(policy_hash_);
    for (const auto& [key, choice] : made_entries_.All()) saved.Set(key, choice.config);
    if (!ReplaceFile(settings_.decisions_path, saved.Text()) && FirstTime("decisions"))
      Log(LogLevel::kWarn, "this run's choices cannot be saved: {} cannot be written",
          settings_.decisions_path);
  });
}

void ProcessRuntime::OpenMetrics() {
  KeepMetricsFile(ExpandPath(settings_.metrics_path, rank_), [] { return g_runtime.load()->Metrics(); });
}

MetricsSource ProcessRuntime::Metrics() const {
  const Recorder* recorder = recorder_.load(std::memory_order_acquire);
  auto calls = std::make_shared<CallLedger>();
  calls->Add(ledger_of_strangers_);
  communicators_.AddLedgersTo(*calls);
  return {.rank = rank_,
          .mode = Name(settings_.mode),
          .policy_hash = policy_hash_,
          .calls = std::move(calls),
          .entries = &made_entries_,
          .times = times_.get(),
          .guard = guards_tables() ? &guard_totals_ : nullptr,
          .memory_pressure = memory_.pressure(),
          .records_lost = recorder == nullptr ? 0 : recorder->lost()};
}

void ProcessRuntime::OfferAsPlugins() {
  const std::lock_guard lock(mutex_);
  if (plugins_offered_) return;
  plugins_offered_ = true;
  if (Chooses(settings_.mode)) OfferAsTuner();
  if (times_) OfferAsProfiler();
}

void ProcessRuntime::OfferAsProfiler() {
  const std::string plugin = NcclVariable("NCCL_PROFILER_PLUGIN").value_or("");
  if (plugin == "none") {
    Log(LogLevel::kWarn, "nothing is timed: NCCL_PROFILER_PLUGIN=none was set");
    return;
  }
  if (!plugin.empty() && NamesThisObject(plugin)) return;
  profiler_to_chain_ = plugin;
  ::setenv("NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN", 1);
}

void ProcessRuntime::OfferAsTuner() {
  tuner_offered_ = true;
  if (settings_.tuner_plugin == "none") {
    Log(LogLevel::kWarn, "NCCL_TUNER_PLUGIN=none was set: NCCL's choice stays");
  } else if (!NamesThisObject(settings_.tuner_plugin) || settings_.tuner_plugin.empty()) {
    ::setenv("NCCL_TUNER_PLUGIN", OwnPluginName(VersionOfLibrary()).c_str(), 1);
  }
  const std::string pins = PinnedByUser(settings_);
  if (pins != "none") Log(LogLevel::kWarn, "what you pinned stays as you set it: {}", pins);
}

std::string ProcessRuntime::WhyNotChoosing() const {
  if (!Chooses(settings_.mode)) return fmt::format("it runs in mode {}", Name(settings_.mode));
  if (settings_.tuner_plugin == "none") return "NCCL_TUNER_PLUGIN=none is set there";
  return broken_;
}

EntryFunction ProcessRuntime::PolicyFor(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes) {
  if (decisions_) return EntriesOf(decisions_, n_ranks, n_nodes);
  if (!policy_) return {};
  return EntriesOf(policy_, InputOf(constants, n_ranks, n_nodes));
}

CostModelInput ProcessRuntime::InputOf(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes) {
  return constants == nullptr ? AssumedCostModel(n_ranks, n_nodes)
                              : FromTunerConstants(*constants, n_ranks, n_nodes);
}

EntryFunction ProcessRuntime::EntriesOf(std::shared_ptr<const Policy> policy, const CostModelInput& input) {
  return [this, policy = std::move(policy), input](const TableKey& key, const ConfigMask& allowed) {
    const ConfigChoice choice =
        ChooseConfig(*policy, input, {key.collective, LowerBound(key.size_class), allowed});
    made_entries_.Note({input.fabric.n_ranks, input.fabric.n_nodes, key}, choice);
    return choice.config;
  };
}

EntryFunction ProcessRuntime::EntriesOf(std::shared_ptr<const SavedDecisions> saved, int n_ranks,
                                        int n_nodes) {
  return [saved = std::move(saved), n_ranks, n_nodes](const TableKey& key, const ConfigMask& allowed) {
    const CollectiveConfig config = saved->Of({n_ranks, n_nodes, key});
    const bool possible =
        !config.leaves_nccl_alone() && allowed.test(ConfigIndex(config.algorithm, config.protocol));
    return possible ? config : kLeaveNcclAlone;
  };
}

const ChainedTuner* ProcessRuntime::chained_tuner() {
  const std::lock_guard lock(mutex_);
  if (chain_tried_) return chained_.get();
  chain_tried_ = true;
  const std::string& named = settings_.tuner_plugin;
  // Without a name NCCL would have tried its default one; where we are the plugin that the user named there
  // is no other.
  const bool by_default = named.empty() && tuner_offered_;
  if (!by_default && NamesThisObject(named)) return nullptr;
  auto chained = ChainedTuner::Find(by_default ? "" : named);
  if (chained) {
    chained_ = std::move(*chained);
    Log(LogLevel::kInfo, "the default is what tuner plugin {} says", chained_->name());
  } else if (!by_default) {
    Log(LogLevel::kWarn, "NCCL_TUNER_PLUGIN is not used: {}", chained.error().message);
  }
  return chained_.get();
}

AttestedValues ProcessRuntime::Attested() const {
  AttestedValues values;
  values.build = BuildId();
  values.mode = Name(settings_.mode);
  // Unguarded ranks take no samples.
  if (settings_.mode == Mode::kAdaptive && !guards_tables()) values.mode += " without times";
  values.policy = policy_hash_.empty() ? "none" : policy_hash_;
  if (decisions_) values.policy = "decisions " + ToHex(decisions_->digest()).substr(0, 54);
  values.rules = rules_state_;
  values.golden = golden_;
  values.pins = PinnedByUser(settings_);
  values.library = LibraryVersion();
  return values;
}

std::vector<std::string> ProcessRuntime::HostsToListenOn() const {
  std::vector<std::string> hosts;
  const std::string chosen = TextSetting(Setting::kControlInterface);
  if (!chosen.empty()) return {chosen};
  // The launcher's address of rank 0 is one that the other nodes can reach, if it is this machine's.
  if (const char* master = ::secure_getenv("MASTER_ADDR")) hosts.push_back(master);
  hosts.push_back(HostName());
  hosts.push_back("127.0.0.1");
  return hosts;
}

ControlServer* ProcessRuntime::Server(const std::vector<std::string>& hosts, uint16_t port) {
  const std::lock_guard lock(mutex_);
  if (server_) return server_.get();
  auto server = ControlServer::Start(hosts, port, settings_.attest_timeout_ms, NewLeadership());
  if (server) {
    server_ = std::move(*server);
  } else {
    Log(LogLevel::kWarn, "ranks cannot agree, so NCCL's choice stays: {}", server.error().message);
  }
  return server_.get();
}

void ProcessRuntime::MarkUniqueId(ncclUniqueId& id) {
  if (!Chooses(settings_.mode)) return;
  const std::span<uint8_t, kUniqueIdBytes> bytes(reinterpret_cast<uint8_t*>(id.internal), kUniqueIdBytes);
  if (!BlockFits(bytes)) {
    if (FirstTime("block")) {
      Log(LogLevel::kWarn,
          "this NCCL uses all of its unique id: ranks can only meet at DYNAMICCL_RENDEZVOUS");
    }
    return;
  }
  ControlServer* server = Server(HostsToListenOn(), 0);
  if (server == nullptr) return;
  UniqueIdBlock block{server->address(), server->port(), {}, policy_digest_, {}, MeetsBeforeInit()};
  if (!FillRandomly(block.secret)) return;
  if (WriteBlock(bytes, block)) server->Welcome(TokenOf(bytes), block.secret);
}

void ProcessRuntime::MarkGrowId(const MeetingPoint& parents, const ControlToken& grown, ncclUniqueId& id) {
  if (!parents.valid()) return;
  const std::span<uint8_t, kUniqueIdBytes> bytes(reinterpret_cast<uint8_t*>(id.internal), kUniqueIdBytes);
  WriteBlock(bytes, {parents.address, parents.port, parents.secret, {}, grown});
}

GrowMeeting ProcessRuntime::MeetingOfGrown(const ncclUniqueId& id) {
  const auto block = ReadBlock(BytesOf(id));
  if (!block || !block->grown) return {{}, TokenOf(BytesOf(id))};
  return {{block->address, block->port, RootOfSecret(block->secret), block->secret}, *block->grown};
}

MeetingPoint ProcessRuntime::MeetingInProcess(const ControlToken& token) {
  if (!Chooses(settings_.mode)) return {};
  ControlServer* server = Server(HostsToListenOn(), 0);
  if (server == nullptr) return {};
  MeetingPoint meeting{server->address(), server->port(), token, {}};
  if (!FillRandomly(meeting.secret)) return {};
  server->Welcome(token, meeting.secret);
  return meeting;
}

// Null where tables stay as they are.
std::unique_ptr<SwitchLeadership> ProcessRuntime::NewLeadership() {
  if (settings_.mode != Mode::kAdaptive || !policy_) return nullptr;
  return std::make_unique<SwitchLeadership>(
      std::make_unique<PolicyWatch>(settings_.policy_path, policy_->sha256),
      [this](const ControlToken& token) { return switch_thread().CallsOf(token); },
      [policies = std::make_shared<PolicyByDigest>(settings_.policy_path, policy_)](
          const Sha256Digest& digest) { return policies->Read(digest); },
      settings_.site_store_path);
}

SwitchThread& ProcessRuntime::switch_thread() {
  const std::lock_guard lock(mutex_);
  if (!switch_thread_) switch_thread_ = std::make_unique<SwitchThread>(settings_.policy_path, policy_);
  return *switch_thread_;
}

PledgeSender& ProcessRuntime::pledge_sender() {
  const std::lock_guard lock(mutex_);
  if (!pledge_sender_) pledge_sender_ = std::make_unique<PledgeSender>();
  return *pledge_sender_;
}

void ProcessRuntime::Release(Communicator& communicator) {
  communicator.gone.store(true);
  if (communicator.tables) switch_thread().Leave(communicator.tables);
  const std::lock_guard lock(mutex_);
  if (pledge_sender_) pledge_sender_->ReleaseGone();
}

bool ProcessRuntime::OfferTable(const Communicator& communicator, TableOffer offer) {
  if (!Leads(communicator.meeting)) return false;
  return server_->OfferTable(communicator.token, std::move(offer));
}

// With mutex_ held.
void ProcessRuntime::ReadStore() {
  if (site_store_ || settings_.site_store_path.empty()) return;
  auto store = ReadSiteStore(settings_.site_store_path);
  if (!store) Log(LogLevel::kWarn, "nothing of earlier runs is used: {}", store.error().message);
  site_store_ = std::make_shared<SiteStore>(store ? std::move(*store) : SiteStore());
}

bool ProcessRuntime::GuardTable(GuardSubject subject) {
  const std::lock_guard lock(mutex_);
  if (!server_) return false;
  if (!guarded_.insert(subject.communicator).second) return false;
  ReadStore();
  subject.store = site_store_;
  subject.all_timed = settings_.times == Timed::kAll;
  subject.recorder = recorder();
  subject.place.nccl_version = static_cast<uint32_t>(VersionOfLibrary());
  return server_->Guard(std::make_shared<TableGuard>(std::move(subject), policy_, guard_totals_));
}

void ProcessRuntime::KeepLearnt() noexcept {
  Guarded([this] {
    ControlServer* server = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!guarded_.empty() && !settings_.site_store_path.empty()) server = server_.get();
    }
    if (server != nullptr) server->KeepLearnt();
  });
}

bool ProcessRuntime::Leads(const MeetingPoint& meeting) {
  const std::lock_guard lock(mutex_);
  return server_ && server_->Welcomes(meeting.root);
}

MeetingPoint ProcessRuntime::MeetingOf(const ncclUniqueId& id, int rank) {
  if (const auto block = ReadBlock(BytesOf(id))) {
    return {block->address, block->port, TokenOf(BytesOf(id)), block->secret, block->before_init};
  }
  const std::string rendezvous = TextSetting(Setting::kRendezvous);
  if (rendezvous.empty() || !Chooses(settings_.mode)) return {};
  const auto place = ParseHostPort(rendezvous);
  if (!place) {
    if (FirstTime("rendezvous")) Log(LogLevel::kWarn, "DYNAMICCL_RENDEZVOUS: {}", place.error().message);
    return {};
  }
  MeetingPoint meeting{place->first, place->second, TokenOf(BytesOf(id)), SecretOf(BytesOf(id))};
  if (rank == 0) ServeRendezvous(meeting);
  return meeting;
}

void ProcessRuntime::ServeRendezvous(const MeetingPoint& meeting) {
  ControlServer* server = Server({meeting.address}, meeting.port);
  if (server != nullptr) server->Welcome(meeting.root, meeting.secret);
}

}  // namespace dynamiccl
