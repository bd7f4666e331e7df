// SPDX-License-Identifier: Apache-2.0
// The ranks meet by a rendezvous (src/transport/rendezvous.h) at the listening socket of the lowest rank. The
// token of the rendezvous is computed from the members and the key.
#include "src/hostccl/regroup.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/byte_codec.h"

namespace dynamiccl::hostccl {
namespace {

// Returns the token of a rendezvous. Ranks with equal members and keys get the same token.
RendezvousToken TokenOf(std::span<const int> ranks, uint64_t key) {
  RendezvousToken token{};
  for (size_t part = 0; part < token.size(); part += sizeof(uint64_t)) {
    const uint64_t bits = XXH3_64bits_withSeed(ranks.data(), ranks.size_bytes(), key + part);
    std::memcpy(token.data() + part, &bits, sizeof(bits));
  }
  return token;
}

}  // namespace

Result<RegroupListeners> RegroupListeners::Open(PeerMesh& mesh, const std::string& interface_address,
                                                Deadline deadline) {
  RegroupListeners listeners;
  DYNAMICCL_TRY(listeners.own, ListenTcp(interface_address));
  ByteWriter message;
  message.Put(listeners.own.address.ipv4);
  message.Put(listeners.own.address.port);
  DYNAMICCL_TRY(const auto all, mesh.AllGather(message.buffer(), deadline));
  for (const auto& bytes : all) {
    ByteReader reader(bytes);
    const auto ipv4 = reader.Get<uint32_t>();
    listeners.addresses.push_back({ipv4, reader.Get<uint16_t>()});
  }
  return listeners;
}

Result<std::vector<std::vector<std::byte>>> RegroupListeners::Meet(std::span<const int> ranks, int rank,
                                                                   uint64_t key,
                                                                   std::span<const std::byte> mine,
                                                                   int64_t timeout_ms) const {
  const RendezvousToken token = TokenOf(ranks, key);
  if (rank == ranks.front()) DYNAMICCL_CHECK_OK(ServeRendezvous(own.fd.get(), token, timeout_ms));
  const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const RendezvousTicket ticket{addresses[static_cast<size_t>(ranks.front())], token, static_cast<int>(place),
                                static_cast<int>(ranks.size())};
  return MeetAtRendezvous(ticket, mine, timeout_ms);
}

}  // namespace dynamiccl::hostccl
