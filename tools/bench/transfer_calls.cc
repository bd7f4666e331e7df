// SPDX-License-Identifier: Apache-2.0
// Issues the operations that nccl-tests builds from sends and receives: sendrecv and hypercube. alltoall,
// gather and scatter are built in the same way if the library has no function for them (before NCCL 2.28).
#include "tools/bench/bench_session.h"

namespace dynamiccl {
namespace {

using enum TestedCollective;
using Rooted = ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, int root, ncclComm_t,
                                cudaStream_t);
using Unrooted = ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);

const char* FunctionOf(TestedCollective collective) {
  switch (collective) {
    case kAlltoAll:
      return "ncclAlltoAll";
    case kGather:
      return "ncclGather";
    case kScatter:
      return "ncclScatter";
    default:
      return "";
  }
}

// True if rank `from` has data for rank `to`.
bool Sends(const BenchCall& call, int from, int to, int n) {
  switch (call.collective) {
    case kSendRecv:
      return to == (from + 1) % n;
    case kGather:
      return to == call.root;
    case kScatter:
      return from == call.root;
    default:
      return true;
  }
}

}  // namespace

Status BenchSession::Send(const std::byte* from, uint64_t count, const BenchCall& call, int peer) {
  return library_.Check(library_.functions().Send(from, count, static_cast<ncclDataType_t>(call.type), peer,
                                                  communicator_, device_->stream()),
                        "ncclSend", communicator_);
}

Status BenchSession::Receive(std::byte* to, uint64_t count, const BenchCall& call, int peer) {
  return library_.Check(library_.functions().Recv(to, count, static_cast<ncclDataType_t>(call.type), peer,
                                                  communicator_, device_->stream()),
                        "ncclRecv", communicator_);
}

// Calls the library's own function for the operation if it has one, else issues a group of sends and
// receives.
Status BenchSession::IssueTransfers(const BenchCall& call) {
  const int n = options_.place.n_ranks;
  const int rank = options_.place.rank;
  const auto type = static_cast<ncclDataType_t>(call.type);
  const char* name = FunctionOf(call.collective);
  if (void* function = *name == '\0' ? nullptr : library_.Symbol(name)) {
    const bool rooted = call.collective != kAlltoAll;
    const cudaStream_t stream = device_->stream();
    const ncclResult_t result =
        rooted ? reinterpret_cast<Rooted>(function)(call.send, call.receive, call.count, type, call.root,
                                                    communicator_, stream)
               : reinterpret_cast<Unrooted>(function)(call.send, call.receive, call.count, type,
                                                      communicator_, stream);
    return library_.Check(result, name, communicator_);
  }
  const size_t part = call.count * ElementBytes(call.type);
  const auto offset_of = [&](bool in_parts, int peer) {
    return in_parts ? static_cast<size_t>(peer) * part : 0;
  };
  DYNAMICCL_CHECK_OK(GroupStart());
  for (int peer = 0; peer < n; ++peer) {
    if (Sends(call, rank, peer, n)) {
      const size_t offset = offset_of(call.collective == kAlltoAll || call.collective == kScatter, peer);
      DYNAMICCL_CHECK_OK(Send(call.send + offset, call.count, call, peer));
    }
    if (Sends(call, peer, rank, n)) {
      const size_t offset = offset_of(call.collective == kAlltoAll || call.collective == kGather, peer);
      DYNAMICCL_CHECK_OK(Receive(call.receive + offset, call.count, call, peer));
    }
  }
  return GroupEnd();
}

// Step 0 copies a rank's own part into place. In each later step a rank exchanges all its parts with the rank
// whose number differs in one bit, so that the number of parts doubles.
Status BenchSession::IssueHypercube(const BenchCall& call) {
  const int n = options_.place.n_ranks;
  const int rank = options_.place.rank;
  const size_t part = call.count * ElementBytes(call.type);
  const auto at = [&](int r) { return call.receive + static_cast<size_t>(r) * part; };
  const bool copies_own = call.send != at(rank);
  for (int step = 0; step == 0 || step < n; step = step == 0 ? 1 : step * 2) {
    if (step == 0 && !copies_own) continue;
    DYNAMICCL_CHECK_OK(GroupStart());
    if (step == 0) {
      DYNAMICCL_CHECK_OK(Send(call.send, call.count, call, rank));
      DYNAMICCL_CHECK_OK(Receive(at(rank), call.count, call, rank));
    } else {
      const int have = rank & ~(step - 1);
      const uint64_t count = call.count * static_cast<uint64_t>(step);
      DYNAMICCL_CHECK_OK(Send(at(have), count, call, rank ^ step));
      DYNAMICCL_CHECK_OK(Receive(at(have ^ step), count, call, rank ^ step));
    }
    DYNAMICCL_CHECK_OK(GroupEnd());
  }
  return {};
}

}  // namespace dynamiccl
