// SPDX-License-Identifier: Apache-2.0
// The messages between `dynamiccl link` and a job, and their encoding. docs/formats/link_control.md has the
// grammar.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/transport/link_shape.h"
#include "src/transport/socket.h"

namespace dynamiccl {

enum class LinkRequestKind : uint16_t { kShow = 1, kSet = 2, kReset = 3 };

// Asks a job to show, change or reset links. `target` is used by set and reset, `change` by set only.
struct LinkRequest {
  LinkRequestKind kind = LinkRequestKind::kShow;
  LinkTarget target;
  LinkChange change;
  int64_t for_ns = 0;  // how long a change holds, nanoseconds; 0: until reset
  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

// The present state of a link. Inside a node (`from` equals `to`) one row stands for all pairs of ranks: its
// shape is that of the first pair, its messages and bytes are the sums over all pairs.
struct LinkRow {
  int32_t from = 0;
  int32_t to = 0;
  int32_t rail = 0;
  bool ordered = false;  // whether an order of `link set` is in force
  uint64_t messages = 0;
  uint64_t bytes = 0;
  LinkShape shape;
  friend bool operator==(const LinkRow&, const LinkRow&) = default;
};

// The links of one communicator that was made from a unique id. `elapsed_ns` is the time since the links were
// made, in nanoseconds. `calls` is the number of collective launches.
struct LinkJob {
  int32_t n_ranks = 0;
  int64_t elapsed_ns = 0;
  int64_t calls = 0;
  std::vector<LinkRow> rows;
  friend bool operator==(const LinkJob&, const LinkJob&) = default;
};

// Says what the server changed, and the state of all links after the change.
struct LinkAnswer {
  std::string refused;   // why nothing was done; empty when the request was carried out
  uint32_t changed = 0;  // number of links that the order reached
  std::vector<LinkJob> jobs;
  friend bool operator==(const LinkAnswer&, const LinkAnswer&) = default;
};

std::vector<std::byte> Encode(const LinkRequest& request);
std::vector<std::byte> Encode(const LinkAnswer& answer);
// Returns kCorrupt when the body's length, kind or values are not those of a request, kInvalidArgument when a
// field is out of its range.
Result<LinkRequest> DecodeLinkRequest(std::span<const std::byte> body);
// Returns kCorrupt for a body of the wrong length. The numbers in the answer are not checked, because they
// are only displayed.
Result<LinkAnswer> DecodeLinkAnswer(std::span<const std::byte> body);

// A message is a header of three uint32 {magic, version, bytes of the body}, followed by one encoded body.
Status SendLinkMessage(int socket, std::span<const std::byte> body, Deadline deadline);
// Returns the body of the next message. Returns kCorrupt for a wrong header, kUnsupported for another
// version.
Result<std::vector<std::byte>> ReceiveLinkMessage(int socket, Deadline deadline);

// Returns the name of the abstract socket on which a process of this user answers, without the process id
// that ends it.
std::string LinkSocketPrefix();

}  // namespace dynamiccl
