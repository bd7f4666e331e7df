// SPDX-License-Identifier: Apache-2.0
// Converts the calls of a step into a program. A step is divided into passes: consecutive calls of one phase.
// In each pass some calls are drivers, to which the pass's computing time is tied. Before each driver the
// rank computes for a part of the pass, in proportion to the driver's weight among all drivers.
#include "tools/simulate/step_program.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

namespace dynamiccl {
namespace {

// Number of nodes over which the communicator of rank 0 on this axis (data, shard, tensor ...) extends.
int NodesOf(const WorldShape& world, Axis axis, int ranks_per_node) {
  std::set<int> nodes;
  for (int rank = 0; rank < world.Ranks(); ++rank)
    if (world.GroupOn(axis, rank) == world.GroupOn(axis, 0)) nodes.insert(rank / ranks_per_node);
  return static_cast<int>(nodes.size());
}

// True if the call reduces gradients during the backward pass. With hybrid sharding, the sum over the copies
// of the model does not count, because it follows a ReduceScatter of the same gradients.
bool CarriesGradients(const WireOperation& operation) {
  return operation.role == Role::kGradientReduce && operation.axis != Axis::kReplicate;
}
bool GathersParameters(const WireOperation& operation) {
  return operation.role == Role::kParameterGather;
}

// Emits what one rank does in a step: compute, issue a call, wait for a call. ProgramOf creates one on its
// stack. All rules share the state of the current pass, the members after `rounding_`, so they are in one
// class.
class Writer {
 public:
  Writer(const std::vector<WireOperation>& operations, const StepLayout& layout, const StepCompute& compute)
      : operations_(operations), layout_(layout), compute_(compute) {}

  std::vector<Action> Run();

 private:
  // The kind of calls, called drivers, to which the computing time of a pass is tied: activation collectives
  // if there are any, else gradient reductions, else parameter gathers.
  enum class Driver : uint8_t { kNothing, kActivations, kGradients, kGathers };

  double PassNs(Phase phase) const;
  void Pass(size_t begin, size_t end);
  Driver DriverOf(size_t begin, size_t end) const;
  bool Drives(size_t i) const;
  // The weight of call `i` when the computing time of a pass is divided among its drivers. All activation
  // collectives have the same weight. The weight of other drivers is their number of elements.
  double WeightOf(size_t i) const {
    return driver_ == Driver::kActivations ? 1 : static_cast<double>(operations_[i].elements);
  }
  void Operation(size_t i);
  // Emits the computing that belongs to driver `i` (a call to which computing is tied), and then the call.
  void Driving(size_t i);
  // Emits a call to which no computing is tied. Its role decides whether the program waits for it at once or
  // later.
  void Other(size_t i);

  // Adds computing time. Fractions of a nanosecond are added to the next computing time.
  void Compute(double ns);
  // Returns the computing time in nanoseconds from the beginning of the backward pass until `elements`
  // elements of gradients are computed.
  double ArrivalNs(double elements) const;
  void Issue(size_t i);
  void Wait(size_t i) { actions_.push_back({ActionKind::kWait, static_cast<int64_t>(i)}); }
  void WaitAll(std::deque<size_t>& open);
  // Waits for parameter gathers until the parameters of the next `elements` elements of gradients have
  // arrived.
  void AwaitGathersFor(double elements);
  void AwaitNextGather();
  // Issues gather `i` and the next layout_.gathers_ahead gathers that follow it directly, except those
  // already issued. The later gathers run while the rank computes with the parameters of gather `i`.
  void IssueGathersFrom(size_t i);

  const std::vector<WireOperation>& operations_;
  const StepLayout& layout_;
  const StepCompute& compute_;
  std::vector<Action> actions_;
  // Computing time below one nanosecond that no action contains yet.
  double rounding_ = 0;

  // The members from here on are the state of the current pass.
  Driver driver_ = Driver::kNothing;
  size_t end_ = 0;
  double ns_of_weight_ = 0;
  // Elements of the parameters whose gathers the program has waited for, and elements of the gradients that
  // it has computed.
  double gathered_ = 0, reduced_ = 0;
  // Indices of the gathers that were issued ahead of their place in the step.
  std::set<size_t> issued_;
  // Indices of the calls that were issued and not yet waited for, by role.
  std::deque<size_t> gathers_;
  std::deque<size_t> gradients_;
  std::deque<size_t> post_step_;
};

double Writer::PassNs(Phase phase) const {
  if (phase == Phase::kForward) return compute_.forward_ns;
  if (phase == Phase::kBackward) return compute_.backward_ns;
  return phase == Phase::kOptimizer ? compute_.optimizer_ns : 0;
}

void Writer::Compute(double ns) {
  const double exact = ns + rounding_;
  const int64_t whole = std::llround(std::max(0.0, exact));
  rounding_ = exact - static_cast<double>(whole);
  if (whole > 0) actions_.push_back({ActionKind::kCompute, whole});
}

void Writer::Issue(size_t i) {
  actions_.push_back({ActionKind::kIssue, static_cast<int64_t>(i)});
  if (!layout_.host_waits) return;
  Wait(i);
  if (GathersParameters(operations_[i]))
    Compute(compute_.unpack_ns * static_cast<double>(operations_[i].elements));
}

void Writer::WaitAll(std::deque<size_t>& open) {
  for (const size_t i : open) Wait(i);
  open.clear();
}

void Writer::AwaitNextGather() {
  gathered_ += static_cast<double>(operations_[gathers_.front()].elements);
  Wait(gathers_.front());
  gathers_.pop_front();
}

void Writer::AwaitGathersFor(double elements) {
  reduced_ += elements;
  while (!gathers_.empty() && gathered_ < reduced_) AwaitNextGather();
}

Writer::Driver Writer::DriverOf(size_t begin, size_t end) const {
  bool activations = false, gradients = false, gathers = false;
  for (size_t i = begin; i < end; ++i) {
    activations = activations || operations_[i].role == Role::kActivation;
    gradients = gradients || CarriesGradients(operations_[i]);
    gathers = gathers || GathersParameters(operations_[i]);
  }
  if (operations_[begin].phase != Phase::kForward && operations_[begin].phase != Phase::kBackward)
    return Driver::kNothing;
  if (activations) return Driver::kActivations;
  return gradients ? Driver::kGradients : (gathers ? Driver::kGathers : Driver::kNothing);
}

bool Writer::Drives(size_t i) const {
  switch (driver_) {
    case Driver::kActivations:
      return operations_[i].role == Role::kActivation;
    case Driver::kGradients:
      return CarriesGradients(operations_[i]);
    case Driver::kGathers:
      return GathersParameters(operations_[i]);
    default:
      return false;
  }
}

void Writer::IssueGathersFrom(size_t i) {
  const size_t ahead = layout_.host_waits ? 0 : static_cast<size_t>(layout_.gathers_ahead);
  for (const size_t last = std::min(i + 1 + ahead, end_); i < last && GathersParameters(operations_[i]); ++i)
    if (issued_.insert(i).second) Issue(i);
}

double Writer::ArrivalNs(double elements) const {
  const std::vector<GradientArrival>& arrivals = compute_.arrivals;
  if (arrivals.empty()) return elements * ns_of_weight_;
  GradientArrival before;
  for (const GradientArrival& arrival : arrivals) {
    if (elements <= arrival.elements)
      return before.ns + (arrival.ns - before.ns) * (elements - before.elements) /
                             std::max(1.0, arrival.elements - before.elements);
    before = arrival;
  }
  return before.ns;
}

void Writer::Driving(size_t i) {
  const double ns = WeightOf(i) * ns_of_weight_;
  if (driver_ == Driver::kGathers) {
    IssueGathersFrom(i);
    Wait(i);
    Compute(ns);
    return;
  }
  if (driver_ == Driver::kGradients) {
    const double before = ArrivalNs(reduced_);
    AwaitGathersFor(WeightOf(i));
    Compute(ArrivalNs(reduced_) - before);
  } else {
    Compute(ns);
  }
  Issue(i);
  if (driver_ == Driver::kActivations)
    Wait(i);
  else
    gradients_.push_back(i);
}

void Writer::Other(size_t i) {
  const WireOperation& operation = operations_[i];
  // In the forward pass, the program waits for one gather of updated parameters before it issues the next
  // one.
  if (operation.role == Role::kPostStepGather && operation.phase == Phase::kForward) WaitAll(post_step_);
  Issue(i);
  if (GathersParameters(operation))
    gathers_.push_back(i);
  else if (operation.role == Role::kGradientReduce)
    gradients_.push_back(i);
  else if (operation.role == Role::kPostStepGather)
    post_step_.push_back(i);
  else
    Wait(i);
}

void Writer::Operation(size_t i) {
  if (Drives(i))
    Driving(i);
  else
    Other(i);
}

void Writer::Pass(size_t begin, size_t end) {
  driver_ = DriverOf(begin, end);
  end_ = end;
  gathered_ = reduced_ = 0;
  double weights = 0;
  for (size_t i = begin; i < end; ++i)
    if (Drives(i)) weights += WeightOf(i);
  const double ns = PassNs(operations_[begin].phase);
  ns_of_weight_ = weights > 0 ? ns / weights : 0;
  if (operations_[begin].phase == Phase::kOptimizer) WaitAll(gradients_);
  if (weights == 0) Compute(ns);
  for (size_t i = begin; i < end; ++i) Operation(i);
  WaitAll(gathers_);
}

std::vector<Action> Writer::Run() {
  for (size_t begin = 0; begin < operations_.size();) {
    size_t end = begin;
    while (end < operations_.size() && operations_[end].phase == operations_[begin].phase) ++end;
    Pass(begin, end);
    begin = end;
  }
  WaitAll(gradients_);
  WaitAll(post_step_);
  return std::move(actions_);
}

}  // namespace

std::vector<CommunicatorLayout> LayoutsOf(const WorldShape& world) {
  std::vector<CommunicatorLayout> layouts;
  for (const Axis axis : kAllAxes) {
    CommunicatorLayout& layout = layouts.emplace_back();
    for (int rank = 0; rank < world.Ranks(); ++rank)
      layout.communicator_of_rank.push_back(world.GroupOn(axis, rank));
  }
  return layouts;
}

Result<RankProgram> ProgramOf(const std::vector<WireOperation>& operations, const StepLayout& layout,
                              const StepCompute& compute, SystemDemands& demands) {
  std::map<Axis, int> nodes;
  for (const Axis axis : kAllAxes) nodes[axis] = NodesOf(layout.world, axis, layout.ranks_per_node);
  RankProgram program;
  for (const WireOperation& operation : operations) {
    DYNAMICCL_TRY(TransferDemand demand,
                  demands.Of(operation.collective, operation.Bytes(), layout.config,
                             layout.world.RanksOn(operation.axis), nodes[operation.axis]));
    if (operation.index_in_group > 0) demand.latency_ns = 0;
    program.collectives.push_back({static_cast<size_t>(operation.axis), demand});
  }
  program.actions = Writer(operations, layout, compute).Run();
  return program;
}

}  // namespace dynamiccl
