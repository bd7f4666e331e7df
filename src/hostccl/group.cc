// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/group.h"

#include <thread>
#include <utility>
#include <vector>

#include "src/hostccl/group_plan.h"

namespace dynamiccl::hostccl {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  GroupCalls calls;
  GroupEvents events;
  std::vector<std::function<ncclResult_t()>> setups;
};

thread_local Group current;

ncclResult_t RunSetups(std::vector<std::function<ncclResult_t()>> setups) {
  if (setups.empty()) return ncclSuccess;
  if (setups.size() == 1) return setups.front()();
  std::vector<ncclResult_t> results(setups.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < setups.size(); ++i) {
    threads.emplace_back([&results, &setups, i] { results[i] = setups[i](); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ncclResult_t result : results) {
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace

void GroupStart() {
  ++current.depth;
}

ncclResult_t GroupEnd() {
  if (current.depth == 0) return ncclInvalidUsage;
  if (--current.depth > 0) return ncclSuccess;
  Group group = std::exchange(current, Group{});
  group.events.EndBegins();
  if (group.error != ncclSuccess) return group.error;
  const ncclResult_t result = RunSetups(std::move(group.setups));
  return result == ncclSuccess ? LaunchGroup(std::move(group.calls)) : result;
}

ncclResult_t Issue(PendingCollective collective) {
  GroupStart();
  current.events.OnCollective(*collective.communicator, collective.stream, current.depth,
                              collective.operation);
  current.calls.collectives.push_back(std::move(collective));
  return GroupEnd();
}

ncclResult_t Issue(PendingTransfer transfer) {
  GroupStart();
  current.events.OnTransfer(*transfer.communicator, transfer.stream, current.depth, transfer.sends,
                            transfer.transfer);
  current.calls.transfers.push_back(std::move(transfer));
  return GroupEnd();
}

ncclResult_t IssueSetup(std::function<ncclResult_t()> setup) {
  GroupStart();
  current.setups.push_back(std::move(setup));
  return GroupEnd();
}

void NoteGroupError(ncclResult_t result) {
  if (current.depth > 0 && current.error == ncclSuccess) current.error = result;
}

}  // namespace dynamiccl::hostccl
