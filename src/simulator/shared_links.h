// SPDX-License-Identifier: Apache-2.0
// Links in virtual time: transfers begin, share the links that they use (max_min_share.h), and end.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "src/simulator/max_min_share.h"

namespace dynamiccl {

// Times are int64 nanoseconds and never go back; capacities are bytes a nanosecond (10^9 bytes a second).
class SharedLinks {
 public:
  explicit SharedLinks(std::vector<double> capacities);

  // `alone_ns` is how long the transfer takes at full speed, `used` of a link its bytes a nanosecond then.
  // `number` is the caller's: small, and of no transfer that has not ended.
  void Begin(size_t number, int64_t now, int64_t alone_ns, std::vector<LinkUse> uses);
  // A link's own capacity times `share` (above 0) from now on: the rest is taken by strangers.
  void SetShare(size_t link, int64_t now, double share);

  // When the next transfer ends, INT64_MAX without one; and which: it is gone then. Of several at one time
  // the lowest number comes first.
  int64_t NextEnd();
  size_t EndNext();

  // Bytes that a link has carried since the beginning, of transfers up to their last change.
  double CarriedBytes(size_t link) const { return links_[link].carried; }

 private:
  struct User {
    size_t transfer;
    double used;
  };
  struct Link {
    double own_capacity = 0;
    double capacity = 0;
    double carried = 0;
    bool crowded = false;     // its users together would use more than the capacity
    std::vector<User> users;  // transfers now
  };
  struct Transfer {
    std::vector<LinkUse> uses;
    double left_ns = 0;  // of alone_ns
    double speed = 1;
    int64_t settled_at = 0;
    uint64_t version = 0;  // of its end in the queue
    bool active = false;
  };
  struct End {
    int64_t at;
    size_t transfer;
    uint64_t version;
    bool operator>(const End& other) const {
      return at != other.at ? at > other.at : transfer > other.transfer;
    }
  };

  void Settle(Transfer& transfer, int64_t now);
  // True where the link is crowded now or was before.
  bool UpdateCrowded(size_t link);
  // New speeds for the transfers on these links, and for all that share a crowded link with one of them.
  void Share(const std::vector<size_t>& links, int64_t now);
  std::vector<size_t> Reached(const std::vector<size_t>& links);
  void SetSpeeds(const std::vector<size_t>& transfers, int64_t now);
  void QueueEnd(size_t number, int64_t now);
  void DropStaleEnds();

  std::vector<Link> links_;
  std::vector<Transfer> transfers_;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
};

}  // namespace dynamiccl
