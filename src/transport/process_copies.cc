// SPDX-License-Identifier: Apache-2.0
// Makes two exchanges over the mesh. In the first each rank sends the address of one word, in the second
// whether it could read the words of the others.
#include "src/transport/process_copies.h"

#include <algorithm>

#include "src/base/byte_codec.h"
#include "src/transport/peer_buffers.h"
#include "src/transport/process_identity.h"

namespace dynamiccl {

Result<bool> AgreeOnProcessCopies(PeerMesh& mesh, bool wanted, Deadline deadline) {
  const uint64_t word = ProcessToken();
  const BufferRef own = DescribeBuffer(&word, sizeof(word));
  DYNAMICCL_TRY(const auto words, mesh.AllGather(std::as_bytes(std::span(&own, 1)), deadline));
  bool allowed = wanted;
  for (int rank = 0; rank < mesh.n_ranks(); ++rank) {
    if (mesh.reach(rank) != Reach::kSameHost) continue;
    const auto& message = words[static_cast<size_t>(rank)];
    if (message.size() != sizeof(BufferRef))
      return MakeError(ErrorKind::kCorrupt, "rank {} described its memory in {} bytes", rank, message.size());
    const auto peer = ByteReader(message).Get<BufferRef>();
    allowed = allowed && CanReadProcess(peer.pid, peer.address, peer.process);
  }
  // The second exchange also keeps `word` alive until all ranks have read it.
  DYNAMICCL_TRY(const auto answers, mesh.AllGather(std::as_bytes(std::span(&allowed, 1)), deadline));
  return std::all_of(answers.begin(), answers.end(),
                     [](const auto& answer) { return answer.size() == 1 && answer.front() == std::byte{1}; });
}

}  // namespace dynamiccl
