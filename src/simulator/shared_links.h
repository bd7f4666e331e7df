// SPDX-License-Identifier: Apache-2.0
// Links in virtual time: transfers begin, share the links that they use (max_min_share.h), and end.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "src/simulator/max_min_share.h"

namespace dynamiccl {

// The links of one simulation, which owns it; one thread. Times are int64 nanoseconds and never go back;
// capacities are bytes per nanosecond (1e9 bytes per second). Only transfers that share a crowded link with a
// change get new speeds, so that large simulations stay fast.
class SharedLinks {
 public:
  explicit SharedLinks(std::vector<double> capacities);

  // Starts a transfer. `alone_ns` is how long it takes at full speed; a LinkUse has the bytes per nanosecond
  // that the transfer then uses of a link. The caller chooses `number`: small, and not that of a transfer
  // that has not ended.
  void Begin(size_t number, int64_t now, int64_t alone_ns, std::vector<LinkUse> uses);
  // From now on the link has `share` (above 0) of its own capacity; the rest is taken by others' traffic.
  void SetShare(size_t link, int64_t now, double share);

  // NextEnd returns when the next transfer ends; INT64_MAX if there is none. EndNext removes that transfer
  // and returns its number. If several end at one time, the lowest number comes first.
  int64_t NextEnd();
  size_t EndNext();

  // Bytes that a link has carried since the beginning. A transfer is counted up to its latest change of speed
  // or its end.
  double CarriedBytes(size_t link) const { return links_[link].carried; }

 private:
  // A transfer on a link, and what it uses at full speed.
  struct User {
    size_t transfer;
    double used;
  };
  // One link with the transfers on it.
  struct Link {
    double own_capacity = 0;
    double capacity = 0;
    double carried = 0;
    bool crowded = false;  // its users together would use more than the capacity
    std::vector<User> users;
  };
  // A transfer under way.
  struct Transfer {
    std::vector<LinkUse> uses;
    double left_ns = 0;  // the part of alone_ns that is left
    double speed = 1;
    int64_t settled_at = 0;
    uint64_t version = 0;  // version of its valid entry in the queue; older entries are stale
    bool active = false;
  };
  // An expected end. A change of speed queues a new one and leaves the old one stale.
  struct End {
    int64_t at;
    size_t transfer;
    uint64_t version;
    bool operator>(const End& other) const {
      return at != other.at ? at > other.at : transfer > other.transfer;
    }
  };

  // Accounts for the progress of a transfer up to `now`.
  void Settle(Transfer& transfer, int64_t now);
  // Returns true where the link is crowded now or was before.
  bool UpdateCrowded(size_t link);
  // Computes new speeds for the transfers on these links, and for all that share a crowded link with one of
  // them.
  void Share(const std::vector<size_t>& links, int64_t now);
  std::vector<size_t> Reached(const std::vector<size_t>& links);
  // Gives these transfers their fair speeds and queues their new ends.
  void SetSpeeds(const std::vector<size_t>& transfers, int64_t now);
  // Queues the end of a transfer at its present speed.
  void QueueEnd(size_t number, int64_t now);
  // Removes outdated entries from the front of the queue.
  void DropStaleEnds();

  std::vector<Link> links_;
  std::vector<Transfer> transfers_;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
};

}  // namespace dynamiccl
