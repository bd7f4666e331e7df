// SPDX-License-Identifier: Apache-2.0
// A step is divided into passes: runs of calls of one phase. In each pass some calls are drivers, to which
// the pass's computing is tied. Before each driver the rank computes the part of the pass that corresponds to
// the driver's share of the weights of all drivers.
#include "tools/simulate/step_program.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

namespace dynamiccl {
namespace {

// Number of nodes that rank 0's group on the axis spans.
int NodesOf(const WorldShape& world, Axis axis, int ranks_per_node) {
  std::set<int> nodes;
  for (int rank = 0; rank < world.Ranks(); ++rank)
    if (world.GroupOn(axis, rank) == world.GroupOn(axis, 0)) nodes.insert(rank / ranks_per_node);
  return static_cast<int>(nodes.size());
}

// Whether the call reduces gradients during the backward pass. A sum between copies of a shard group does not
// count: it follows a ReduceScatter of the same gradients.
bool CarriesGradients(const WireOperation& operation) {
  return operation.role == Role::kGradientReduce && operation.axis != Axis::kReplicate;
}
bool GathersParameters(const WireOperation& operation) {
  return operation.role == Role::kParameterGather;
}

// Emits the actions of one rank. ProgramOf creates one on its stack. It is one class because all rules share
// the state of the current pass, which is the members after `actions_`.
class Writer {
 public:
  Writer(const std::vector<WireOperation>& operations, const StepLayout& layout, const StepCompute& compute)
      : operations_(operations), layout_(layout), compute_(compute) {}

  std::vector<Action> Run();

 private:
  // The calls to which the computing of a pass is tied, called drivers: activation collectives where there
  // are any, else gradient reductions, else parameter gathers.
  enum class Driver : uint8_t { kNothing, kActivations, kGradients, kGathers };

  double PassNs(Phase phase) const;
  void Pass(size_t begin, size_t end);
  Driver DriverOf(size_t begin, size_t end) const;
  bool Drives(size_t i) const;
  // The share of the pass's computing that belongs to driver `i`. It is equal for all activation collectives;
  // for other drivers it grows with their elements.
  double WeightOf(size_t i) const {
    return driver_ == Driver::kActivations ? 1 : static_cast<double>(operations_[i].elements);
  }
  void Operation(size_t i);
  // Emits a driver, with its share of the computing before it.
  void Driving(size_t i);
  // Emits a call that is no driver. Its role decides whether the program waits for it at once or later.
  void Other(size_t i);

  // Adds computing time; fractions of a nanosecond carry over.
  void Compute(double ns);
  // Returns the computing time from the beginning of the pass until `elements` elements of gradients are
  // computed.
  double ArrivalNs(double elements) const;
  void Issue(size_t i);
  void Wait(size_t i) { actions_.push_back({ActionKind::kWait, static_cast<int64_t>(i)}); }
  void WaitAll(std::deque<size_t>& open);
  // Waits for gathers until the parameters for the next `elements` elements of gradients have arrived.
  void AwaitGathersFor(double elements);
  void AwaitNextGather();
  // Issues the gather at `i` and the next layout_.gathers_ahead gathers that follow it directly, except those
  // issued before. The gathers ahead run while the rank computes the unit of gather `i`.
  void IssueGathersFrom(size_t i);

  const std::vector<WireOperation>& operations_;
  const StepLayout& layout_;
  const StepCompute& compute_;
  std::vector<Action> actions_;
  // Computing time below a nanosecond, not yet emitted.
  double rounding_ = 0;

  // The members from here on are the state of the current pass.
  Driver driver_ = Driver::kNothing;
  size_t end_ = 0;
  double ns_of_weight_ = 0;
  // Elements of parameters for whose gathers the program has waited, and elements of gradients that it has
  // computed.
  double gathered_ = 0, reduced_ = 0;
  // Gathers that were issued early.
  std::set<size_t> issued_;
  // Calls issued and not yet waited for, by role.
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
  // In the forward pass the previous gather of updated parameters is waited for before the next one is
  // issued.
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
