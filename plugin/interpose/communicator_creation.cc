// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/communicator_creation.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "plugin/border/nccl_variable.h"
#include "plugin/border/no_throw.h"
#include "plugin/border/real_nccl.h"
#include "plugin/runtime/agreed_ctas.h"
#include "plugin/runtime/control_client.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

// The next communicator's number in this process's trace. Numbers follow the order of the records.
std::atomic<uint32_t> g_next_number{0};
// Counts calls of ncclCommInitAll, whose communicators have no unique id.
std::atomic<uint64_t> g_next_local{0};

// Returns the id by which traces and logs name a communicator. Like the token, it is equal on all ranks.
uint64_t IdOf(const ControlToken& token) {
  uint64_t id = 0;
  std::memcpy(&id, token.data(), sizeof(id));
  return id;
}

// Reads only this config: members that it does not set get NCCL's defaults, not the parent's values.
CommunicatorConfig ReadConfig(const ncclConfig_t& config) {
  CommunicatorConfig read;
  read.blocking = IsBlocking(config);
  read.pinned_ctas = PinnedCtas(config);
  const int policy = MemberOf(config, offsetof(ncclConfig_t, CTAPolicy));
  read.zero_ctas = policy != NCCL_CONFIG_UNDEF_INT && (policy & NCCL_CTA_POLICY_ZERO) != 0;
  return read;
}

// Returns why rules cannot set bounds on the channels of this communicator; empty if they can.
std::string WhyWithoutCtasHere(const Communicator& communicator, const ncclConfig_t* config) {
  if (IssuingThread::Current().inside_group()) return "it is made inside a group";
  if (!communicator.config.blocking || NcclVariable("NCCL_COMM_BLOCKING").value_or("1") == "0")
    return "it is non-blocking";
  if (RealAddress(RealFunction::kCommInitRankConfig) == nullptr) return "this NCCL takes no configuration";
  return WhyWithoutCtas(config);
}

// Returns the number of nodes according to the launcher's variables; 0 if unknown. Only a tuner's init knows
// the exact number.
int NodesByLauncher(const JobSettings& settings, int n_ranks) {
  if (settings.local_world <= 0 || settings.world != n_ranks) return 0;
  return (n_ranks + settings.local_world - 1) / settings.local_world;
}

// Tells the leader that this rank takes no part, so that other ranks do not wait for it.
void DeclineIfNotChoosing(ProcessRuntime& runtime, const Communicator& communicator) {
  const std::string why = runtime.choices().WhyNotChoosing();
  const CommunicatorIdentity& of = communicator.identity;
  if (why.empty() || !of.rendezvous.valid() || runtime.rendezvous().given_up()) return;
  PledgeMessage message{of.rendezvous.root, of.token, of.member,
                        of.info.n_ranks,    why,      runtime.choices().Attested()};
  // One attempt is enough: if this message does not arrive, the leader's time-out has the same effect.
  if (!PledgeAndLeave(of.rendezvous, message, kDeclineMs)) runtime.rendezvous().GiveUp();
}

// Gives the communicator its number in the trace, and writes its record.
void RecordCommunicator(ProcessRuntime& runtime, CommunicatorIdentity& of) {
  of.number = g_next_number.fetch_add(1);
  runtime.OpenFiles(of.process_rank);
  if (Recorder* recorder = runtime.recorder()) {
    recorder->Append(CommunicatorRecord(of.number, of.info, MonotonicNanoseconds()));
  }
}

// Adds the policy's structure agent, if there is a policy.
void AddStructure(const LoadedChoices& choices, IssuingState& issuing) {
  issuing.policy = choices.policy();
  if (issuing.policy) issuing.structure = std::make_unique<StructureAgent>(*issuing.policy);
}

// Asks the library for rank and size of a child. Returns false while the library does not know them, for
// example while a non-blocking communicator is still being initialised.
bool CompleteChild(ncclComm_t handle, CommunicatorInfo& info) {
  if (info.rank >= 0 && info.n_ranks > 0) return true;
  int rank = -1;
  int n_ranks = 0;
  if (DYNAMICCL_FORWARD(CommUserRank, handle, &rank) != ncclSuccess) return false;
  if (DYNAMICCL_FORWARD(CommCount, handle, &n_ranks) != ncclSuccess) return false;
  info.rank = rank;
  info.n_ranks = n_ranks;
  return true;
}

// Called when the program has the handle: writes the communicator's record and makes its calls findable.
void Introduce(ProcessRuntime& runtime, const std::shared_ptr<Communicator>& communicator,
               ncclComm_t handle) {
  if (handle == nullptr) return;
  CompleteIdentity(runtime, *communicator, handle);
  runtime.communicators().Add(handle, communicator);
}

// The ways to make a communicator from a parent. OperationName combines one with the number of the operation,
// because operations of different kinds may have the same number.
enum class ChildKind : uint64_t { kSplit = 0, kShrink = 1, kGrow = 2 };
uint64_t OperationName(ChildKind kind, uint64_t number) {
  return static_cast<uint64_t>(kind) << 48 | number;
}

// Returns a digest of the excluded ranks. It does not depend on the order in which a rank lists them.
uint32_t DigestOf(std::span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  const Sha256Digest digest = Sha256Of(std::as_bytes(std::span(sorted)));
  uint32_t first = 0;
  std::memcpy(&first, digest.data(), sizeof(first));
  return first;
}

// Returns the token of the communicator that the parent's next growth makes.
ControlToken GrownToken(const Communicator& parent) {
  return ChildToken(parent.identity.token, OperationName(ChildKind::kGrow, parent.issuing.children.grows), 0);
}

// Makes a child with everything that it inherits from its parent; its rank and size are not known yet.
std::shared_ptr<Communicator> ChildOf(const Communicator& parent, const ControlToken& token) {
  auto child = std::make_shared<Communicator>();
  child->identity = parent.identity;
  child->identity.number = 0;
  child->identity.token = token;
  child->identity.member = parent.identity.info.rank;
  child->identity.info = {IdOf(token), -1, 0, 0};
  child->config = parent.config;
  return child;
}

}  // namespace

void MarkInit(ProcessRuntime& runtime, const Communicator& communicator) {
  runtime.OpenFiles(communicator.identity.process_rank);
  Recorder* const recorder = runtime.recorder();
  if (recorder == nullptr) return;
  const CommunicatorInfo& info = communicator.identity.info;
  recorder->Enter(WordsOf({.since_ns = MonotonicNanoseconds(),
                           .call_number = 0,
                           .bytes = info.id,
                           .communicator = 0,
                           .root_or_peer = static_cast<int16_t>(info.rank),
                           .group_size = static_cast<uint16_t>(std::max(info.n_ranks, 0)),
                           .collective = 0,
                           .data_type = 0,
                           .op = 0,
                           .what = static_cast<uint8_t>(InsideOf::kInit),
                           .reserved = 0}));
}

void CompleteIdentity(ProcessRuntime& runtime, Communicator& communicator, ncclComm_t handle) {
  if (!CompleteChild(handle, communicator.identity.info)) return;
  communicator.issuing.introduced = true;
  RecordCommunicator(runtime, communicator.identity);
}

// A communicator from a unique id: its ranks meet at the address in the id.
CommunicatorCreation::CommunicatorCreation(const InitOrigin& init, const ncclConfig_t* config) noexcept {
  if (!scope_.outermost() || (runtime_ = RuntimeInstance::Get()) == nullptr) return;
  NoThrow([&] {
    auto communicator = std::make_shared<Communicator>();
    const std::span<const uint8_t, kUniqueIdBytes> bytes(reinterpret_cast<const uint8_t*>(init.id.internal),
                                                         kUniqueIdBytes);
    const JobSettings& settings = runtime_->settings();
    CommunicatorIdentity& of = communicator->identity;
    of.token = TokenOf(bytes);
    of.rendezvous = runtime_->rendezvous().RendezvousOf(init.id, init.rank);
    of.member = init.rank;
    of.process_rank = settings.rank >= 0 ? settings.rank : init.rank;
    of.info = {IdOf(of.token), init.rank, init.n_ranks, NodesByLauncher(settings, init.n_ranks)};
    Expect(std::move(communicator), config);
    SetAgreedCtas(config);
  });
}

void CommunicatorCreation::SetAgreedCtas(const ncclConfig_t* config) {
  const LoadedChoices& choices = runtime_->choices();
  if (!communicator_->identity.rendezvous.before_init && !choices.rules()) return;
  const CtaBounds ctas = AgreeOnCtas(choices, runtime_->rendezvous(), *communicator_, CtasOf(config),
                                     WhyWithoutCtasHere(*communicator_, config));
  if (ctas.empty()) return;
  const auto given = std::make_shared<ConfigCopy>(config);
  const auto changed = std::make_shared<ConfigCopy>(config);
  changed->Add(ctas);
  communicator_->config.asked_for = given;
  config_ = changed;
}

Communicator* CommunicatorCreation::NotedParent(ncclComm_t parent) {
  if (!scope_.outermost() || (runtime_ = RuntimeInstance::Get()) == nullptr) return nullptr;
  return runtime_->communicators().Find(parent);
}

// A child of a split: every rank of the parent takes part, so the number of the split and the colour identify
// the child.
CommunicatorCreation::CommunicatorCreation(const SplitOrigin& split, const ncclConfig_t* config) noexcept {
  Communicator* parent = NotedParent(split.parent);
  if (parent == nullptr) return;
  const uint64_t operation = OperationName(ChildKind::kSplit, parent->issuing.children.splits++);
  if (split.colour == NCCL_SPLIT_NOCOLOR) return;
  NoThrow([&] {
    Expect(ChildOf(*parent, ChildToken(parent->identity.token, operation, split.colour)), config);
    WarnThatChildsCtasStay(config);
  });
}

// A child of a shrink: the remaining ranks keep their order, so rank and size are known at once.
CommunicatorCreation::CommunicatorCreation(const ShrinkOrigin& shrink, const ncclConfig_t* config) noexcept {
  Communicator* parent = NotedParent(shrink.parent);
  if (parent == nullptr) return;
  NoThrow([&] {
    const uint32_t excluded = DigestOf(shrink.excluded);
    const uint64_t operation =
        OperationName(ChildKind::kShrink, parent->issuing.children.shrinks[excluded]++);
    auto child = ChildOf(*parent, ChildToken(parent->identity.token, operation, static_cast<int>(excluded)));
    const CommunicatorInfo& old = parent->identity.info;
    const auto before = [&](int rank) { return rank < old.rank; };
    child->identity.info.rank =
        old.rank - static_cast<int>(std::count_if(shrink.excluded.begin(), shrink.excluded.end(), before));
    child->identity.info.n_ranks = old.n_ranks - static_cast<int>(shrink.excluded.size());
    Expect(std::move(child), config);
    WarnThatChildsCtasStay(config);
  });
}

// Warns only about a child with a configuration of its own. Any other child takes over its parent's
// configuration, and with it the bounds that rules have set there.
void CommunicatorCreation::WarnThatChildsCtasStay(const ncclConfig_t* config) {
  if (config != nullptr)
    WarnThatCtasStay(runtime_->choices(), *communicator_,
                     "rules are not for children with a configuration of their own");
}

// A grown communicator: the old ranks know its parent; new ranks know only the id that one of the old ranks
// made.
CommunicatorCreation::CommunicatorCreation(const GrowOrigin& grow, const ncclConfig_t* config) noexcept {
  if (!scope_.outermost() || (runtime_ = RuntimeInstance::Get()) == nullptr) return;
  NoThrow([&] { ExpectGrown(grow, config); });
}

void CommunicatorCreation::ExpectGrown(const GrowOrigin& grow, const ncclConfig_t* config) {
  std::shared_ptr<Communicator> grown;
  if (grow.parent != nullptr) {
    Communicator* parent = runtime_->communicators().Find(grow.parent);
    if (parent == nullptr) return;
    grown = ChildOf(*parent, GrownToken(*parent));
    // New ranks know nothing of the parent, so the bounds that rules set in the parent do not carry over.
    if (config == nullptr && parent->config.asked_for) config_ = parent->config.asked_for;
    grown->config.set_ctas.clear();
    grown->config.asked_for = nullptr;
    ++parent->issuing.children.grows;
    grown->identity.info.rank = parent->identity.info.rank;
  } else {
    if (grow.id == nullptr) return;
    grown = std::make_shared<Communicator>();
    const GrowRendezvous rendezvous = RendezvousOfGrown(*grow.id);
    grown->identity.token = rendezvous.token;
    grown->identity.rendezvous = rendezvous.point;
    grown->identity.process_rank = runtime_->settings().rank >= 0 ? runtime_->settings().rank : grow.rank;
    grown->identity.info = {IdOf(rendezvous.token), grow.rank, 0, 0};
  }
  grown->identity.member = grown->identity.info.rank;
  grown->identity.info.n_ranks = grow.n_ranks;
  Expect(std::move(grown), config);
}

ncclConfig_t* CommunicatorCreation::Config(ncclConfig_t* given) const {
  return config_ ? config_->get() : given;
}

void CommunicatorCreation::Expect(std::shared_ptr<Communicator> communicator, const ncclConfig_t* config) {
  if (config != nullptr) communicator->config = ReadConfig(*config);
  // The environment takes precedence over the program's configuration and is read once, as in NCCL
  // (src/init.cc, envConfigOverride).
  static const auto policy = ParseCtaPolicy(NcclVariable("NCCL_CTA_POLICY").value_or(""));
  if (policy) communicator->config.zero_ctas = (*policy & NCCL_CTA_POLICY_ZERO) != 0;
  PassJobFailPoint(JobFailPoint::kInitBegin);
  communicator_ = std::move(communicator);
  AddStructure(runtime_->choices(), communicator_->issuing);
  runtime_->plugins().Offer();
  DeclineIfNotChoosing(*runtime_, *communicator_);
  runtime_->communicators().Expect(communicator_);
  if (!IssuingThread::Current().inside_group()) MarkInit(*runtime_, *communicator_);
}

ncclResult_t CommunicatorCreation::Finish(ncclResult_t result, ncclComm_t* handle) noexcept {
  if (communicator_ == nullptr) return result;
  NoThrow([&] {
    runtime_->communicators().CallReturned();
    IssuingThread& thread = IssuingThread::Current();
    if (thread.inside_group()) {
      thread.pending_communicators.push_back({communicator_, handle});
      return;
    }
    if (Recorder* const recorder = runtime_->recorder()) recorder->Leave();
    // The initialisation of a non-blocking communicator, including its tuner's init, continues after this
    // call.
    if (result != ncclInProgress) runtime_->communicators().StopExpecting(*communicator_);
    if (result == ncclSuccess || result == ncclInProgress) Introduce(*runtime_, communicator_, *handle);
  });
  return result;
}

void RegisterPendingCommunicators(ProcessRuntime& runtime,
                                  std::vector<PendingCommunicator>& pending_communicators,
                                  ncclResult_t result) {
  // The program may reuse the memory of a handle after the group. So no handle is kept, even if a step below
  // fails.
  for (const PendingCommunicator& each : std::exchange(pending_communicators, {})) {
    if (result != ncclInProgress) runtime.communicators().StopExpecting(*each.communicator);
    if (result == ncclSuccess || result == ncclInProgress)
      Introduce(runtime, each.communicator, *each.handle);
  }
}

// There is no unique id, so the process id and a count identify the communicator.
InitAllCreation::InitAllCreation(int n_ranks) noexcept {
  if (!scope_.outermost() || (runtime_ = RuntimeInstance::Get()) == nullptr) return;
  NoThrow([&] {
    runtime_->plugins().Offer();
    ControlToken token{};
    const uint64_t unique[] = {static_cast<uint64_t>(::getpid()), g_next_local.fetch_add(1)};
    std::memcpy(token.data(), unique, sizeof(unique));
    const RendezvousPoint rendezvous = runtime_->rendezvous().RendezvousInProcess(token);
    for (int rank = 0; rank < n_ranks; ++rank) {
      auto communicator = std::make_shared<Communicator>();
      communicator->identity = {.info = {IdOf(token) << 32 | unique[1], rank, n_ranks, 0},
                                .token = token,
                                .rendezvous = rendezvous,
                                .member = rank,
                                .process_rank = rank,
                                .within_process = true};
      AddStructure(runtime_->choices(), communicator->issuing);
      runtime_->communicators().Expect(communicator);
      if (rank == 0)
        WarnThatCtasStay(runtime_->choices(), *communicator, "ncclCommInitAll takes no configuration");
      communicators_.push_back(std::move(communicator));
    }
    runtime_->communicators().CallReturned();
  });
}

ncclResult_t InitAllCreation::Finish(ncclResult_t result, ncclComm_t* handles) noexcept {
  NoThrow([&] {
    for (size_t rank = 0; rank < communicators_.size(); ++rank) {
      runtime_->communicators().StopExpecting(*communicators_[rank]);
      if (result == ncclSuccess) Introduce(*runtime_, communicators_[rank], handles[rank]);
    }
  });
  return result;
}

void UniqueIdMade(ncclUniqueId& id) noexcept {
  if (ProcessRuntime* runtime = RuntimeInstance::Get())
    NoThrow([&] { runtime->rendezvous().MarkUniqueId(id); });
}

void GrowIdMade(ncclComm_t parent_handle, ncclUniqueId& id) noexcept {
  ProcessRuntime* runtime = RuntimeInstance::Get();
  Communicator* parent = runtime == nullptr ? nullptr : runtime->communicators().Find(parent_handle);
  if (parent == nullptr) return;
  NoThrow([&] { RendezvousPoints::MarkGrowId(parent->identity.rendezvous, GrownToken(*parent), id); });
}

// Releases a call that waits for a verdict about the communicator.
void CommunicatorRevoked(ncclComm_t handle) noexcept {
  ProcessRuntime* runtime = RuntimeInstance::Get();
  Communicator* communicator = runtime == nullptr ? nullptr : runtime->communicators().Find(handle);
  if (communicator != nullptr) NoThrow([&] { runtime->Release(*communicator); });
}

// Releases everything that waits for the communicator before its memory is freed. Choices are saved each time
// a communicator ends, because a job may be killed before its exit handlers run.
void CommunicatorGone(ncclComm_t handle) noexcept {
  ProcessRuntime* runtime = RuntimeInstance::Get();
  if (runtime == nullptr) return;
  NoThrow([&] {
    PassJobFailPoint(JobFailPoint::kGone);
    const std::shared_ptr<Communicator> communicator = runtime->communicators().Remove(handle);
    if (communicator) {
      runtime->Release(*communicator);
      runtime->communicators().Free(communicator);
    }
    runtime->files().SaveDecisions();
    Recorder* recorder = runtime->recorder();
    if (communicator == nullptr || recorder == nullptr) return;
    TraceRecord record = EmptyRecord(RecordKind::kCommunicatorEnd, MonotonicNanoseconds());
    record.communicator = communicator->identity.number;
    recorder->Append(record);
  });
}

}  // namespace dynamiccl
