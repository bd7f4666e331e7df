// SPDX-License-Identifier: Apache-2.0
#include "tools/advise/trainer_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "traces/generators/zero_arena.h"

namespace dynamiccl {
namespace {

constexpr double kForwardShare = 1.0 / 3;  // a backward pass computes twice as much
constexpr size_t kBuffers = 2;

// What follows from the job's settings.
struct Plan {
  int stage = 0;
  bool overlap = true, prefetch = true, owner = false, hpz = false;
  int64_t micro_steps = 1;
  bool sharded_sums = false;  // stages 2 and 3: each micro-step is reduced
  Axis axis = Axis::kData;    // over which the model is divided
  DataType type = DataType::kFloat32, reduce_type = DataType::kFloat32;
  std::vector<size_t> blocks;  // one past each one's last unit, the root first
  std::vector<int64_t> flats;  // by unit

  size_t BeginOf(size_t block) const { return block == 0 ? 0 : blocks[block - 1]; }
};

void AddUnits(const ModelShape& model, bool by_parameter, Plan& plan) {
  for (const std::vector<size_t>& unit : UnitsOf(model)) {
    std::vector<int64_t> parameters;
    for (const size_t index : unit) parameters.push_back(model.parameters[index].Elements());
    if (by_parameter)
      for (const int64_t elements : parameters) plan.flats.push_back(FlatElements({&elements, 1}));
    else
      plan.flats.push_back(FlatElements(parameters));
    plan.blocks.push_back(plan.flats.size());
  }
}

Plan PlanOf(const AdvisedJob& job, const SettingValues& settings) {
  Plan plan;
  plan.stage = settings.Choice("stage").front() - '0';
  plan.overlap = settings.Flag("overlap");
  plan.prefetch = settings.Flag("prefetch");
  plan.owner = settings.Choice("exchange") == "owner";
  plan.hpz = settings.Choice("hybrid") == "hpz";
  plan.micro_steps = settings.Integer("micro_steps");
  plan.sharded_sums = plan.stage >= 2 && settings.Choice("accumulation") != "local";
  plan.axis = plan.hpz ? Axis::kData : job.world.ShardAxis();
  plan.type = settings.Type("dtype");
  plan.reduce_type = settings.Type("reduce_type");
  AddUnits(job.model, settings.Choice("unit") == "parameter", plan);
  return plan;
}

ZeroArena ArenaOf(const AdvisedJob& job, const SettingValues& settings, const Plan& plan) {
  return {plan.flats,
          {.ranks = job.world.RanksOn(plan.axis),
           .bucket_bytes = settings.Integer("bucket_bytes"),
           .element_bytes = static_cast<int64_t>(ElementBytes(plan.reduce_type)),
           .bucket_per_unit = settings.Choice("unit") == "parameter"}};
}

class Writer {
 public:
  Writer(Plan plan, ZeroArena arena, const WorldShape& world, const TrainerCompute& compute)
      : plan_(std::move(plan)), arena_(std::move(arena)), world_(world), compute_(compute) {
    for (const int64_t flat : plan_.flats) elements_ += static_cast<double>(flat);
    single_buffer_ = IsWhole();
    gathers_.resize(plan_.flats.size());
    gathered_.resize(plan_.flats.size());
  }

  void Step();
  std::vector<Action> Take() {
    WaitAll(replica_sums_);
    for (auto& gather : gathers_) WaitAll(gather);
    return std::move(actions_);
  }
  std::vector<WireOperation>& operations() { return operations_; }

 private:
  using Open = std::vector<size_t>;  // issued, not yet waited for
  struct Bucket {
    Open sent;
    int64_t elements = 0;  // of a rank
  };

  bool IsWhole() const;
  bool Replicated() const { return plan_.axis == Axis::kShard; }
  bool AddsUpShards() const { return plan_.micro_steps > 1 && plan_.sharded_sums; }
  double BlockShare(size_t block) const;
  void Compute(double ns);
  size_t Issue(Collective collective, int64_t elements, DataType type, Axis axis, Role role, int root = -1);
  void WaitAll(Open& open);
  void GatherInto(size_t unit, Axis axis, Role role);
  void Forward();
  void Backward(bool reduce);
  void GatherForBackward(size_t block);
  void GatherOnce(size_t unit);
  void Reduce(size_t block);
  void AddToBuckets(size_t unit);
  void Send(int64_t elements);
  void Settle(Bucket& bucket);
  void Finish();
  void Optimizer();

  const Plan plan_;
  const ZeroArena arena_;
  const WorldShape world_;
  const TrainerCompute compute_;
  double elements_ = 0;
  std::vector<Action> actions_;
  std::vector<WireOperation> operations_;
  Phase phase_ = Phase::kForward;
  double rounding_ = 0;
  std::vector<Open> gathers_;   // by unit
  std::vector<bool> gathered_;  // in this backward pass
  Bucket buckets_[kBuffers];
  size_t current_ = 0;
  bool single_buffer_ = false;
  Open replica_sums_;
};

// One bucket holds everything: there is no second buffer then.
bool Writer::IsWhole() const {
  size_t buckets = 0;
  for (size_t unit = 0; unit < arena_.units(); ++unit)
    for (const BucketPart& part : arena_.BucketsOf(unit)) buckets += part.full > 0 ? 1 : 0;
  return buckets == 1;
}

double Writer::BlockShare(size_t block) const {
  double sum = 0;
  for (size_t unit = plan_.BeginOf(block); unit < plan_.blocks[block]; ++unit)
    sum += static_cast<double>(plan_.flats[unit]);
  return sum / elements_;
}

void Writer::Compute(double ns) {
  const double exact = ns + rounding_;
  const int64_t whole = std::llround(std::max(0.0, exact));
  rounding_ = exact - static_cast<double>(whole);
  if (whole > 0) actions_.push_back({ActionKind::kCompute, whole});
}

size_t Writer::Issue(Collective collective, int64_t elements, DataType type, Axis axis, Role role, int root) {
  const bool sums = collective != Collective::kAllGather && collective != Collective::kBroadcast;
  WireOperation operation{.collective = collective, .data_type = type, .axis = axis, .elements = elements};
  operation.op = sums ? ReduceOp::kSum : operation.op;
  operation.root = root;
  operation.role = role;
  operation.phase = phase_;
  operations_.push_back(operation);
  actions_.push_back({ActionKind::kIssue, static_cast<int64_t>(operations_.size() - 1)});
  return operations_.size() - 1;
}

void Writer::WaitAll(Open& open) {
  for (const size_t number : open) actions_.push_back({ActionKind::kWait, static_cast<int64_t>(number)});
  open.clear();
}

void Writer::GatherInto(size_t unit, Axis axis, Role role) {
  const int64_t whole = arena_.whole(unit);
  if (!plan_.owner || axis != plan_.axis) {
    gathers_[unit].push_back(Issue(Collective::kAllGather, whole, plan_.type, axis, role));
    return;
  }
  const int ranks = world_.RanksOn(axis);
  for (int owner = 0; owner < ranks; ++owner)
    gathers_[unit].push_back(Issue(Collective::kBroadcast, whole / ranks, plan_.type, axis, role, owner));
}

void Writer::Forward() {
  phase_ = Phase::kForward;
  const double forward = compute_.pass_ns * kForwardShare;
  const auto gather = [&](size_t unit) {
    if (plan_.stage != 3 || unit >= arena_.units() || gathered_[unit]) return;
    gathered_[unit] = true;
    GatherInto(unit, plan_.axis, Role::kParameterGather);
  };
  gathered_.assign(gathered_.size(), false);
  for (size_t block = 0; block < plan_.blocks.size(); ++block) {
    for (size_t unit = plan_.BeginOf(block); unit < plan_.blocks[block]; ++unit) {
      gather(unit);
      if (plan_.prefetch) gather(unit + 1);
      WaitAll(gathers_[unit]);
    }
    if (block > 0) Compute(forward * BlockShare(block));
  }
  Compute(forward * BlockShare(0));
}

void Writer::GatherOnce(size_t unit) {
  const bool root = unit < plan_.blocks[0];
  if (plan_.stage != 3 || root || gathered_[unit]) return;
  gathered_[unit] = true;
  GatherInto(unit, plan_.hpz ? Axis::kShard : plan_.axis, Role::kParameterGather);
}

void Writer::GatherForBackward(size_t block) {
  for (size_t unit = plan_.blocks[block]; unit-- > plan_.BeginOf(block);) {
    GatherOnce(unit);
    if (plan_.prefetch && unit > 0) GatherOnce(unit - 1);
    WaitAll(gathers_[unit]);
  }
}

void Writer::Reduce(size_t block) {
  for (size_t unit = plan_.blocks[block]; unit-- > plan_.BeginOf(block);) AddToBuckets(unit);
}

void Writer::AddToBuckets(size_t unit) {
  for (const BucketPart& part : arena_.BucketsOf(unit)) {
    if (part.opens) Settle(buckets_[current_]);
    if (part.full > 0) Send(part.full);
  }
}

void Writer::Send(int64_t elements) {
  const int ranks = world_.RanksOn(plan_.axis);
  Bucket& bucket = buckets_[current_];
  bucket.elements = elements;
  if (plan_.stage == 0 || !plan_.owner) {
    const Collective collective = plan_.stage == 0 ? Collective::kAllReduce : Collective::kReduceScatter;
    bucket.sent.push_back(
        Issue(collective, elements * ranks, plan_.reduce_type, plan_.axis, Role::kGradientReduce));
  } else {
    for (int owner = 0; owner < ranks; ++owner)
      bucket.sent.push_back(
          Issue(Collective::kReduce, elements, plan_.reduce_type, plan_.axis, Role::kGradientReduce, owner));
  }
  if (!plan_.overlap) {
    Settle(bucket);
    WaitAll(replica_sums_);
  }
  if (!single_buffer_) current_ = (current_ + 1) % kBuffers;
}

void Writer::Settle(Bucket& bucket) {
  if (bucket.sent.empty()) return;
  WaitAll(bucket.sent);
  if (Replicated() && !AddsUpShards())
    replica_sums_.push_back(Issue(Collective::kAllReduce, bucket.elements, plan_.reduce_type,
                                  Axis::kReplicate, Role::kGradientReduce));
}

// The older bucket first.
void Writer::Finish() {
  Settle(buckets_[current_]);
  Settle(buckets_[1 - current_]);
  WaitAll(replica_sums_);
}

void Writer::Backward(bool reduce) {
  phase_ = Phase::kBackward;
  gathered_.assign(gathered_.size(), false);
  const double backward = compute_.pass_ns * (1 - kForwardShare);
  Compute(backward * BlockShare(0));
  for (size_t block = plan_.blocks.size(); block-- > 0;) {
    GatherForBackward(block);
    if (block > 0) Compute(backward * BlockShare(block));
    if (reduce && plan_.stage != 1) Reduce(block);
  }
  if (reduce && plan_.stage == 1)
    for (size_t block = plan_.blocks.size(); block-- > 0;) Reduce(block);
  Finish();
}

void Writer::Optimizer() {
  phase_ = Phase::kOptimizer;
  Open scalars = {Issue(Collective::kAllReduce, 2, DataType::kFloat32, Axis::kData, Role::kScalar)};
  WaitAll(scalars);
  const int ranks = plan_.stage == 0 ? 1 : world_.RanksOn(plan_.axis);
  Compute(compute_.update_ns_per_element * elements_ / ranks);
  if (plan_.stage != 1 && plan_.stage != 2) return;
  for (size_t unit = 0; unit < arena_.units(); ++unit) {
    GatherInto(unit, plan_.axis, Role::kPostStepGather);
    if (!plan_.overlap) WaitAll(gathers_[unit]);
  }
}

void Writer::Step() {
  for (int64_t micro = 1; micro <= plan_.micro_steps; ++micro) {
    Forward();
    Backward(plan_.sharded_sums || micro == plan_.micro_steps);
  }
  if (Replicated() && AddsUpShards()) {
    Open sum = {Issue(Collective::kAllReduce, arena_.elements(), DataType::kFloat32, Axis::kReplicate,
                      Role::kGradientReduce)};
    WaitAll(sum);
  }
  Optimizer();
}

int NodesOn(const WorldShape& world, Axis axis, int ranks_per_node) {
  std::set<int> nodes;
  for (int rank = 0; rank < world.Ranks(); ++rank)
    if (world.GroupOn(axis, rank) == world.GroupOn(axis, 0)) nodes.insert(rank / ranks_per_node);
  return static_cast<int>(nodes.size());
}

}  // namespace

Result<TrainerProgram> ProgramOfTrainer(const AdvisedJob& job, const TrainerCompute& compute, int steps,
                                        int ranks_per_node, SystemDemands& demands) {
  DYNAMICCL_TRY(const SettingValues settings, SettingsOf(job));
  Plan plan = PlanOf(job, settings);
  ZeroArena arena = ArenaOf(job, settings, plan);
  Writer writer(std::move(plan), std::move(arena), job.world, compute);
  for (int step = 0; step < steps; ++step) writer.Step();
  TrainerProgram result;
  result.program.actions = writer.Take();
  result.operations = std::move(writer.operations());
  for (const WireOperation& operation : result.operations) {
    DYNAMICCL_TRY(
        const TransferDemand demand,
        demands.Of(operation.collective, operation.Bytes(), kLeaveNcclAlone,
                   job.world.RanksOn(operation.axis), NodesOn(job.world, operation.axis, ranks_per_node)));
    result.program.collectives.push_back({static_cast<size_t>(operation.axis), demand});
  }
  return result;
}

}  // namespace dynamiccl
