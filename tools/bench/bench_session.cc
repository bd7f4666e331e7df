// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench_session.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Values exchanged at once: 32 KiB, small against any benchmark's own buffers.
constexpr size_t kExchangeValues = 4096;
// Ranks start within a second of each other; the rest is for machines under load.
constexpr std::chrono::seconds kMeetTimeout{30};

}  // namespace

Result<std::unique_ptr<BenchSession>> BenchSession::Open() {
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  DYNAMICCL_TRY(NcclLibrary library, NcclLibrary::Open());
  std::unique_ptr<BenchSession> session(new BenchSession(std::move(library), place));
  DYNAMICCL_CHECK_OK(session->Start());
  return session;
}

Status BenchSession::Start() {
  const NcclFunctionTable& nccl = library_.functions();
  auto device = library_.is_hostccl() ? OpenHostDevice(library_) : OpenCudaDevice(place_.local_rank);
  if (!device) return tl::unexpected<Error>(device.error());
  device_ = std::move(*device);
  ncclUniqueId id{};
  if (place_.rank == 0) DYNAMICCL_CHECK_OK(library_.Check(nccl.GetUniqueId(&id), "ncclGetUniqueId"));
  DYNAMICCL_TRY(id, ExchangeUniqueId(place_, id, kMeetTimeout));
  DYNAMICCL_CHECK_OK(
      library_.Check(nccl.CommInitRank(&communicator_, place_.n_ranks, id, place_.rank), "ncclCommInitRank"));
  DYNAMICCL_TRY(exchange_, device_->Allocate(kExchangeValues * sizeof(double)));
  return {};
}

BenchSession::~BenchSession() {
  if (communicator_ != nullptr) library_.functions().CommDestroy(communicator_);
}

Status BenchSession::Issue(const BenchCall& call) {
  const NcclFunctionTable& nccl = library_.functions();
  const auto type = static_cast<ncclDataType_t>(call.type);
  const auto op = static_cast<ncclRedOp_t>(call.op);
  const cudaStream_t stream = device_->stream();
  ncclResult_t result = ncclInvalidArgument;
  switch (call.collective) {
    case Collective::kAllReduce:
      result = nccl.AllReduce(call.send, call.receive, call.count, type, op, communicator_, stream);
      break;
    case Collective::kAllGather:
      result = nccl.AllGather(call.send, call.receive, call.count, type, communicator_, stream);
      break;
    case Collective::kReduceScatter:
      result = nccl.ReduceScatter(call.send, call.receive, call.count, type, op, communicator_, stream);
      break;
    case Collective::kBroadcast:
      result = nccl.Broadcast(call.send, call.receive, call.count, type, call.root, communicator_, stream);
      break;
    case Collective::kReduce:
      result = nccl.Reduce(call.send, call.receive, call.count, type, op, call.root, communicator_, stream);
      break;
    default:
      break;
  }
  return library_.Check(result, Name(call.collective).data(), communicator_);
}

Status BenchSession::Barrier() {
  DYNAMICCL_CHECK_OK(
      Issue({.count = 1, .type = DataType::kFloat64, .send = exchange_, .receive = exchange_}));
  return device_->Synchronize();
}

Status BenchSession::MaxOverRanks(std::vector<double>& values) {
  for (size_t begin = 0; begin < values.size(); begin += kExchangeValues) {
    const size_t count = std::min(kExchangeValues, values.size() - begin);
    auto* host = reinterpret_cast<std::byte*>(values.data() + begin);
    DYNAMICCL_CHECK_OK(device_->CopyIn(exchange_, host, count * sizeof(double)));
    DYNAMICCL_CHECK_OK(Issue({.count = count,
                              .type = DataType::kFloat64,
                              .op = ReduceOp::kMax,
                              .send = exchange_,
                              .receive = exchange_}));
    DYNAMICCL_CHECK_OK(device_->Synchronize());
    DYNAMICCL_CHECK_OK(device_->CopyOut(host, exchange_, count * sizeof(double)));
  }
  return {};
}

}  // namespace dynamiccl
