// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/communicator_births.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "plugin/interpose/real_nccl.h"
#include "plugin/runtime/agreed_ctas.h"
#include "plugin/runtime/c_boundary.h"
#include "plugin/runtime/control_client.h"
#include "plugin/runtime/cta_policy.h"
#include "plugin/runtime/nccl_variable.h"
#include "src/base/clock.h"
#include "src/base/job_fail_point.h"
#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

std::atomic<uint32_t> g_next_number{0};
std::atomic<uint64_t> g_next_local{0};

uint64_t IdOf(const ControlToken& token) {
  uint64_t id = 0;
  std::memcpy(&id, token.data(), sizeof(id));
  return id;
}

// ncclConfig_t is append-only and a program's may be shorter than ours.
bool IsBlocking(const ncclConfig_t& config) {
  constexpr size_t kNeeded = offsetof(ncclConfig_t, blocking) + sizeof(int);
  return config.size < kNeeded || config.blocking != 0;
}

std::string PinnedCtas(const ncclConfig_t& config) {
  constexpr std::pair<const char*, size_t> kPins[] = {{"minCTAs", offsetof(ncclConfig_t, minCTAs)},
                                                      {"maxCTAs", offsetof(ncclConfig_t, maxCTAs)},
                                                      {"nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs)}};
  std::string pinned;
  for (const auto& [name, offset] : kPins) {
    const int value = MemberOf(config, offset);
    if (value != NCCL_CONFIG_UNDEF_INT)
      pinned += fmt::format("{}{}={}", pinned.empty() ? "" : " ", name, value);
  }
  return pinned;
}

// A config stands for itself: what it does not set is NCCL's default, not the parent's.
void TakeConfig(const ncclConfig_t& config, Communicator& communicator) {
  communicator.blocking = IsBlocking(config);
  communicator.pinned_ctas = PinnedCtas(config);
  communicator.set_ctas.clear();
  communicator.asked_for = nullptr;
  const int policy = MemberOf(config, offsetof(ncclConfig_t, CTAPolicy));
  communicator.zero_ctas = policy != NCCL_CONFIG_UNDEF_INT && (policy & NCCL_CTA_POLICY_ZERO) != 0;
}

// Why rules cannot set bounds on the channels at this place; empty where they can.
std::string WhyWithoutCtasHere(const Communicator& communicator, const ncclConfig_t* config) {
  if (InsideGroup()) return "it is made inside a group";
  if (!communicator.blocking || NcclVariable("NCCL_COMM_BLOCKING").value_or("1") == "0")
    return "it is non-blocking";
  if (RealAddress(RealFunction::kCommInitRankConfig) == nullptr) return "this NCCL takes no configuration";
  return WhyWithoutCtas(config);
}

// Nodes as the launcher spread the job; only a tuner's init knows better. 0: unknown.
int NodesByLauncher(const JobSettings& settings, int n_ranks) {
  if (settings.local_world <= 0 || settings.world != n_ranks) return 0;
  return (n_ranks + settings.local_world - 1) / settings.local_world;
}

// Tells ranks that wait for this one that they need not.
void Decline(ProcessRuntime& runtime, const Communicator& communicator) {
  const std::string why = runtime.WhyNotChoosing();
  if (why.empty() || !communicator.meeting.valid() || runtime.given_up()) return;
  PledgeMessage message{
      communicator.meeting.root, communicator.token, communicator.member, communicator.info.n_ranks, why,
      runtime.Attested()};
  // One try: they are told by a time-out as well.
  if (!PledgeAndLeave(communicator.meeting, message, 500)) runtime.GiveUp();
}

void Record(ProcessRuntime& runtime, Communicator& communicator) {
  communicator.number = g_next_number.fetch_add(1);
  runtime.OpenFiles(communicator.process_rank);
  if (Recorder* recorder = runtime.recorder()) {
    recorder->Append(CommunicatorRecord(communicator.number, communicator.info, MonotonicNanoseconds()));
  }
}

// Recognises what the calls are for, where there is a policy that knows.
void AddStructure(const ProcessRuntime& runtime, Communicator& communicator) {
  communicator.policy = runtime.policy();
  if (communicator.policy) communicator.structure = std::make_unique<StructureTrigger>(*communicator.policy);
}

// A child's rank and size are known only now, and of a non-blocking one later still.
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

void Introduce(ProcessRuntime& runtime, const std::shared_ptr<Communicator>& communicator,
               ncclComm_t handle) {
  if (handle == nullptr) return;
  IntroduceLate(runtime, *communicator, handle);
  runtime.communicators().Add(handle, communicator);
}

// Names of a parent's operations: one of each kind may have the same number.
enum class ChildKind : uint64_t { kSplit = 0, kShrink = 1, kGrow = 2 };
uint64_t OperationName(ChildKind kind, uint64_t number) {
  return static_cast<uint64_t>(kind) << 48 | number;
}

uint32_t DigestOf(std::span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  const Sha256Digest digest = Sha256Of(std::as_bytes(std::span(sorted)));
  uint32_t first = 0;
  std::memcpy(&first, digest.data(), sizeof(first));
  return first;
}

ControlToken GrownToken(const Communicator& parent) {
  return ChildToken(parent.token, OperationName(ChildKind::kGrow, parent.children.grows), 0);
}

// With all that a child has of its parent; its rank and size are left to be found.
std::shared_ptr<Communicator> ChildOf(const Communicator& parent, const ControlToken& token) {
  auto child = std::make_shared<Communicator>();
  child->token = token;
  child->meeting = parent.meeting;
  child->member = parent.info.rank;
  child->process_rank = parent.process_rank;
  child->within_process = parent.within_process;
  child->blocking = parent.blocking;
  child->pinned_ctas = parent.pinned_ctas;
  child->set_ctas = parent.set_ctas;
  child->asked_for = parent.asked_for;
  child->zero_ctas = parent.zero_ctas;
  child->info = {IdOf(token), -1, 0, 0};
  return child;
}

}  // namespace

void MarkBirth(ProcessRuntime& runtime, const Communicator& communicator) {
  runtime.OpenFiles(communicator.process_rank);
  Recorder* const recorder = runtime.recorder();
  if (recorder == nullptr) return;
  const CommunicatorInfo& info = communicator.info;
  recorder->Enter(WordsOf({.since_ns = MonotonicNanoseconds(),
                           .call_number = 0,
                           .bytes = info.id,
                           .communicator = 0,
                           .root_or_peer = static_cast<int16_t>(info.rank),
                           .group_size = static_cast<uint16_t>(std::max(info.n_ranks, 0)),
                           .collective = 0,
                           .data_type = 0,
                           .op = 0,
                           .what = static_cast<uint8_t>(InsideOf::kBirth),
                           .reserved = 0}));
}

void IntroduceLate(ProcessRuntime& runtime, Communicator& communicator, ncclComm_t handle) {
  if (!CompleteChild(handle, communicator.info)) return;
  communicator.introduced = true;
  Record(runtime, communicator);
}

CommunicatorBirth::CommunicatorBirth(const InitOf& init, const ncclConfig_t* config) noexcept {
  if (!guard_.outermost() || (runtime_ = ProcessRuntime::Get()) == nullptr) return;
  Guarded([&] {
    auto communicator = std::make_shared<Communicator>();
    const std::span<const uint8_t, kUniqueIdBytes> bytes(reinterpret_cast<const uint8_t*>(init.id.internal),
                                                         kUniqueIdBytes);
    communicator->token = TokenOf(bytes);
    communicator->meeting = runtime_->MeetingOf(init.id, init.rank);
    communicator->member = init.rank;
    communicator->process_rank = runtime_->settings().rank >= 0 ? runtime_->settings().rank : init.rank;
    communicator->info = {IdOf(communicator->token), init.rank, init.n_ranks,
                          NodesByLauncher(runtime_->settings(), init.n_ranks)};
    Expect(std::move(communicator), config);
    SetAgreedCtas(config);
  });
}

void CommunicatorBirth::SetAgreedCtas(const ncclConfig_t* config) {
  if (!communicator_->meeting.before_init && !runtime_->rules()) return;
  const CtaBounds ctas =
      AgreeOnCtas(*runtime_, *communicator_, CtasOf(config), WhyWithoutCtasHere(*communicator_, config));
  if (ctas.empty()) return;
  const auto given = std::make_shared<ConfigCopy>(config);
  const auto changed = std::make_shared<ConfigCopy>(config);
  changed->Add(ctas);
  communicator_->asked_for = given;
  config_ = changed;
}

Communicator* CommunicatorBirth::NotedParent(ncclComm_t parent) {
  if (!guard_.outermost() || (runtime_ = ProcessRuntime::Get()) == nullptr) return nullptr;
  return runtime_->communicators().Find(parent);
}

CommunicatorBirth::CommunicatorBirth(const SplitOf& split, const ncclConfig_t* config) noexcept {
  Communicator* parent = NotedParent(split.parent);
  if (parent == nullptr) return;
  const uint64_t operation = OperationName(ChildKind::kSplit, parent->children.splits++);
  if (split.colour == NCCL_SPLIT_NOCOLOR) return;
  Guarded([&] {
    Expect(ChildOf(*parent, ChildToken(parent->token, operation, split.colour)), config);
    SayThatChildsCtasStay(config);
  });
}

CommunicatorBirth::CommunicatorBirth(const ShrinkOf& shrink, const ncclConfig_t* config) noexcept {
  Communicator* parent = NotedParent(shrink.parent);
  if (parent == nullptr) return;
  Guarded([&] {
    const uint32_t excluded = DigestOf(shrink.excluded);
    const uint64_t operation = OperationName(ChildKind::kShrink, parent->children.shrinks[excluded]++);
    auto child = ChildOf(*parent, ChildToken(parent->token, operation, static_cast<int>(excluded)));
    const auto before = [&](int rank) { return rank < parent->info.rank; };
    child->info.rank = parent->info.rank - static_cast<int>(std::count_if(shrink.excluded.begin(),
                                                                          shrink.excluded.end(), before));
    child->info.n_ranks = parent->info.n_ranks - static_cast<int>(shrink.excluded.size());
    Expect(std::move(child), config);
    SayThatChildsCtasStay(config);
  });
}

// Without a configuration it has what its parent has.
void CommunicatorBirth::SayThatChildsCtasStay(const ncclConfig_t* config) {
  if (config != nullptr)
    SayThatCtasStay(*runtime_, *communicator_,
                    "rules are not for children with a configuration of their own");
}

CommunicatorBirth::CommunicatorBirth(const GrowOf& grow, const ncclConfig_t* config) noexcept {
  if (!guard_.outermost() || (runtime_ = ProcessRuntime::Get()) == nullptr) return;
  Guarded([&] { ExpectGrown(grow, config); });
}

void CommunicatorBirth::ExpectGrown(const GrowOf& grow, const ncclConfig_t* config) {
  std::shared_ptr<Communicator> grown;
  if (grow.parent != nullptr) {
    Communicator* parent = runtime_->communicators().Find(grow.parent);
    if (parent == nullptr) return;
    grown = ChildOf(*parent, GrownToken(*parent));
    // Ranks that join have nothing of the parent's, so neither has what rules set in it an heir.
    if (config == nullptr && parent->asked_for) config_ = parent->asked_for;
    grown->set_ctas.clear();
    grown->asked_for = nullptr;
    ++parent->children.grows;
    grown->info.rank = parent->info.rank;
  } else {
    if (grow.id == nullptr) return;
    grown = std::make_shared<Communicator>();
    const GrowMeeting meeting = runtime_->MeetingOfGrown(*grow.id);
    grown->token = meeting.token;
    grown->meeting = meeting.place;
    grown->process_rank = runtime_->settings().rank >= 0 ? runtime_->settings().rank : grow.rank;
    grown->info = {IdOf(grown->token), grow.rank, 0, 0};
  }
  grown->member = grown->info.rank;
  grown->info.n_ranks = grow.n_ranks;
  Expect(std::move(grown), config);
}

ncclConfig_t* CommunicatorBirth::Config(ncclConfig_t* given) const {
  return config_ ? config_->get() : given;
}

void CommunicatorBirth::Expect(std::shared_ptr<Communicator> communicator, const ncclConfig_t* config) {
  if (config != nullptr) TakeConfig(*config, *communicator);
  // The environment comes before the program, and is read once, as in NCCL (src/init.cc, envConfigOverride).
  static const auto policy = ParseCtaPolicy(NcclVariable("NCCL_CTA_POLICY").value_or(""));
  if (policy) communicator->zero_ctas = (*policy & NCCL_CTA_POLICY_ZERO) != 0;
  PassJobFailPoint(JobFailPoint::kInitBegin);
  communicator_ = std::move(communicator);
  AddStructure(*runtime_, *communicator_);
  runtime_->OfferAsPlugins();
  Decline(*runtime_, *communicator_);
  runtime_->communicators().Expect(communicator_);
  if (!InsideGroup()) MarkBirth(*runtime_, *communicator_);
}

ncclResult_t CommunicatorBirth::Finish(ncclResult_t result, ncclComm_t* handle) noexcept {
  if (communicator_ == nullptr) return result;
  Guarded([&] {
    runtime_->communicators().CallReturned();
    if (InsideGroup()) {
      UnbornOfThisThread().push_back({communicator_, handle});
      return;
    }
    if (Recorder* const recorder = runtime_->recorder()) recorder->Leave();
    // A non-blocking communicator goes on being initialised, and its tuner with it.
    if (result != ncclInProgress) runtime_->communicators().StopExpecting(*communicator_);
    if (result == ncclSuccess || result == ncclInProgress) Introduce(*runtime_, communicator_, *handle);
  });
  return result;
}

void BringToLife(ProcessRuntime& runtime, std::vector<UnbornCommunicator>& unborn, ncclResult_t result) {
  for (const UnbornCommunicator& each : unborn) {
    if (result != ncclInProgress) runtime.communicators().StopExpecting(*each.communicator);
    if (result == ncclSuccess || result == ncclInProgress)
      Introduce(runtime, each.communicator, *each.handle);
  }
  unborn.clear();
}

CommunicatorsOfProcess::CommunicatorsOfProcess(int n_ranks) noexcept {
  if (!guard_.outermost() || (runtime_ = ProcessRuntime::Get()) == nullptr) return;
  Guarded([&] {
    runtime_->OfferAsPlugins();
    ControlToken token{};
    const uint64_t unique[] = {static_cast<uint64_t>(::getpid()), g_next_local.fetch_add(1)};
    std::memcpy(token.data(), unique, sizeof(unique));
    const MeetingPoint meeting = runtime_->MeetingInProcess(token);
    for (int rank = 0; rank < n_ranks; ++rank) {
      auto communicator = std::make_shared<Communicator>();
      communicator->token = token;
      communicator->meeting = meeting;
      communicator->member = communicator->process_rank = rank;
      communicator->within_process = true;
      communicator->info = {IdOf(token) << 32 | unique[1], rank, n_ranks, 0};
      AddStructure(*runtime_, *communicator);
      runtime_->communicators().Expect(communicator);
      if (rank == 0) SayThatCtasStay(*runtime_, *communicator, "ncclCommInitAll takes no configuration");
      communicators_.push_back(std::move(communicator));
    }
    runtime_->communicators().CallReturned();
  });
}

ncclResult_t CommunicatorsOfProcess::Finish(ncclResult_t result, ncclComm_t* handles) noexcept {
  Guarded([&] {
    for (size_t rank = 0; rank < communicators_.size(); ++rank) {
      runtime_->communicators().StopExpecting(*communicators_[rank]);
      if (result == ncclSuccess) Introduce(*runtime_, communicators_[rank], handles[rank]);
    }
  });
  return result;
}

void UniqueIdMade(ncclUniqueId& id) noexcept {
  if (ProcessRuntime* runtime = ProcessRuntime::Get()) Guarded([&] { runtime->MarkUniqueId(id); });
}

void GrowIdMade(ncclComm_t parent_handle, ncclUniqueId& id) noexcept {
  ProcessRuntime* runtime = ProcessRuntime::Get();
  Communicator* parent = runtime == nullptr ? nullptr : runtime->communicators().Find(parent_handle);
  if (parent == nullptr) return;
  Guarded([&] { runtime->MarkGrowId(parent->meeting, GrownToken(*parent), id); });
}

void CommunicatorRevoked(ncclComm_t handle) noexcept {
  ProcessRuntime* runtime = ProcessRuntime::Get();
  Communicator* communicator = runtime == nullptr ? nullptr : runtime->communicators().Find(handle);
  if (communicator != nullptr) Guarded([&] { runtime->Release(*communicator); });
}

void CommunicatorGone(ncclComm_t handle) noexcept {
  ProcessRuntime* runtime = ProcessRuntime::Get();
  if (runtime == nullptr) return;
  Guarded([&] {
    PassJobFailPoint(JobFailPoint::kGone);
    const std::shared_ptr<Communicator> communicator = runtime->communicators().Remove(handle);
    if (communicator) {
      runtime->Release(*communicator);
      runtime->communicators().Free(communicator);
    }
    runtime->SaveDecisions();
    Recorder* recorder = runtime->recorder();
    if (communicator == nullptr || recorder == nullptr) return;
    TraceRecord record = EmptyRecord(RecordKind::kCommunicatorEnd, MonotonicNanoseconds());
    record.communicator = communicator->number;
    recorder->Append(record);
  });
}

}  // namespace dynamiccl
