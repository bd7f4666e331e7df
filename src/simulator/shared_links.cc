// SPDX-License-Identifier: Apache-2.0
// Bookkeeping of transfers and links. Speeds are recomputed only for the transfers that a change can reach
// over crowded links (Reached).
#include "src/simulator/shared_links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace dynamiccl {
namespace {

// Relative tolerance. Uses that fill a link exactly may add up to slightly more than its capacity.
constexpr double kRounding = 1e-9;

}  // namespace

SharedLinks::SharedLinks(std::vector<double> capacities) : links_(capacities.size()) {
  for (size_t i = 0; i < capacities.size(); ++i) links_[i].own_capacity = links_[i].capacity = capacities[i];
}

void SharedLinks::Begin(size_t number, int64_t now, int64_t alone_ns, std::vector<LinkUse> uses) {
  if (number >= transfers_.size()) transfers_.resize(number + 1);
  Transfer& transfer = transfers_[number];
  transfer.uses = std::move(uses);
  transfer.left_ns = static_cast<double>(alone_ns);
  transfer.speed = 1;
  transfer.settled_at = now;
  transfer.active = true;
  std::vector<size_t> crowded;
  for (const LinkUse& use : transfer.uses) {
    links_[use.link].users.push_back({number, use.used});
    if (UpdateCrowded(use.link)) crowded.push_back(use.link);
  }
  QueueEnd(number, now);
  Share(crowded, now);
}

void SharedLinks::SetShare(size_t link, int64_t now, double share) {
  links_[link].capacity = links_[link].own_capacity * share;
  UpdateCrowded(link);
  Share({link}, now);
}

// Removes entries that a change of speed or an end has made stale.
void SharedLinks::DropStaleEnds() {
  while (!ends_.empty()) {
    const Transfer& transfer = transfers_[ends_.top().transfer];
    if (transfer.active && transfer.version == ends_.top().version) return;
    ends_.pop();
  }
}

int64_t SharedLinks::NextEnd() {
  DropStaleEnds();
  return ends_.empty() ? INT64_MAX : ends_.top().at;
}

size_t SharedLinks::EndNext() {
  DropStaleEnds();
  const End end = ends_.top();
  ends_.pop();
  Transfer& transfer = transfers_[end.transfer];
  Settle(transfer, end.at);
  transfer.active = false;
  std::vector<size_t> crowded;
  for (const LinkUse& use : transfer.uses) {
    std::erase_if(links_[use.link].users, [&](const User& user) { return user.transfer == end.transfer; });
    if (UpdateCrowded(use.link)) crowded.push_back(use.link);
  }
  Share(crowded, end.at);
  return end.transfer;
}

void SharedLinks::Settle(Transfer& transfer, int64_t now) {
  const double passed = static_cast<double>(now - transfer.settled_at) * transfer.speed;
  const double done = std::min(transfer.left_ns, passed);
  transfer.left_ns -= done;
  transfer.settled_at = now;
  for (const LinkUse& use : transfer.uses) links_[use.link].carried += done * use.sent;
}

bool SharedLinks::UpdateCrowded(size_t link) {
  Link& one = links_[link];
  double used = 0;
  for (const User& user : one.users) used += user.used;
  const bool was = one.crowded;
  one.crowded = used > one.capacity * (1 + kRounding);
  return was || one.crowded;
}

// Returns the transfers that a change on these links can affect, by a breadth-first search over crowded
// links.
std::vector<size_t> SharedLinks::Reached(const std::vector<size_t>& links) {
  std::set<size_t> seen, reached;
  std::vector<size_t> open(links);
  while (!open.empty()) {
    const size_t link = open.back();
    open.pop_back();
    if (!seen.insert(link).second) continue;
    for (const User& user : links_[link].users) {
      if (!reached.insert(user.transfer).second) continue;
      for (const LinkUse& use : transfers_[user.transfer].uses)
        if (links_[use.link].crowded) open.push_back(use.link);
    }
  }
  return {reached.begin(), reached.end()};
}

void SharedLinks::Share(const std::vector<size_t>& links, int64_t now) {
  if (!links.empty()) SetSpeeds(Reached(links), now);
}

// Computes speeds. Only crowded links limit a transfer, so only they enter the computation.
void SharedLinks::SetSpeeds(const std::vector<size_t>& transfers, int64_t now) {
  std::map<size_t, size_t> index;  // from a crowded link to its place among the capacities
  std::vector<double> capacities;
  std::vector<std::vector<LinkUse>> uses(transfers.size());
  for (size_t i = 0; i < transfers.size(); ++i) {
    for (const LinkUse& use : transfers_[transfers[i]].uses) {
      if (!links_[use.link].crowded) continue;
      const auto [place, is_new] = index.emplace(use.link, capacities.size());
      if (is_new) capacities.push_back(links_[use.link].capacity);
      uses[i].push_back({place->second, use.used});
    }
  }
  const std::vector<double> speeds = MaxMinSpeeds(capacities, uses);
  for (size_t i = 0; i < transfers.size(); ++i) {
    Transfer& transfer = transfers_[transfers[i]];
    if (transfer.speed == speeds[i]) continue;
    Settle(transfer, now);
    transfer.speed = speeds[i];
    QueueEnd(transfers[i], now);
  }
}

// The end is rounded up to whole nanoseconds, so that a transfer never ends before its bytes have passed.
void SharedLinks::QueueEnd(size_t number, int64_t now) {
  Transfer& transfer = transfers_[number];
  const auto lasts = static_cast<int64_t>(std::ceil(transfer.left_ns / transfer.speed));
  ends_.push({now + lasts, number, ++transfer.version});
}

}  // namespace dynamiccl
