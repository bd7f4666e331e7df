// SPDX-License-Identifier: Apache-2.0
// What `dynamiccl link` and a job say to each other, as bytes: docs/formats/link_control.md.
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

struct LinkRequest {
  LinkRequestKind kind = LinkRequestKind::kShow;
  LinkTarget target;   // set and reset
  LinkChange change;   // set
  int64_t for_ns = 0;  // set; 0: for good
  friend bool operator==(const LinkRequest&, const LinkRequest&) = default;
};

// A link as it is now. Inside a node (`from` and `to` equal) one row stands for all pairs of ranks, as the
// first of them, with the sums of their messages and bytes.
struct LinkRow {
  int32_t from = 0;
  int32_t to = 0;
  int32_t rail = 0;
  bool ordered = false;  // an order holds
  uint64_t messages = 0;
  uint64_t bytes = 0;
  LinkShape shape;
  friend bool operator==(const LinkRow&, const LinkRow&) = default;
};

// The links of one communicator that was made from a unique id.
struct LinkJob {
  int32_t n_ranks = 0;
  int64_t elapsed_ns = 0;
  int64_t calls = 0;
  std::vector<LinkRow> rows;
  friend bool operator==(const LinkJob&, const LinkJob&) = default;
};

struct LinkAnswer {
  std::string refused;        // why nothing was done; empty: done
  uint32_t changed = 0;       // links that an order reached
  std::vector<LinkJob> jobs;  // what there is now
  friend bool operator==(const LinkAnswer&, const LinkAnswer&) = default;
};

std::vector<std::byte> Encode(const LinkRequest& request);
std::vector<std::byte> Encode(const LinkAnswer& answer);
// kCorrupt for anything that Encode does not make; fields are checked for their ranges.
Result<LinkRequest> DecodeLinkRequest(std::span<const std::byte> body);
Result<LinkAnswer> DecodeLinkAnswer(std::span<const std::byte> body);

// A message is its header and one encoded body.
Status SendLinkMessage(int socket, std::span<const std::byte> body, Deadline deadline);
Result<std::vector<std::byte>> ReceiveLinkMessage(int socket, Deadline deadline);

// Abstract name of the socket on which the process answers, less its process id.
std::string LinkSocketPrefix();

}  // namespace dynamiccl
