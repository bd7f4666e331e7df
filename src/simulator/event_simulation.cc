// SPDX-License-Identifier: Apache-2.0
// The simulation of a job. Ranks that behave alike are simulated as one (rank_classes.h).
//
// Each class of ranks runs ahead in its own time until it waits for a collective (Advance). When the last
// class of ranks has issued a collective and the communicator is free, an event starts its transfer after the
// latency (BeginNext); the links then decide when it ends (shared_links.h). A waiting rank goes on only when
// a transfer ends, so nothing that it issues afterwards is earlier than that end. Events can therefore be
// processed in order of time.
#include "src/simulator/event_simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "src/simulator/rank_classes.h"
#include "src/simulator/shared_links.h"

namespace dynamiccl {
namespace {

// Returns numbers that are evenly spread in [0, 1): splitmix64 of the three numbers.
double Noise(uint64_t seed, uint64_t rank, uint64_t action) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + rank * 0xbf58476d1ce4e5b9u + action * 0x94d049bb133111ebu;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

// Holds where one class of ranks stands in its program.
struct RankState {
  const RankProgram* program = nullptr;
  size_t next_action = 0;
  int64_t clock = 0;
  double compute_factor = 1;
  std::vector<size_t> place;  // by collective: place of the collective in the order of its communicator
  // For each collective that was issued and not yet waited for: the nanoseconds of computing time that it
  // will still cost the rank.
  std::map<size_t, double> to_take;
  RankTiming timing;
};

// One collective of a class of communicators.
struct Ordered {
  TransferDemand demand;
  size_t arrived = 0;  // classes of ranks that have issued it
  int64_t last_arrival = 0;
  int64_t started = 0;
  int64_t ended = -1;
};

// A collective that a class of ranks has issued and that waits for the end of an earlier one
// (SimulatedCollective::after).
struct Follower {
  size_t rank_class = 0;
  size_t collective = 0;
  int64_t issued = 0;
  size_t place = 0;  // place of the earlier collective in the order of its communicator
};

// Holds where one class of communicators stands in its collectives.
struct CommunicatorState {
  std::vector<Ordered> collectives;  // in the order in which the ranks issue them
  size_t next = 0;                   // the first that has not ended
  bool busy = false;
  int64_t free_at = 0;
  std::vector<size_t> waiting;  // classes of ranks
  std::vector<Follower> followers;
};

// An event and its time. A `number` below the number of communicator classes means that a transfer of that
// class begins. A `number` equal to it means that a load changes.
struct Event {
  int64_t at = 0;
  size_t number = 0;
  bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
};

// The state of one run. It lives for one call of Simulate, on one thread.
class Simulation {
 public:
  Simulation(const SimulatedJob& job, const SimulationOptions& options)
      : job_(job),
        options_(options),
        classes_(ClassesOf(job, options.ranks_apart)),
        links_(Capacities()),
        communicators_(classes_.communicators.size()),
        networks_of_(classes_.communicators.size()) {
    for (size_t node_class = 0; node_class < classes_.nodes.size(); ++node_class)
      for (const auto& [communicator, number] : classes_.nodes[node_class].communicators)
        networks_of_[communicator].emplace_back(node_class, number);
  }

  Result<SimulationResult> Run();

 private:
  std::vector<double> Capacities() const;
  // Links are numbered: first a port for each class of ranks, then a network for each class of nodes.
  size_t PortOf(size_t rank_class) const { return rank_class; }
  size_t NetworkOf(size_t node_class) const { return classes_.ranks.size() + node_class; }

  void StartRanks();
  void QueueLoads();
  void SetLoad(int64_t now);
  Status RunEvents();
  Status Advance(size_t rank);
  void Compute(RankState& rank, size_t number, int64_t value);
  double TakenFrom(RankState& rank, double computing) const;
  Status Issue(size_t rank_class, size_t collective);
  Status Arrive(size_t rank_class, size_t collective, int64_t at);
  Status ReleaseFollowers(CommunicatorState& communicator, int64_t now);
  // Returns false if the rank has to wait for the collective.
  bool Await(size_t rank_class, size_t collective);
  void BeginNext(size_t communicator);
  std::vector<LinkUse> UsesOf(size_t communicator, const TransferDemand& demand) const;
  Status End(size_t communicator, int64_t now);
  Status CheckAllFinished() const;
  SimulationResult Summary() const;
  RankTiming TimingOf(int32_t rank) const;
  size_t CommunicatorOf(size_t rank_class, size_t collective) const;

  const SimulatedJob& job_;
  const SimulationOptions& options_;
  const JobClasses classes_;
  SharedLinks links_;
  std::vector<CommunicatorState> communicators_;
  // For each class of communicators: the classes of its nodes, and how many of the communicators are on one
  // node of each of these classes.
  std::vector<std::vector<std::pair<size_t, int32_t>>> networks_of_;
  std::vector<RankState> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
};

std::vector<double> Simulation::Capacities() const {
  std::vector<double> capacities(classes_.ranks.size(), job_.port_gbps);
  capacities.resize(classes_.ranks.size() + classes_.nodes.size(), job_.network_gbps);
  return capacities;
}

void Simulation::StartRanks() {
  for (const RankClass& one : classes_.ranks) {
    RankState rank{.program = &job_.ProgramOf(one.first_rank)};
    std::vector<size_t> issued(job_.layouts.size());
    for (const SimulatedCollective& collective : rank.program->collectives)
      rank.place.push_back(issued[collective.layout]++);
    rank.timing.collectives.resize(rank.program->collectives.size());
    for (const Straggler& straggler : job_.stragglers) {
      if (straggler.rank != one.first_rank) continue;
      rank.compute_factor *= straggler.compute_factor;
      rank.clock += straggler.late_ns;
    }
    ranks_.push_back(std::move(rank));
  }
}

// Queues an event at the begin and at the end of each load.
void Simulation::QueueLoads() {
  for (const NetworkLoad& load : job_.loads) {
    events_.push({load.from_ns, communicators_.size()});
    if (load.until_ns != INT64_MAX) events_.push({load.until_ns, communicators_.size()});
  }
}

// Nodes of one class have the same loads, so looking at the first one is enough.
void Simulation::SetLoad(int64_t now) {
  for (size_t node_class = 0; node_class < classes_.nodes.size(); ++node_class) {
    double share = 0;
    for (const NetworkLoad& load : job_.loads) {
      const bool here = load.node < 0 || load.node == classes_.nodes[node_class].first_node;
      if (here && load.from_ns <= now && now < load.until_ns) share = load.share;
    }
    links_.SetShare(NetworkOf(node_class), now, 1 - share);
  }
}

size_t Simulation::CommunicatorOf(size_t rank_class, size_t collective) const {
  const size_t layout = ranks_[rank_class].program->collectives[collective].layout;
  return static_cast<size_t>(classes_.ranks[rank_class].communicator_class[layout]);
}

void Simulation::Compute(RankState& rank, size_t rank_class, int64_t value) {
  double lasts = static_cast<double>(value) * rank.compute_factor;
  if (job_.compute_jitter > 0) {
    const auto number = static_cast<uint64_t>(classes_.ranks[rank_class].first_rank);
    lasts *= 1 + job_.compute_jitter * Noise(job_.seed, number, rank.next_action);
  }
  const int64_t whole = std::llround(lasts + TakenFrom(rank, lasts));
  rank.clock += whole;
  rank.timing.compute_ns += whole;
}

// Returns the nanoseconds by which collectives in flight prolong the computing of a rank
// (SimulatedJob::host_share).
double Simulation::TakenFrom(RankState& rank, double computing) const {
  double left = computing * job_.host_share / (1 - job_.host_share), taken = 0;
  while (left > 0 && !rank.to_take.empty()) {
    const auto first = rank.to_take.begin();
    const double part = std::min(left, first->second);
    left -= part;
    taken += part;
    if ((first->second -= part) <= 0) rank.to_take.erase(first);
  }
  return taken;
}

// Runs one class of ranks until it must wait or its program ends.
Status Simulation::Advance(size_t rank_class) {
  RankState& rank = ranks_[rank_class];
  for (; rank.next_action < rank.program->actions.size(); ++rank.next_action) {
    const Action& action = rank.program->actions[rank.next_action];
    if (action.kind == ActionKind::kCompute) {
      Compute(rank, rank_class, action.value);
    } else if (action.kind == ActionKind::kIssue) {
      DYNAMICCL_CHECK_OK(Issue(rank_class, static_cast<size_t>(action.value)));
    } else if (!Await(rank_class, static_cast<size_t>(action.value))) {
      return {};
    }
  }
  rank.timing.finished_ns = std::max(rank.timing.finished_ns, rank.clock);
  return {};
}

// Notes that the ranks of a class issue a collective. If it needs the result of another one
// (SimulatedCollective::after), it arrives when the other one has ended.
Status Simulation::Issue(size_t rank_class, size_t collective) {
  RankState& rank = ranks_[rank_class];
  const SimulatedCollective& issued = rank.program->collectives[collective];
  std::vector<Ordered>& ordered = communicators_[CommunicatorOf(rank_class, collective)].collectives;
  ordered.resize(std::max(ordered.size(), rank.place[collective] + 1));
  rank.timing.collectives[collective].issued_ns = rank.clock;
  if (job_.host_share > 0) {
    rank.to_take[collective] =
        job_.host_share * static_cast<double>(issued.demand.latency_ns + issued.demand.transfer_ns);
  }
  if (issued.after < 0) return Arrive(rank_class, collective, rank.clock);
  const auto after = static_cast<size_t>(issued.after);
  CommunicatorState& earlier = communicators_[CommunicatorOf(rank_class, after)];
  if (rank.place[after] < earlier.next)
    return Arrive(rank_class, collective, std::max(rank.clock, earlier.collectives[rank.place[after]].ended));
  earlier.followers.push_back({rank_class, collective, rank.clock, rank.place[after]});
  return {};
}

// Lets those collectives arrive for which the earlier collective (SimulatedCollective::after) has ended by
// now.
Status Simulation::ReleaseFollowers(CommunicatorState& communicator, int64_t now) {
  std::vector<Follower> followers = std::exchange(communicator.followers, {});
  for (const Follower& follower : followers) {
    if (follower.place >= communicator.next) {
      communicator.followers.push_back(follower);
      continue;
    }
    DYNAMICCL_CHECK_OK(Arrive(follower.rank_class, follower.collective, std::max(follower.issued, now)));
  }
  return {};
}

// Notes that the ranks of a class are ready for a collective at time `at`. The n-th collective of a
// communicator must have the same TransferDemand on all its ranks; otherwise this returns an error.
Status Simulation::Arrive(size_t rank_class, size_t collective, int64_t at) {
  RankState& rank = ranks_[rank_class];
  const size_t number = CommunicatorOf(rank_class, collective), place = rank.place[collective];
  CommunicatorState& communicator = communicators_[number];
  Ordered& ordered = communicator.collectives[place];
  const TransferDemand& demand = rank.program->collectives[collective].demand;
  if (ordered.arrived > 0 && !(ordered.demand == demand)) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "rank {}: its collective {} is not what another rank of the communicator issues",
                  classes_.ranks[rank_class].first_rank, collective),
        "the ranks of a communicator must issue the same collectives in the same order");
  }
  ordered.demand = demand;
  ordered.last_arrival = std::max(ordered.last_arrival, at);
  if (++ordered.arrived == classes_.communicators[number].rank_classes.size()) BeginNext(number);
  return {};
}

// Schedules the next transfer of a communicator if all ranks have issued it and no other transfer is under
// way.
void Simulation::BeginNext(size_t number) {
  CommunicatorState& communicator = communicators_[number];
  if (communicator.busy || communicator.next == communicator.collectives.size()) return;
  Ordered& ordered = communicator.collectives[communicator.next];
  if (ordered.arrived < classes_.communicators[number].rank_classes.size()) return;
  communicator.busy = true;
  ordered.started = std::max(ordered.last_arrival, communicator.free_at);
  events_.push({ordered.started + ordered.demand.latency_ns, number});
}

// Returns the links that one transfer uses. A link stands for all links of its class. The network of a node
// carries the bytes of all communicators of the class that are on the node.
std::vector<LinkUse> Simulation::UsesOf(size_t number, const TransferDemand& demand) const {
  std::vector<LinkUse> uses;
  if (demand.transfer_ns <= 0) return uses;
  const double nanoseconds = static_cast<double>(demand.transfer_ns);
  const double port = demand.port_bytes / nanoseconds, network = demand.network_bytes / nanoseconds;
  for (const size_t rank_class : classes_.communicators[number].rank_classes) {
    if (port > 0) uses.push_back({PortOf(rank_class), std::min(port, job_.port_gbps), port});
  }
  if (network <= 0) return uses;
  for (const auto& [node_class, communicators] : networks_of_[number])
    uses.push_back({NetworkOf(node_class), std::min(network, job_.network_gbps) * communicators,
                    network * communicators});
  return uses;
}

bool Simulation::Await(size_t rank_class, size_t collective) {
  RankState& rank = ranks_[rank_class];
  CommunicatorState& communicator = communicators_[CommunicatorOf(rank_class, collective)];
  const Ordered& ordered = communicator.collectives[rank.place[collective]];
  if (ordered.ended < 0) {
    communicator.waiting.push_back(rank_class);
    return false;
  }
  // With this collective, the earlier ones of its communicator have ended too. Collectives of other
  // communicators may still run.
  const size_t layout = rank.program->collectives[collective].layout;
  std::erase_if(rank.to_take, [&](const auto& issued) {
    return issued.first <= collective && rank.program->collectives[issued.first].layout == layout;
  });
  const int64_t stalled = std::max<int64_t>(0, ordered.ended - rank.clock);
  rank.clock += stalled;
  rank.timing.stalled_ns += stalled;
  rank.timing.collectives[collective].stalled_ns += stalled;
  return true;
}

// Called when a transfer has ended: starts the next one and lets the waiting ranks go on.
Status Simulation::End(size_t number, int64_t now) {
  CommunicatorState& communicator = communicators_[number];
  communicator.collectives[communicator.next++].ended = now;
  communicator.busy = false;
  communicator.free_at = now;
  BeginNext(number);
  DYNAMICCL_CHECK_OK(ReleaseFollowers(communicator, now));
  const std::vector<size_t> woken = std::exchange(communicator.waiting, {});
  for (const size_t rank_class : woken) DYNAMICCL_CHECK_OK(Advance(rank_class));
  return {};
}

// If a transfer ends at the time of an event, the end comes first. A link that becomes free is then free for
// a transfer that begins at this time.
Status Simulation::RunEvents() {
  while (true) {
    const int64_t end = links_.NextEnd();
    if (end != INT64_MAX && (events_.empty() || end <= events_.top().at)) {
      DYNAMICCL_CHECK_OK(End(links_.EndNext(), end));
      continue;
    }
    if (events_.empty()) return {};
    const Event event = events_.top();
    events_.pop();
    if (event.number == communicators_.size()) {
      SetLoad(event.at);
      continue;
    }
    const CommunicatorState& communicator = communicators_[event.number];
    const TransferDemand& demand = communicator.collectives[communicator.next].demand;
    links_.Begin(event.number, event.at, demand.transfer_ns, UsesOf(event.number, demand));
  }
}

// Fails if a collective never ran: the ranks then wait for each other.
Status Simulation::CheckAllFinished() const {
  for (size_t number = 0; number < communicators_.size(); ++number) {
    const CommunicatorState& communicator = communicators_[number];
    if (communicator.next == communicator.collectives.size()) continue;
    const CommunicatorClass& one = classes_.communicators[number];
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "a communicator of {} ranks hangs: only some of them issue its collective {}",
                              one.ranks, communicator.next),
                    "the ranks of a communicator must issue the same collectives, and wait for none that "
                    "others reach later");
  }
  return {};
}

RankTiming Simulation::TimingOf(int32_t observed) const {
  const size_t rank_class = classes_.class_of_rank[static_cast<size_t>(observed)];
  const RankState& rank = ranks_[rank_class];
  RankTiming timing = rank.timing;
  for (size_t i = 0; i < timing.collectives.size(); ++i) {
    const Ordered& ordered = communicators_[CommunicatorOf(rank_class, i)].collectives[rank.place[i]];
    timing.collectives[i].started_ns = ordered.started;
    timing.collectives[i].ended_ns = ordered.ended;
    timing.finished_ns = std::max(timing.finished_ns, ordered.ended);
  }
  return timing;
}

// Sums up the classes of ranks; each counts as often as it has members.
SimulationResult Simulation::Summary() const {
  SimulationResult result{.rank_classes = classes_.ranks.size()};
  for (const RankState& rank : ranks_)
    result.finished_ns = std::max(result.finished_ns, rank.timing.finished_ns);
  for (size_t number = 0; number < communicators_.size(); ++number) {
    const CommunicatorState& communicator = communicators_[number];
    const auto alike = static_cast<uint64_t>(classes_.communicators[number].communicators);
    result.collectives += alike * communicator.collectives.size();
    result.finished_ns = std::max(result.finished_ns, communicator.free_at);
  }
  for (size_t i = 0; i < classes_.ranks.size(); ++i)
    result.port_bytes += classes_.ranks[i].ranks * links_.CarriedBytes(PortOf(i));
  for (size_t i = 0; i < classes_.nodes.size(); ++i)
    result.network_bytes += classes_.nodes[i].nodes * links_.CarriedBytes(NetworkOf(i));
  for (const int32_t rank : options_.observed_ranks) result.observed.push_back(TimingOf(rank));
  return result;
}

Result<SimulationResult> Simulation::Run() {
  StartRanks();
  QueueLoads();
  for (size_t rank_class = 0; rank_class < ranks_.size(); ++rank_class)
    DYNAMICCL_CHECK_OK(Advance(rank_class));
  DYNAMICCL_CHECK_OK(RunEvents());
  DYNAMICCL_CHECK_OK(CheckAllFinished());
  return Summary();
}

}  // namespace

Result<SimulationResult> Simulate(const SimulatedJob& job, const SimulationOptions& options) {
  DYNAMICCL_CHECK_OK(Check(job));
  for (const int32_t rank : options.observed_ranks) {
    if (rank < 0 || rank >= job.n_ranks)
      return MakeError(ErrorKind::kInvalidArgument, "rank {} of {} cannot be observed", rank, job.n_ranks);
  }
  return Simulation(job, options).Run();
}

}  // namespace dynamiccl
