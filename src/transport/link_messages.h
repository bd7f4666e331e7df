// SPDX-License-Identifier: Apache-2.0
// The messages between `dynamiccl link` and a job, and their encoding: docs/formats/link_control.md.
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

// Shows, changes or resets links. `target` counts for set and reset, `change` for set.
struct LinkRequest {
  LinkRequestKind kind = LinkRequestKind::kShow;
  LinkTarget target;
  LinkChange change;
  int64_t for_ns = 0;  // how long a change holds, nanoseconds; 0: until reset
  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

// The present state of a link. Inside a node (`from` equals `to`) one row stands for all pairs of ranks: it
// has the shape of the first pair and the sums of messages and bytes of all.
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

// The links of one communicator that was made from a unique id. `elapsed_ns` counts from when the links were
// made, `calls` is the number of collective launches.
struct LinkJob {
  int32_t n_ranks = 0;
  int64_t elapsed_ns = 0;
  int64_t calls = 0;
  std::vector<LinkRow> rows;
  friend bool operator==(const LinkJob&, const LinkJob&) = default;
};

// Tells what the server changed, and the state of all links after that.
struct LinkAnswer {
  std::string refused;   // why nothing was done; empty when the request was carried out
  uint32_t changed = 0;  // number of links that the order reached
  std::vector<LinkJob> jobs;
  friend bool operator==(const LinkAnswer&, const LinkAnswer&) = default;
};

std::vector<std::byte> Encode(const LinkRequest& request);
std::vector<std::byte> Encode(const LinkAnswer& answer);
// Returns kCorrupt for bytes of another length, kind or meaning; kInvalidArgument for a field out of its
// range.
Result<LinkRequest> DecodeLinkRequest(std::span<const std::byte> body);
// Returns kCorrupt for bytes of another length. The numbers in it are not checked: they only go to the
// screen.
Result<LinkAnswer> DecodeLinkAnswer(std::span<const std::byte> body);

// A message is a header of three uint32 {magic, version, bytes of the body} and one encoded body.
Status SendLinkMessage(int socket, std::span<const std::byte> body, Deadline deadline);
// Returns the next body. kCorrupt for another header, kUnsupported for another version.
Result<std::vector<std::byte>> ReceiveLinkMessage(int socket, Deadline deadline);

// The abstract name of the socket on which a process of this user answers, without its process id at the end.
std::string LinkSocketPrefix();

}  // namespace dynamiccl
