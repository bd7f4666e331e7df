// SPDX-License-Identifier: Apache-2.0
// Implements creation and end of a group, and how calls are issued and coalesced. The operations themselves
// are in collectives.cc, tensor_lists.cc and point_to_point.cc.
#include "zero_workloads/torch_backend/host_backend.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "src/nccl_abi/host_timeout.h"
#include "zero_workloads/torch_backend/nccl_operands.h"

namespace dynamiccl::torch_backend {
namespace {

// hostccl waits this much longer than the group's time-out. The backend's own error then comes first, and it
// names the call that did not finish.
constexpr std::chrono::seconds kLibraryGrace{10};

// Raises hostccl's own time-out, which applies to all communicators, above the group's.
void RaiseLibraryTimeout(std::chrono::milliseconds of_group) {
  hostcclRaiseTimeout(std::chrono::milliseconds(of_group + kLibraryGrace).count());
}

c10::intrusive_ptr<c10d::Backend::Options> OptionsOf(const HostBackend::Membership& membership) {
  auto options = c10::make_intrusive<c10d::Backend::Options>("dynamiccl", membership.timeout);
  options->group_name = membership.group_name;
  options->global_ranks_in_group = membership.global_ranks;
  return options;
}

// The default group may have no name, and is then called "0".
std::string NameOf(const std::string& group_name) {
  return group_name.empty() ? "0" : group_name;
}

// The type and number of elements, for example "float32 x 1024". With several tensors, describes the first
// one and counts the others.
std::string ElementsText(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return "no tensor";
  const std::string first = c10::str(TypeName(tensors[0]), " x ", tensors[0].numel());
  return tensors.size() == 1 ? first : c10::str(first, " and ", tensors.size() - 1, " more");
}

std::shared_ptr<Communicator> MeetGroup(c10d::Store& store, const HostBackend::Membership& membership) {
  RaiseLibraryTimeout(membership.timeout);
  return std::make_shared<Communicator>(
      store, Communicator::Rendezvous{"group " + NameOf(membership.group_name), "nccl_id", membership.rank,
                                      membership.size, membership.timeout});
}

}  // namespace

HostBackend::HostBackend(c10::intrusive_ptr<c10d::Store> store, Membership membership)
    : HostBackend(store, membership, MeetGroup(*store, membership)) {}

HostBackend::HostBackend(c10::intrusive_ptr<c10d::Store> store, Membership membership,
                         std::shared_ptr<Communicator> communicator)
    : Backend(membership.rank, membership.size),
      store_(std::move(store)),
      options_(OptionsOf(membership)),
      communicator_(std::move(communicator)) {
  init();
}

// A child of fork() has no thread of the watch, and the watch's destructor would wait for it for ever.
HostBackend::~HostBackend() {
  if (process_ != ::getpid()) (void)watch_.release();
}

void HostBackend::setTimeout(std::chrono::milliseconds timeout) {
  RaiseLibraryTimeout(timeout);
  options_->timeout = timeout;
}

c10d::ErrorType HostBackend::getError() {
  return communicator_->Failure().empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

void HostBackend::abort() {
  communicator_->Abort("the program aborted it");
  const std::lock_guard lock(mutex_);
  for (const auto& [peer, pair] : pairs_) pair->Abort("the program aborted it");
}

void HostBackend::shutdown() {
  // The mutex is not held while this function waits. A wait may last as long as the time-out, and an abort
  // needs access to the pairs meanwhile.
  std::vector<PairChannel*> pairs;  // they live as long as this object
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [peer, pair] : pairs_) pairs.push_back(pair.get());
  }
  for (PairChannel* const pair : pairs) pair->Synchronize();
  hostcclStreamSynchronize(communicator_->stream());
}

c10::intrusive_ptr<c10d::Backend> HostBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                     const std::vector<int>& ranks,
                                                     const c10::intrusive_ptr<Options>& opts) {
  const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
  if (mine == ranks.end()) {
    Communicator::LeaveOut(*communicator_);
    return nullptr;  // endCoalescing returns the block's work
  }
  TORCH_CHECK_VALUE(std::is_sorted(ranks.begin(), ranks.end()), "split: ranks are to be in ascending order");
  Membership membership{static_cast<int>(mine - ranks.begin()),
                        static_cast<int>(ranks.size()),
                        opts->group_name,
                        {},
                        opts->timeout};
  for (const int rank : ranks) {
    const auto& global = options_->global_ranks_in_group;
    membership.global_ranks.push_back(global.empty() ? rank : global.at(rank));
  }
  RaiseLibraryTimeout(membership.timeout);
  // The color that a rank passes to the split is the lowest rank of its new group. No other new group
  // contains this rank, so colors are unique.
  auto communicator = std::make_shared<Communicator>(*communicator_, ranks.front());
  return c10::intrusive_ptr<Backend>::reclaim(
      new HostBackend(store, std::move(membership), std::move(communicator)));
}

void HostBackend::CheckRank(const char* operation, const char* name, int64_t rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < getSize(), operation, ": ", name, " ", rank, " is not in group ",
                    options_->group_name, " of ", getSize(), " ranks");
}

c10::intrusive_ptr<PendingWork> HostBackend::NewWork(Call call) {
  const auto& tensors = call.content.inputs.empty() ? call.content.outputs : call.content.inputs;
  CallText text{call.operation, call.type, sequence_++, NameOf(options_->group_name), ElementsText(tensors)};
  const bool unset = call.timeout == c10d::kUnsetTimeout || call.timeout == kNoTimeout;
  return c10::make_intrusive<PendingWork>(getRank(), std::move(text),
                                          std::string("dynamiccl:") + call.operation, std::move(call.content),
                                          unset ? options_->timeout : call.timeout);
}

ncclResult_t HostBackend::IssueToNccl(Communicator& communicator, bool several, const NcclCalls& calls) {
  const ncclComm_t handle = communicator.handle();
  ncclResult_t result = several ? ncclGroupStart() : ncclSuccess;
  try {
    if (result == ncclSuccess) result = calls(handle, communicator.stream());
  } catch (...) {
    // An open group would hold back all later calls of this thread.
    if (several) ncclGroupEnd();
    throw;
  }
  if (several) {
    const ncclResult_t ended = ncclGroupEnd();
    if (result == ncclSuccess) result = ended;
  }
  return result;
}

HostBackend::WorkHandle HostBackend::Issue(Call call, bool several, const NcclCalls& calls) {
  return IssueOn(communicator_, std::move(call), several, calls);
}

HostBackend::WorkHandle HostBackend::IssueOn(const std::shared_ptr<Communicator>& communicator, Call call,
                                             bool several, const NcclCalls& calls) {
  const BlockGuard guard(*this);
  const std::lock_guard lock(mutex_);
  const ncclResult_t result = IssueToNccl(*communicator, several, calls);
  if (result != ncclSuccess)
    TORCH_CHECK_WITH(DistBackendError, false, call.operation, " number ", sequence_, " of group ",
                     NameOf(options_->group_name), " on rank ", getRank(), ": ",
                     communicator->Refusal(result));
  if (Coalesces()) {
    if (coalescing_->work != nullptr)
      coalescing_->work->Add(std::move(call.content));
    else
      coalescing_->work = NewWork(std::move(call));
    return nullptr;  // endCoalescing returns the block's work
  }
  auto work = NewWork(std::move(call));
  work->Launch(communicator);
  watch_->Add(work);
  return work;
}

HostBackend::BlockGuard::~BlockGuard() {
  if (std::uncaught_exceptions() == exceptions_) return;
  const std::lock_guard lock(backend_.mutex_);
  if (backend_.Coalesces()) backend_.DropBlock();
}

// Simulating the end of NCCL's group closes the group without launching its calls.
void HostBackend::DropBlock() {
  coalescing_.reset();
  ncclGroupSimulateEnd(nullptr);
}

// torch.distributed does not end a block that an exception has left. If this thread still has an open block,
// an exception has left it.
void HostBackend::startCoalescing() {
  const std::lock_guard lock(mutex_);
  if (Coalesces()) DropBlock();
  TORCH_CHECK(!coalescing_, "another thread has opened a coalescing block of group ",
              NameOf(options_->group_name));
  communicator_->handle();  // throws before NCCL's group is open
  ncclGroupStart();
  coalescing_.emplace();
}

HostBackend::WorkHandle HostBackend::endCoalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(Coalesces(), "no coalescing block is open on this thread, or a call inside it failed");
  auto work = std::move(coalescing_->work);
  coalescing_.reset();
  const ncclResult_t result = ncclGroupEnd();
  if (result != ncclSuccess)
    TORCH_CHECK_WITH(DistBackendError, false, "coalesced calls: ", communicator_->Refusal(result));
  if (work == nullptr) work = NewWork({"no_call", c10d::OpType::COALESCED});
  work->Launch(communicator_);
  watch_->Add(work);
  return work;
}

}  // namespace dynamiccl::torch_backend
