// SPDX-License-Identifier: Apache-2.0
// Layout of a segment, and the table of the segments that this process has made. See segment.h.
#include "src/transport/segment.h"

#include <sched.h>

#include <iterator>
#include <map>
#include <mutex>

namespace dynamiccl {
namespace {

// The header comes first, then a FIFO for each peer and channel, then the job's clock, then the states of
// links.
size_t ClockOffset(int n_ranks) {
  return sizeof(SegmentHeader) + sizeof(Fifo) * static_cast<size_t>(n_ranks) * kFifosPerPeer;
}

size_t SegmentBytes(int n_ranks) {
  return ClockOffset(n_ranks) + sizeof(JobClock) + sizeof(LinkState) * LinkStates(n_ranks);
}

// The segments that this process has made, by address. Ranks that are threads find each other's segments
// here. The object is never destroyed, because threads may outlive static destructors.
struct LocalSegments {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Segment>> by_address;
};

LocalSegments& Local() {
  static auto* const local = new LocalSegments;
  return *local;
}

// Returns the cores that this thread may use.
CoreSet OwnCores() {
  CoreSet own{};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return own;
  for (size_t core = 0; core < 64 * std::size(own.words) && core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) own.words[core / 64] |= uint64_t{1} << core % 64;
  }
  return own;
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::Create(int n_ranks) {
  DYNAMICCL_TRY(SharedMemory memory, SharedMemory::Create("hostccl", SegmentBytes(n_ranks)));
  std::shared_ptr<Segment> segment(new Segment(std::move(memory), n_ranks));
  segment->header().cores = OwnCores();
  LocalSegments& local = Local();
  const std::lock_guard lock(local.mutex);
  local.by_address[segment->address()] = segment;
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::Attach(UniqueFd fd, int n_ranks) {
  DYNAMICCL_TRY(SharedMemory memory, SharedMemory::FromFd(std::move(fd), SegmentBytes(n_ranks)));
  return std::shared_ptr<Segment>(new Segment(std::move(memory), n_ranks));
}

Result<std::shared_ptr<Segment>> Segment::FindInProcess(uint64_t address) {
  LocalSegments& local = Local();
  const std::lock_guard lock(local.mutex);
  const auto found = local.by_address.find(address);
  auto segment = found == local.by_address.end() ? nullptr : found->second.lock();
  if (segment != nullptr) return segment;
  return MakeError(ErrorKind::kPeerFailed, "a rank, a thread of this process, gave up while it joined");
}

Segment::~Segment() {
  LocalSegments& local = Local();
  const std::lock_guard lock(local.mutex);
  const auto found = local.by_address.find(address());
  if (found != local.by_address.end() && found->second.expired()) local.by_address.erase(found);
}

Fifo& Segment::fifo(int from_rank, int channel) const {
  auto* const fifos = reinterpret_cast<Fifo*>(memory_.data() + sizeof(SegmentHeader));
  return fifos[from_rank * kFifosPerPeer + channel];
}

JobClock& Segment::job_clock() const {
  return *reinterpret_cast<JobClock*>(memory_.data() + ClockOffset(n_ranks_));
}

LinkState& Segment::link_state(size_t index) const {
  std::byte* const states = memory_.data() + ClockOffset(n_ranks_) + sizeof(JobClock);
  return reinterpret_cast<LinkState*>(states)[index];
}

void Segment::WakeSleepers() const {
  header().doorbell.Ring();
}

}  // namespace dynamiccl
