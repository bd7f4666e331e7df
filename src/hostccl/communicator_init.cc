// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/communicator_init.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/byte_codec.h"
#include "src/base/settings.h"
#include "src/hostccl/introduction.h"
#include "src/transport/rendezvous.h"

namespace dynamiccl::hostccl {
namespace {

// What the first 40 of the 128 bytes of an id hold, as many as NCCL's own handle.
struct UniqueIdHandle {
  uint64_t magic = 0;
  uint32_t ipv4 = 0;
  uint16_t port = 0;
  uint16_t unused = 0;
  RendezvousToken token{};
};
static_assert(sizeof(UniqueIdHandle) == 40);
constexpr uint64_t kIdMagic = 0x31444955'4c434348;  // "HCCLUID1"

// The part of set-up that a fresh communicator and a split share.
class Assembly {
 public:
  Assembly(CommunicatorInfo info, CommunicatorSettings settings, const ncclConfig_t& config, int device)
      : deadline_(Deadline::After(settings.timeout_ms)) {
    parts_.info = info;
    parts_.settings = settings;
    parts_.config = config;
    parts_.device = device;
  }

  // Sockets to all peers, and everybody's memory.
  Status Join(MeshListener listener, const std::vector<std::string>& names) {
    if (parts_.info.n_ranks == 1) return {};
    DYNAMICCL_TRY(parts_.mesh, PeerMesh::Connect(std::move(listener), names, parts_.info.rank, deadline_));
    return ExchangeMemory();
  }

  // After Join: the links of a topology, whose state lives in the memory of rank 0.
  Status UseTopology(Topology topology) {
    DYNAMICCL_TRY(std::vector<int> node_of_rank, topology.NodesOfRanks(parts_.info.n_ranks));
    auto states = parts_.segments.empty() ? nullptr : parts_.segments.front();
    parts_.links =
        std::make_shared<EmulatedLinks>(std::move(topology), std::move(node_of_rank), std::move(states));
    for (int rank = 0; rank < parts_.info.n_ranks; ++rank) parts_.link_ranks.push_back(rank);
    return {};
  }
  void UseLinks(std::shared_ptr<EmulatedLinks> links, std::vector<int> link_ranks) {
    parts_.links = std::move(links);
    parts_.link_ranks = std::move(link_ranks);
    parts_.is_split = true;
  }

  Result<std::shared_ptr<Communicator>> Build() {
    const Fabric fabric = parts_.links->FabricOf(parts_.link_ranks, parts_.settings.max_channels);
    parts_.info.n_nodes = fabric.n_nodes;
    auto communicator = std::make_shared<Communicator>(std::move(parts_));
    // Every rank hears of every rank's failure, so that none is left with half a communicator.
    const Status planned = CreatePlanner(*communicator, fabric);
    DYNAMICCL_CHECK_OK(AgreeOnSuccess(*communicator, planned));
    communicator->set_profiler(ProfilerSession::Open(communicator->info(), communicator->config().commName));
    return communicator;
  }

 private:
  Status ExchangeMemory() {
    DYNAMICCL_TRY(auto own, Segment::Create(parts_.info.n_ranks));
    DYNAMICCL_TRY(auto descriptors, parts_.mesh->AllGatherDescriptors(own->fd(), deadline_));
    const uint64_t address = own->address();
    DYNAMICCL_TRY(const auto addresses,
                  parts_.mesh->AllGather(std::as_bytes(std::span(&address, 1)), deadline_));
    for (int rank = 0; rank < parts_.info.n_ranks; ++rank) {
      const auto index = static_cast<size_t>(rank);
      DYNAMICCL_TRY(auto segment, MemoryOf(rank, own, std::move(descriptors[index]), addresses[index]));
      parts_.segments.push_back(std::move(segment));
    }
    return {};
  }

  Result<std::shared_ptr<Segment>> MemoryOf(int rank, const std::shared_ptr<Segment>& own,
                                            UniqueFd descriptor, std::span<const std::byte> address) const {
    switch (parts_.mesh->reach(rank)) {
      case Reach::kSelf:
        return own;
      case Reach::kSameProcess:
        return Segment::FindInProcess(ByteReader(address).Get<uint64_t>());
      case Reach::kSameHost:
        return Segment::Attach(std::move(descriptor), parts_.info.n_ranks);
      case Reach::kRemote:
        break;
    }
    return MakeError(ErrorKind::kUnsupported, "rank {} is on another host", rank);
  }

  static Status CreatePlanner(Communicator& communicator, const Fabric& fabric) {
    PlannerOptions options;
    options.min_ctas = communicator.config().minCTAs;
    options.max_ctas = communicator.config().maxCTAs;
    options.device = communicator.device();
    options.emulated = communicator.settings().emulated;
    auto planner = Planner::Create(communicator.info(), fabric, options);
    if (!planner) {
      const bool usage = planner.error().result == ncclInvalidUsage;
      return MakeError(usage ? ErrorKind::kUnsupported : ErrorKind::kInternal, "{}", planner.error().message);
    }
    communicator.set_planner(std::move(*planner));
    return {};
  }

  Status AgreeOnSuccess(const Communicator& communicator, const Status& mine) const {
    if (communicator.mesh() == nullptr) return mine;
    const std::string text = mine ? "" : mine.error().message;
    DYNAMICCL_TRY(const auto all, communicator.mesh()->AllGather(std::as_bytes(std::span(text)), deadline_));
    DYNAMICCL_CHECK_OK(mine);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty()) continue;
      const std::string reason(reinterpret_cast<const char*>(all[rank].data()), all[rank].size());
      return MakeError(ErrorKind::kPeerFailed, "rank {} could not join: {}", rank, reason);
    }
    return {};
  }

  Communicator::Parts parts_;
  Deadline deadline_;
};

uint64_t Hash(const auto& value, uint64_t seed) {
  return XXH3_64bits_withSeed(&value, sizeof(value), seed);
}

}  // namespace

Result<ncclUniqueId> MakeUniqueId() {
  UniqueIdHandle handle;
  handle.magic = kIdMagic;
  FillRandom(handle.token);
  DYNAMICCL_TRY(const int64_t timeout_ms, IntegerSetting(Setting::kHostcclTimeoutMs));
  DYNAMICCL_TRY(const TcpAddress address,
                StartRendezvousRoot(TextSetting(Setting::kHostcclInterface), handle.token, timeout_ms));
  handle.ipv4 = address.ipv4;
  handle.port = address.port;
  ncclUniqueId id{};
  std::memcpy(id.internal, &handle, sizeof(handle));
  return id;
}

Result<std::shared_ptr<Communicator>> InitCommunicator(const InitRequest& request) {
  UniqueIdHandle handle;
  std::memcpy(&handle, request.id.internal, sizeof(handle));
  if (handle.magic != kIdMagic) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "the unique id was not made by hostccl's ncclGetUniqueId"),
        "load the same libnccl.so.2 in all processes");
  }
  DYNAMICCL_TRY(const CommunicatorSettings settings, CommunicatorSettings::FromEnvironment());
  DYNAMICCL_TRY(Topology topology, LoadTopology(TextSetting(Setting::kHostcclTopology)));
  DYNAMICCL_TRY(MeshListener listener, MeshListener::Open());
  const Introduction mine{listener.name, settings, HashOf(topology)};
  const RendezvousTicket ticket{{handle.ipv4, handle.port}, handle.token, request.rank, request.n_ranks};
  DYNAMICCL_TRY(const auto payloads, MeetAtRendezvous(ticket, mine.Encode(), settings.timeout_ms));
  std::vector<Introduction> ranks;
  std::vector<std::string> names;
  for (const auto& payload : payloads) {
    DYNAMICCL_TRY(Introduction introduction, Introduction::Decode(payload));
    names.push_back(introduction.listener);
    ranks.push_back(std::move(introduction));
  }
  DYNAMICCL_CHECK_OK(CheckEqualSettings(ranks));
  const CommunicatorInfo info{Hash(handle.token, 0), request.rank, request.n_ranks, 1};
  Assembly assembly(info, settings, request.config, request.device);
  DYNAMICCL_CHECK_OK(assembly.Join(std::move(listener), names));
  DYNAMICCL_CHECK_OK(assembly.UseTopology(std::move(topology)));
  return assembly.Build();
}

Result<std::shared_ptr<Communicator>> SplitCommunicator(Communicator& parent, const SplitRequest& request) {
  struct Member {
    int32_t key = 0;
    int32_t parent_rank = 0;
    std::string listener;
  };
  DYNAMICCL_TRY(MeshListener listener, MeshListener::Open());
  ByteWriter message;
  message.Put(static_cast<int32_t>(request.color));
  message.Put(static_cast<int32_t>(request.key));
  message.PutText(listener.name);
  std::vector<std::vector<std::byte>> all{message.buffer()};
  if (parent.mesh() != nullptr) {
    DYNAMICCL_TRY(all,
                  parent.mesh()->AllGather(message.buffer(), Deadline::After(parent.settings().timeout_ms)));
  }
  const uint64_t split_number = parent.NextSplit();
  std::vector<Member> members;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    const auto color = reader.Get<int32_t>();
    const auto key = reader.Get<int32_t>();
    if (color == request.color) members.push_back({key, static_cast<int32_t>(rank), reader.GetText(256)});
  }
  if (request.color == NCCL_SPLIT_NOCOLOR) return std::shared_ptr<Communicator>();
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.key < b.key; });
  CommunicatorInfo info;
  info.id = Hash(split_number, Hash(request.color, parent.info().id));
  info.n_ranks = static_cast<int32_t>(members.size());
  std::vector<std::string> names;
  std::vector<int> link_ranks;
  for (const Member& member : members) {
    if (member.parent_rank == parent.rank()) info.rank = static_cast<int32_t>(names.size());
    names.push_back(member.listener);
    link_ranks.push_back(parent.link_ranks()[static_cast<size_t>(member.parent_rank)]);
  }
  Assembly assembly(info, parent.settings(), request.config, parent.device());
  DYNAMICCL_CHECK_OK(assembly.Join(std::move(listener), names));
  assembly.UseLinks(parent.links(), std::move(link_ranks));
  return assembly.Build();
}

}  // namespace dynamiccl::hostccl
