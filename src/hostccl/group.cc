// SPDX-License-Identifier: Apache-2.0
// The state of a thread's group, and the work at the group's end: first set-ups of communicators, then the
// launch of calls.
#include "src/hostccl/group.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "src/hostccl/debug_log.h"
#include "src/hostccl/group_plan.h"
#include "src/transport/socket.h"

namespace dynamiccl::hostccl {
namespace {

// The calls and communicator set-ups that the thread has issued since its outermost ncclGroupStart.
// ncclGroupEnd runs all of them and empties the group.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::optional<bool> blocking;     // true if its communicators are blocking; not set without communicators
  std::vector<ncclComm_t> handles;  // the non-blocking ones
  GroupCalls calls;
  GroupEvents events;
  std::vector<PendingSetup> setups;
};

thread_local Group current;

// Adds the communicator of a call. As in NCCL, a group must not mix blocking and non-blocking communicators.
void NoteHandle(ncclComm_t handle) {
  const bool blocking = handle == nullptr || handle->blocking;
  if (current.blocking.value_or(blocking) != blocking) {
    Warn("Blocking and nonblocking communicators are not allowed in the same group.");
    return NoteGroupError(ncclInvalidArgument);
  }
  current.blocking = blocking;
  auto& handles = current.handles;
  if (!blocking && std::find(handles.begin(), handles.end(), handle) == handles.end()) {
    handles.push_back(handle);
  }
}

using Setups = std::vector<PendingSetup>;

// Splits set-ups into sequences. Set-ups on the same communicator use its sockets, so they form one sequence.
// Every other set-up is a sequence by itself.
std::vector<Setups> Sequences(Setups setups) {
  std::vector<Setups> sequences;
  for (PendingSetup& setup : setups) {
    const auto same = std::find_if(sequences.begin(), sequences.end(), [&](const Setups& other) {
      return setup.in_order_on != nullptr && other.front().in_order_on == setup.in_order_on;
    });
    if (same != sequences.end()) {
      same->push_back(std::move(setup));
    } else {
      sequences.emplace_back().push_back(std::move(setup));
    }
  }
  return sequences;
}

// Runs set-ups in order and stops at the first failure.
ncclResult_t RunInOrder(const Setups& setups) {
  for (const PendingSetup& setup : setups) {
    const ncclResult_t result = setup.run();
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

// Runs each sequence on its own thread. `cancelled` tells the threads to stop waiting; it is null if nobody
// can tell them.
ncclResult_t RunSetups(Setups setups, const std::atomic<bool>* cancelled) {
  const std::vector<Setups> sequences = Sequences(std::move(setups));
  std::vector<ncclResult_t> results(sequences.size(), ncclSuccess);
  const auto run = [&](size_t i) {
    std::optional<CancelScope> scope;
    if (cancelled != nullptr) scope.emplace(*cancelled);
    results[i] = RunInOrder(sequences[i]);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < sequences.size(); ++i) threads.emplace_back(run, i);
  if (!sequences.empty()) run(0);
  for (std::thread& thread : threads) thread.join();
  const auto failed =
      std::find_if(results.begin(), results.end(), [](ncclResult_t result) { return result != ncclSuccess; });
  return failed == results.end() ? ncclSuccess : *failed;
}

// Set-ups run first, because calls of the same group may use the communicators that they make.
ncclResult_t RunGroup(Group group, const std::atomic<bool>* cancelled) {
  const ncclResult_t result = RunSetups(std::move(group.setups), cancelled);
  return result == ncclSuccess ? LaunchGroup(std::move(group.calls)) : result;
}

void SetStates(const std::vector<ncclComm_t>& handles, ncclResult_t state) {
  for (ncclComm_t handle : handles) handle->state.store(state, std::memory_order_release);
}

// Runs the group on a new thread. The states of the group's handles keep the result.
ncclResult_t RunInBackground(Group group) {
  const std::vector<ncclComm_t> handles = group.handles;
  auto job = std::make_shared<BackgroundJob>();
  SetStates(handles, ncclInProgress);
  for (ncclComm_t handle : handles) {
    const std::lock_guard lock(handle->mutex);
    handle->job = job;
  }
  auto work = std::make_shared<Group>(std::move(group));
  job->Start([work, cancelled = &job->cancelled()] { return RunGroup(std::move(*work), cancelled); },
             [handles](ncclResult_t result) { SetStates(handles, result); });
  return ncclInProgress;
}

// Ends the innermost group. Returns the group to run. If an outer group is still open or the group cannot
// run, it returns nothing and sets `result`.
std::optional<Group> Close(ncclResult_t& result) {
  result = ncclInvalidUsage;
  if (current.depth == 0) {
    Warn("ncclGroupEnd: not in a group call.");
    return {};
  }
  result = ncclSuccess;
  if (--current.depth > 0) return {};
  Group group = std::exchange(current, Group{});
  group.events.EndBegins();
  if (group.error == ncclSuccess) return group;
  result = group.error;
  SetStates(group.handles, result);
  return {};
}

}  // namespace

void GroupStart() {
  ++current.depth;
}

bool InGroup() {
  return current.depth > 0;
}

ncclResult_t GroupEnd() {
  ncclResult_t result = ncclSuccess;
  std::optional<Group> group = Close(result);
  if (!group) return result;
  if (group->handles.empty()) return RunGroup(std::move(*group), nullptr);
  return RunInBackground(std::move(*group));
}

ncclResult_t GroupSimulate(float* microseconds) {
  ncclResult_t result = ncclSuccess;
  std::optional<Group> group = Close(result);
  if (!group) return result;
  const GroupCalls calls = std::exchange(group->calls, {});
  const bool has_setups = !group->setups.empty();
  if (has_setups && group->handles.empty()) result = RunGroup(std::move(*group), nullptr);
  if (has_setups && !group->handles.empty()) result = RunInBackground(std::move(*group));
  return result == ncclSuccess ? EstimateGroup(calls, *microseconds) : result;
}

// A single blocking call without profiler events, the most frequent kind, skips the bookkeeping of groups.
ncclResult_t Issue(PendingCollective collective) {
  const bool blocking = collective.handle == nullptr || collective.handle->blocking;
  const bool has_events =
      collective.communicator->profiler() != nullptr || collective.operation.choice.launch_event != nullptr;
  if (current.depth == 0 && blocking && !has_events) return LaunchAlone(std::move(collective));
  GroupStart();
  current.events.OnCollective(*collective.communicator, collective.stream, current.depth,
                              collective.operation);
  NoteHandle(collective.handle);
  current.calls.collectives.push_back(std::move(collective));
  return GroupEnd();
}

ncclResult_t Issue(PendingTransfer transfer) {
  GroupStart();
  current.events.OnTransfer(*transfer.communicator, transfer.stream, current.depth, transfer.sends,
                            transfer.transfer);
  NoteHandle(transfer.handle);
  current.calls.transfers.push_back(std::move(transfer));
  return GroupEnd();
}

ncclResult_t IssueSetup(PendingSetup setup) {
  GroupStart();
  NoteHandle(setup.handle);
  current.setups.push_back(std::move(setup));
  return GroupEnd();
}

void NoteGroupError(ncclResult_t result) {
  if (current.depth > 0 && current.error == ncclSuccess) current.error = result;
}

}  // namespace dynamiccl::hostccl
