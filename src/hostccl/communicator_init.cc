// SPDX-License-Identifier: Apache-2.0
// Sets up communicators. The ranks of a new communicator meet at the rendezvous, those of a split exchange
// messages over the parent's mesh, and those of a shrunk communicator meet at the listening socket of one
// rank (regroup.h). Then all take the same steps (Assembly):
// - The ranks connect to each other (PeerMesh), and each opens a socket for a later shrink.
// - They exchange the memory in which they receive, and start the relay to other hosts.
// - They agree on whether processes may copy from each other.
// - The links follow from the topology, the fabric from the links. The planner is made for the fabric and
//   loads the tuner plugin.
// - They tell each other whether they succeeded, so that all ranks have the communicator or none has.
#include "src/hostccl/communicator_init.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/byte_codec.h"
#include "src/base/fail_point.h"
#include "src/base/settings.h"
#include "src/hostccl/bootstrap_message.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/regroup.h"
#include "src/hostccl/timeout.h"
#include "src/transport/link_server.h"
#include "src/transport/process_copies.h"
#include "src/transport/rendezvous.h"

namespace dynamiccl::hostccl {
namespace {

// The first 40 of the 128 bytes of a unique id. NCCL's own handle inside an id has the same size.
struct UniqueIdHandle {
  uint64_t magic = 0;
  uint32_t ipv4 = 0;
  uint16_t port = 0;
  uint16_t unused = 0;
  RendezvousToken token{};
};
static_assert(sizeof(UniqueIdHandle) == 40);
constexpr uint64_t kIdMagic = 0x31444955'4c434348;  // "HCCLUID1"

// The common steps of making a new, split or shrunk communicator. The object lives on the stack of the thread
// that makes the communicator, and one deadline limits all its steps.
class Assembly {
 public:
  Assembly(CommunicatorInfo info, CommunicatorSettings settings, const ncclConfig_t& config, int device)
      : deadline_(Deadline::After(settings.timeout_ms)) {
    parts_.info = info;
    parts_.settings = settings;
    parts_.config = config;
    parts_.device = device;
  }

  // Connects to all peers and exchanges the memory in which ranks receive. With one rank it does nothing.
  Status Join(MeshListener listener, const std::vector<std::string>& names) {
    if (parts_.info.n_ranks == 1) return {};
    DYNAMICCL_TRY(parts_.mesh, PeerMesh::Connect(std::move(listener), names, parts_.info.rank, deadline_));
    PassFailPoint(FailPoint::kMeshJoined);
    DYNAMICCL_TRY(RegroupListeners listeners,
                  RegroupListeners::Open(*parts_.mesh, TextSetting(Setting::kHostcclInterface), deadline_));
    parts_.regroup = std::make_shared<const RegroupListeners>(std::move(listeners));
    DYNAMICCL_CHECK_OK(ExchangeMemory());
    PassFailPoint(FailPoint::kMemoryExchanged);
    DYNAMICCL_CHECK_OK(StartRelay());
    PassFailPoint(FailPoint::kRelayStarted);
    return AgreeOnCopies();
  }

  // After Join: makes the links of a topology. Their state lies in the memory of rank 0. On several hosts
  // each host is a node, and no other topology is allowed.
  Status UseTopology(Topology topology) {
    DYNAMICCL_TRY(std::vector<int> node_of_rank, topology.NodesOfRanks(parts_.info.n_ranks));
    if (HasSeveralHosts()) {
      if (topology != Topology{}) {
        return WithHint(MakeError(ErrorKind::kUnsupported,
                                  "HOSTCCL_TOPOLOGY emulates links inside one host; the ranks are on {}",
                                  NumberOfHosts()),
                        "unset HOSTCCL_TOPOLOGY: hosts count as nodes");
      }
      topology.nodes = NumberOfHosts();
      node_of_rank = parts_.mesh->hosts();
    }
    auto states = parts_.segments.empty() ? nullptr : parts_.segments.front();
    parts_.links =
        std::make_shared<EmulatedLinks>(std::move(topology), std::move(node_of_rank), std::move(states));
    for (int rank = 0; rank < parts_.info.n_ranks; ++rank) parts_.link_ranks.push_back(rank);
    if (parts_.info.rank == 0 && parts_.links->any_shaped()) OpenLinkControl();
    return {};
  }
  // Takes the links of the parent. Used instead of UseTopology by communicators that were made from another
  // one.
  void UseLinks(std::shared_ptr<EmulatedLinks> links, std::vector<int> link_ranks) {
    parts_.links = std::move(links);
    parts_.link_ranks = std::move(link_ranks);
    parts_.is_split = true;
  }

  // Makes the communicator and its planner. Then all ranks agree on whether every rank has succeeded.
  InitResult Build() {
    Fabric fabric = parts_.links->FabricOf(parts_.link_ranks, parts_.settings.max_channels);
    if (HasSeveralHosts()) fabric.inter = kHostLink;
    parts_.info.n_nodes = fabric.n_nodes;
    auto communicator = std::make_shared<Communicator>(std::move(parts_));
    // Every rank learns of a failure of any rank, so that all ranks have the communicator or none has.
    auto planner = CreatePlanner(*communicator, fabric);
    PassFailPoint(FailPoint::kPlannerMade);
    const Status agreed = AgreeOnSuccess(*communicator, planner ? "" : planner.error().message);
    // If the plugin failed on this rank, the program gets the plugin's own result.
    if (!planner) return tl::unexpected(InitError(planner.error().result, planner.error().message));
    if (!agreed) return tl::unexpected(InitError(agreed.error()));
    communicator->set_planner(std::move(*planner));
    PassFailPoint(FailPoint::kAgreed);
    if (HasProfiler(communicator->settings().emulated))
      communicator->set_profiler(
          ProfilerSession::Open(communicator->info(), communicator->config().commName));
    return communicator;
  }

 private:
  // Starts the server for `dynamiccl link`. The job also runs without it, so a failure is only logged.
  void OpenLinkControl() {
    const Status served = ServeLinks(parts_.links);
    if (!served) Warn("`dynamiccl link` cannot reach this job: {}", served.error().message);
  }

  Status ExchangeMemory() {
    DYNAMICCL_TRY(auto own, Segment::Create(parts_.info.n_ranks));
    PassFailPoint(FailPoint::kMemoryMade);
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

  int NumberOfHosts() const {
    if (parts_.mesh == nullptr) return 1;
    return 1 + *std::max_element(parts_.mesh->hosts().begin(), parts_.mesh->hosts().end());
  }
  bool HasSeveralHosts() const { return NumberOfHosts() > 1; }

  // Returns the segment of a rank. That is this rank's own segment, the segment of a thread of this process,
  // a mapping of another process's segment, or, for a remote rank, a new segment as its shadow.
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
    return Segment::Create(parts_.info.n_ranks);  // the shadow of a remote rank
  }

  // Starts the relay that carries messages to ranks on other hosts. Without such ranks it does nothing.
  Status StartRelay() {
    const int self = parts_.info.rank;
    PeerMesh* const mesh = parts_.mesh.get();
    RemoteRelay::Setup setup{.rank = self,
                             .own = parts_.segments[static_cast<size_t>(self)],
                             .on_departed = [mesh](int peer) { mesh->NoteRemoteEnd(peer); },
                             .linger_ms = parts_.settings.timeout_ms};
    for (int rank = 0; rank < parts_.info.n_ranks; ++rank) {
      if (mesh->same_host(rank)) continue;
      setup.peers.push_back({rank, mesh->TakeRelaySocket(rank), parts_.segments[static_cast<size_t>(rank)]});
    }
    if (setup.peers.empty()) return {};
    DYNAMICCL_TRY(parts_.relay, RemoteRelay::Start(std::move(setup)));
    return {};
  }

  Status AgreeOnCopies() {
    const bool wanted = parts_.settings.copies_between_processes;
    DYNAMICCL_TRY(parts_.copies_between_processes, AgreeOnProcessCopies(*parts_.mesh, wanted, deadline_));
    if (!parts_.copies_between_processes && parts_.info.rank == 0) {
      Info(NCCL_SUBSYS_INIT, "{}: private buffers of other processes go through slots",
           wanted ? "process_vm_readv is refused (ptrace_scope, seccomp or a container), or HOSTCCL_CMA=0 on "
                    "a rank"
                  : "HOSTCCL_CMA=0");
    }
    return {};
  }

  static PlanResult<std::unique_ptr<Planner>> CreatePlanner(const Communicator& communicator,
                                                            const Fabric& fabric) {
    PlannerOptions options;
    options.min_ctas = communicator.config().minCTAs;
    options.max_ctas = communicator.config().maxCTAs;
    options.device = communicator.device();
    options.emulated = communicator.settings().emulated;
    options.links = fabric.n_nodes > 1 || communicator.links()->any_shaped();
    return Planner::Create(communicator.info(), fabric, options);
  }

  // Exchanges each rank's problem, which is an empty text if there is none. Returns an error if any rank has
  // a problem.
  Status AgreeOnSuccess(const Communicator& communicator, const std::string& problem) const {
    if (communicator.mesh() == nullptr) return {};
    DYNAMICCL_TRY(const auto all,
                  communicator.mesh()->AllGather(std::as_bytes(std::span(problem)), deadline_));
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

// Returns the hash of a value and of an earlier hash. Ranks that hash the same values get the same hash.
uint64_t Hash(const auto& value, uint64_t seed) {
  return XXH3_64bits_withSeed(&value, sizeof(value), seed);
}

// Reads a unique id. Returns kInvalidArgument when another library made the id.
Result<UniqueIdHandle> HandleOf(const ncclUniqueId& id) {
  UniqueIdHandle handle;
  std::memcpy(&handle, id.internal, sizeof(handle));
  if (handle.magic == kIdMagic) return handle;
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "the unique id was not made by hostccl's ncclGetUniqueId"),
      "load the same libnccl.so.2 in all processes");
}

// The ranks of a parent that become a communicator, in the order of their new ranks.
struct Members {
  uint64_t id = 0;
  std::vector<int> parent_ranks;
  std::vector<std::string> listeners;

  CommunicatorInfo InfoFor(int parent_rank) const {
    const auto place =
        std::find(parent_ranks.begin(), parent_ranks.end(), parent_rank) - parent_ranks.begin();
    return {id, static_cast<int32_t>(place), static_cast<int32_t>(parent_ranks.size()), 1};
  }
};

// Makes a communicator of `members` over the parent's links: the last steps of split and shrink.
InitResult MakeChild(const Communicator& parent, const Members& members, MeshListener listener,
                     const ncclConfig_t& config) {
  CommunicatorSettings settings = parent.settings();
  settings.timeout_ms = parent.timeout_ms();
  Assembly assembly(members.InfoFor(parent.rank()), settings, config, parent.device());
  DYNAMICCL_CHECK_OK(assembly.Join(std::move(listener), members.listeners));
  std::vector<int> link_ranks;
  for (const int rank : members.parent_ranks) {
    link_ranks.push_back(parent.link_ranks()[static_cast<size_t>(rank)]);
  }
  assembly.UseLinks(parent.links(), std::move(link_ranks));
  return assembly.Build();
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

InitError::InitError(const Error& error)
    : result(ToNcclResult(error.kind)),
      message(error.hint.empty() ? error.message : fmt::format("{} ({})", error.message, error.hint)) {}

Result<ncclUniqueId> MakeUniqueId() {
  UniqueIdHandle handle;
  handle.magic = kIdMagic;
  FillRandom(handle.token);
  DYNAMICCL_TRY(const int64_t timeout_ms, TimeoutMs());
  DYNAMICCL_TRY(const TcpAddress address,
                StartRendezvousRoot(TextSetting(Setting::kHostcclInterface), handle.token, timeout_ms));
  handle.ipv4 = address.ipv4;
  handle.port = address.port;
  ncclUniqueId id{};
  std::memcpy(id.internal, &handle, sizeof(handle));
  PassFailPoint(FailPoint::kIdMade);
  return id;
}

Status RetireUniqueId(const ncclUniqueId& id) {
  DYNAMICCL_TRY(const UniqueIdHandle handle, HandleOf(id));
  DYNAMICCL_TRY(const int64_t timeout_ms, TimeoutMs());
  DYNAMICCL_TRY(const auto alone,
                MeetAtRendezvous({{handle.ipv4, handle.port}, handle.token, 0, 1}, {}, timeout_ms));
  return {};
}

// The identifier of the communicator (NCCL's commHash) is a hash of the rendezvous token.
InitResult InitCommunicator(const InitRequest& request) {
  DYNAMICCL_TRY(const UniqueIdHandle handle, HandleOf(request.id));
  DYNAMICCL_TRY(const CommunicatorSettings settings, CommunicatorSettings::FromEnvironment());
  DYNAMICCL_TRY(Topology topology, LoadTopology(TextSetting(Setting::kHostcclTopology)));
  DYNAMICCL_TRY(MeshListener listener, MeshListener::Open());
  const BootstrapMessage mine{listener.name, settings, HashOf(topology)};
  PassFailPoint(FailPoint::kRendezvous);
  const RendezvousTicket ticket{{handle.ipv4, handle.port}, handle.token, request.rank, request.n_ranks};
  DYNAMICCL_TRY(const auto payloads, MeetAtRendezvous(ticket, mine.Encode(), settings.timeout_ms));
  PassFailPoint(FailPoint::kMeet);
  std::vector<BootstrapMessage> ranks;
  std::vector<std::string> names;
  for (const auto& payload : payloads) {
    DYNAMICCL_TRY(BootstrapMessage message, BootstrapMessage::Decode(payload));
    names.push_back(message.listener);
    ranks.push_back(std::move(message));
  }
  DYNAMICCL_CHECK_OK(CheckEqualSettings(ranks));
  const CommunicatorInfo info{Hash(handle.token, 0), request.rank, request.n_ranks, 1};
  Assembly assembly(info, settings, request.config, request.device);
  DYNAMICCL_CHECK_OK(assembly.Join(std::move(listener), names));
  DYNAMICCL_CHECK_OK(assembly.UseTopology(std::move(topology)));
  return assembly.Build();
}

// Every rank sends {i32 colour, i32 key, listener's name}. Ranks with the same colour are sorted by key, then
// by rank in the parent. The listener is opened before the exchange, so that peers can connect immediately
// after it.
InitResult SplitCommunicator(Communicator& parent, const SplitRequest& request) {
  struct Member {
    int32_t key = 0;
    int32_t parent_rank = 0;
    std::string listener;
  };
  PassFailPoint(FailPoint::kSplitBegin);
  DYNAMICCL_TRY(MeshListener listener, MeshListener::Open());
  ByteWriter message;
  message.Put(static_cast<int32_t>(request.color));
  message.Put(static_cast<int32_t>(request.key));
  message.PutText(listener.name);
  std::vector<std::vector<std::byte>> all{message.buffer()};
  if (parent.mesh() != nullptr) {
    DYNAMICCL_TRY(all, parent.mesh()->AllGather(message.buffer(), Deadline::After(parent.timeout_ms())));
  }
  PassFailPoint(FailPoint::kSplitExchanged);
  const uint64_t split_number = parent.NextSplit();
  std::vector<Member> chosen;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader reader(all[rank]);
    const auto color = reader.Get<int32_t>();
    const auto key = reader.Get<int32_t>();
    if (color == request.color) chosen.push_back({key, static_cast<int32_t>(rank), reader.GetText(256)});
  }
  if (request.color == NCCL_SPLIT_NOCOLOR) return std::shared_ptr<Communicator>();
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Member& a, const Member& b) { return a.key < b.key; });
  Members members{Hash(split_number, Hash(request.color, parent.info().id)), {}, {}};
  for (const Member& member : chosen) {
    members.parent_ranks.push_back(member.parent_rank);
    members.listeners.push_back(member.listener);
  }
  return MakeChild(parent, members, std::move(listener), request.config);
}

// The remaining ranks follow from `excluded`, so no exchange is needed to find them. They meet at a socket,
// because the mesh may be broken.
InitResult ShrinkCommunicator(Communicator& parent, std::span<const int> excluded,
                              const ncclConfig_t& config) {
  Members members{Hash(parent.NextShrink(), ~parent.info().id), {}, {}};
  for (int rank = 0; rank < parent.n_ranks(); ++rank) {
    if (!std::binary_search(excluded.begin(), excluded.end(), rank)) members.parent_ranks.push_back(rank);
  }
  DYNAMICCL_TRY(MeshListener listener, MeshListener::Open());
  DYNAMICCL_TRY(const auto names,
                parent.regroup()->Meet(members.parent_ranks, parent.rank(), members.id,
                                       std::as_bytes(std::span(listener.name)), parent.timeout_ms()));
  for (const auto& name : names) members.listeners.push_back(TextOf(name));
  return MakeChild(parent, members, std::move(listener), config);
}

Result<ncclUniqueId> ShareUniqueId(Communicator& parent, const ncclUniqueId* mine) {
  std::vector<std::byte> message;
  if (mine != nullptr)
    message.assign(std::as_bytes(std::span(mine, 1)).begin(), std::as_bytes(std::span(mine, 1)).end());
  std::vector<std::vector<std::byte>> all{message};
  if (parent.mesh() != nullptr) {
    DYNAMICCL_TRY(all, parent.mesh()->AllGather(message, Deadline::After(parent.timeout_ms())));
  }
  const auto has_id = [](const std::vector<std::byte>& bytes) {
    return bytes.size() == sizeof(ncclUniqueId);
  };
  if (std::count_if(all.begin(), all.end(), has_id) != 1) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "not exactly one rank brought a unique id"),
                    "the rank that called ncclCommGetUniqueId passes it, the others null");
  }
  ncclUniqueId id{};
  std::memcpy(&id, std::find_if(all.begin(), all.end(), has_id)->data(), sizeof(id));
  return id;
}

}  // namespace dynamiccl::hostccl
