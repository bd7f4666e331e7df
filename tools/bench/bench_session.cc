// SPDX-License-Identifier: Apache-2.0
// Opens a session and issues its calls. transfer_calls.cc has the operations that consist of sends and
// receives.
#include "tools/bench/bench_session.h"

#include <algorithm>

#include "src/nccl_abi/host_channels.h"
#include "tools/bench/data_check.h"

namespace dynamiccl {
namespace {

// The most numbers (8 bytes each) that one exchange between ranks carries: 32 KiB, small compared with any
// benchmark's own buffers.
constexpr size_t kExchangeValues = 4096;
// Time limit until all ranks have connected to rank 0. Ranks start within a second of each other; the rest is
// for machines under load.
constexpr std::chrono::seconds kMeetTimeout{30};

}  // namespace

Result<std::unique_ptr<BenchSession>> BenchSession::Open() {
  DYNAMICCL_TRY(const RankPlace place, RankPlaceFromEnvironment());
  return Open({.place = place});
}

Result<std::unique_ptr<BenchSession>> BenchSession::Open(const SessionOptions& options) {
  DYNAMICCL_TRY(NcclLibrary library, NcclLibrary::Open());
  std::unique_ptr<BenchSession> session(new BenchSession(std::move(library), options));
  DYNAMICCL_CHECK_OK(session->Start());
  return session;
}

Status BenchSession::Start() {
  const NcclFunctionTable& nccl = library_.functions();
  const RankPlace& place = options_.place;
  DYNAMICCL_TRY(device_, OpenDevice(library_, place, options_.null_stream));
  ncclUniqueId id{};
  if (place.rank == 0) DYNAMICCL_CHECK_OK(library_.Check(nccl.GetUniqueId(&id), "ncclGetUniqueId"));
  DYNAMICCL_TRY(id, ExchangeUniqueId(place, id, kMeetTimeout));
  DYNAMICCL_CHECK_OK(CreateCommunicator(id));
  if (options_.registration != Registration::kNone) {
    DYNAMICCL_TRY(RegisteredMemory memory,
                  RegisteredMemory::Open(library_, communicator_, options_.registration));
    registered_.emplace(std::move(memory));
  }
  DYNAMICCL_TRY(exchange_, device_->Allocate(kExchangeValues * sizeof(double)));
  return {};
}

Status BenchSession::CreateCommunicator(const ncclUniqueId& id) {
  const NcclFunctionTable& nccl = library_.functions();
  const RankPlace& place = options_.place;
  if (!options_.cta_policy) {
    return library_.Check(nccl.CommInitRank(&communicator_, place.n_ranks, id, place.rank),
                          "ncclCommInitRank");
  }
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.CTAPolicy = *options_.cta_policy;
  return library_.Check(nccl.CommInitRankConfig(&communicator_, place.n_ranks, id, place.rank, &config),
                        "ncclCommInitRankConfig");
}

BenchSession::~BenchSession() {
  registered_.reset();
  if (communicator_ != nullptr) library_.functions().CommDestroy(communicator_);
}

Result<std::byte*> BenchSession::AllocateBuffer(size_t bytes) {
  return registered_ ? registered_->Allocate(bytes) : device_->Allocate(bytes);
}

Result<ncclRedOp_t> BenchSession::OperatorOf(const BenchCall& call) {
  if (!call.doubled) return static_cast<ncclRedOp_t>(call.op);
  for (const Doubler& known : doublers_) {
    if (known.type == call.type) return known.op;
  }
  using Create = ncclResult_t (*)(ncclRedOp_t*, void*, ncclDataType_t, int residence, ncclComm_t);
  const auto create = reinterpret_cast<Create>(library_.Symbol("ncclRedOpCreatePreMulSum"));
  if (create == nullptr)
    return MakeError(ErrorKind::kUnsupported, "-o mulsum: {} has no ncclRedOpCreatePreMulSum",
                     library_.Description());
  // The value of ncclScalarHostImmediate: the library reads the factor during the call.
  constexpr int kHostImmediate = 1;
  std::byte two[sizeof(double)] = {};
  StoreElement(call.type, two, 2);
  ncclRedOp_t op{};
  DYNAMICCL_CHECK_OK(
      library_.Check(create(&op, two, static_cast<ncclDataType_t>(call.type), kHostImmediate, communicator_),
                     "ncclRedOpCreatePreMulSum", communicator_));
  doublers_.push_back({call.type, op});
  return op;
}

Status BenchSession::Issue(const BenchCall& call) {
  const NcclFunctionTable& nccl = library_.functions();
  const auto type = static_cast<ncclDataType_t>(call.type);
  const cudaStream_t stream = device_->stream();
  DYNAMICCL_TRY(const ncclRedOp_t op, OperatorOf(call));
  ncclResult_t result = ncclInvalidArgument;
  switch (call.collective) {
    case TestedCollective::kAllReduce:
      result = nccl.AllReduce(call.send, call.receive, call.count, type, op, communicator_, stream);
      break;
    case TestedCollective::kAllGather:
      result = nccl.AllGather(call.send, call.receive, call.count, type, communicator_, stream);
      break;
    case TestedCollective::kReduceScatter:
      result = nccl.ReduceScatter(call.send, call.receive, call.count, type, op, communicator_, stream);
      break;
    case TestedCollective::kBroadcast:
      result = nccl.Broadcast(call.send, call.receive, call.count, type, call.root, communicator_, stream);
      break;
    case TestedCollective::kReduce:
      result = nccl.Reduce(call.send, call.receive, call.count, type, op, call.root, communicator_, stream);
      break;
    case TestedCollective::kHypercube:
      return IssueHypercube(call);
    default:
      return IssueTransfers(call);
  }
  return library_.Check(result, ProgramName(call.collective).data(), communicator_);
}

Status BenchSession::GroupStart() {
  return library_.Check(library_.functions().GroupStart(), "ncclGroupStart");
}

Status BenchSession::GroupEnd() {
  return library_.Check(library_.functions().GroupEnd(), "ncclGroupEnd");
}

bool BenchSession::Supports(DataType type) {
  const bool issued = Issue({.count = 1, .type = type, .send = exchange_, .receive = exchange_}).has_value();
  return device_->Synchronize().has_value() && issued;
}

int BenchSession::ChannelsOf(Collective collective, uint64_t bytes, const CollectiveConfig& config) const {
  const auto ask = reinterpret_cast<decltype(&hostcclUsualChannels)>(library_.Symbol("hostcclUsualChannels"));
  int channels = 0;
  const bool told = ask != nullptr && ask(communicator_, static_cast<int>(collective), bytes,
                                          static_cast<int>(config.algorithm),
                                          static_cast<int>(config.protocol), &channels) == ncclSuccess;
  return told ? channels : 0;
}

Status BenchSession::Barrier() {
  DYNAMICCL_CHECK_OK(
      Issue({.count = 1, .type = DataType::kFloat64, .send = exchange_, .receive = exchange_}));
  return device_->Synchronize();
}

Result<double> BenchSession::SumOverRanks(double value) {
  std::vector<double> values{value};
  DYNAMICCL_CHECK_OK(SumOverRanks(values));
  return values[0];
}

Status BenchSession::Reduce(std::vector<double>& values, ReduceOp op) {
  for (size_t begin = 0; begin < values.size(); begin += kExchangeValues) {
    const size_t count = std::min(kExchangeValues, values.size() - begin);
    auto* host = reinterpret_cast<std::byte*>(values.data() + begin);
    DYNAMICCL_CHECK_OK(device_->CopyIn(exchange_, host, count * sizeof(double)));
    DYNAMICCL_CHECK_OK(Issue(
        {.count = count, .type = DataType::kFloat64, .op = op, .send = exchange_, .receive = exchange_}));
    DYNAMICCL_CHECK_OK(device_->Synchronize());
    DYNAMICCL_CHECK_OK(device_->CopyOut(host, exchange_, count * sizeof(double)));
  }
  return {};
}

}  // namespace dynamiccl
