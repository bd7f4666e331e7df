// SPDX-License-Identifier: Apache-2.0
// Draws each habit independently of the others. The probabilities only need to give every habit a fair share
// of jobs.
#include "agents/structure/invented_jobs.h"

#include <algorithm>
#include <array>

#include "agents/structure/random_draws.h"

namespace dynamiccl::agents {
namespace {

// Largest number of ranks for which a separate call for each rank's part may be drawn; with more ranks a step
// would have too many calls.
constexpr int kMaxOwners = 16;

DataType RandomType(std::mt19937_64& random) {
  constexpr std::array kTypes = {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat16};
  return kTypes[random() % kTypes.size()];
}

Exchange RandomExchange(const WorldShape& world, std::mt19937_64& random) {
  if (!Coin(random, 3)) return Exchange::kCollective;
  return world.ShardRanks() <= kMaxOwners && Coin(random, 2) ? Exchange::kEachOwner : Exchange::kOneOwner;
}

Traffic RandomTraffic(const ModelShape& model, const WorldShape& world, DataType type,
                      std::mt19937_64& random) {
  Traffic traffic;
  traffic.pieces = static_cast<Pieces>(random() % 5);
  traffic.chunk = std::max<int64_t>(
      static_cast<int64_t>(static_cast<double>(model.Elements()) / LogUniform(random, 0, 6)), 1);
  traffic.exact_chunks = Coin(random, 2);
  traffic.exchange = RandomExchange(world, random);
  traffic.type = type;
  traffic.reversed = Coin(random, 2);
  if (Coin(random, 3)) traffic.grouping = static_cast<Grouping>(Uniform(random, 1, 3));
  traffic.group_pieces = static_cast<int>(LogUniform(random, 1, 5));
  return traffic;
}

WorldShape RandomWorld(ZeroStage stage, bool transformer, std::mt19937_64& random) {
  WorldShape world;
  world.data = static_cast<int>(Coin(random, 4) ? Uniform(random, 2, 17) : 1 << Uniform(random, 1, 7));
  if (transformer && Coin(random, 2)) world.tensor = 1 << Uniform(random, 1, 3);
  if (stage != ZeroStage::kStage0 && world.data % 4 == 0 && Coin(random, 5)) world.shard = world.data / 2;
  return world;
}

std::vector<ScalarHabit> RandomScalars(std::mt19937_64& random) {
  constexpr std::array kTypes = {DataType::kFloat32, DataType::kFloat32, DataType::kFloat64, DataType::kUint8,
                                 DataType::kInt32};
  std::vector<ScalarHabit> scalars(Coin(random, 3) ? 0 : static_cast<size_t>(Uniform(random, 1, 4)));
  for (ScalarHabit& scalar : scalars) {
    scalar.moment = static_cast<ScalarHabit::Moment>(random() % 3);
    scalar.type = kTypes[random() % kTypes.size()];
    const bool flag = scalar.type == DataType::kUint8 || Coin(random, 5);
    scalar.op = flag ? ReduceOp::kMax : ReduceOp::kSum;
    scalar.elements = Coin(random, 3) ? Uniform(random, 2, 8) : 1;
    if (Coin(random, 6)) scalar.times = static_cast<int>(LogUniform(random, 1, 5));
    scalar.axis = Coin(random, 5) ? Axis::kWorld : Axis::kData;
  }
  return scalars;
}

void DrawGradients(const ModelShape& model, DataType type, std::mt19937_64& random, InventedHabits& habits) {
  const DataType reduced = Coin(random, 3) ? DataType::kFloat32 : type;
  habits.gradients = RandomTraffic(model, habits.world, reduced, random);
  habits.gradients.reversed = !Coin(random, 3);
  const bool partitioned = habits.stage != ZeroStage::kStage0;
  if (!partitioned) habits.gradients.exchange = Exchange::kCollective;
  const bool whole = !partitioned || (habits.stage != ZeroStage::kStage3 && Coin(random, 3));
  habits.gradient_collective = whole ? Collective::kAllReduce : Collective::kReduceScatter;
  habits.gradient_op = Coin(random, 3) ? ReduceOp::kAvg : ReduceOp::kSum;
  habits.micro_steps = Coin(random, 3) ? static_cast<int>(Uniform(random, 2, 4)) : 1;
  habits.each_pass = habits.stage >= ZeroStage::kStage2 || (!partitioned && Coin(random, 2));
  habits.after_backward = Coin(random, 4);
  habits.replicas_at_end = Coin(random, 2);
}

void DrawSecondGathers(std::mt19937_64& random, InventedHabits& habits) {
  habits.gather_in_backward = !Coin(random, 4);
  if (Coin(random, 3)) habits.whole_blocks = static_cast<int>(LogUniform(random, 0, 4));
  habits.first_stays_whole = Coin(random, 2);
  habits.gathered_ahead = Coin(random, 2) ? static_cast<int>(Uniform(random, 1, 3)) : 0;
  habits.blocks_fetched = static_cast<int>(Coin(random, 4) ? Uniform(random, 2, 4) : 1);
  habits.second_copies = habits.world.IsHybrid() && habits.stage == ZeroStage::kStage3 && Coin(random, 3);
}

void DrawGathers(const ModelShape& model, DataType type, std::mt19937_64& random, InventedHabits& habits) {
  // Half of the frameworks transfer gradients and parameters in the same pieces.
  const bool alike = Coin(random, 2);
  habits.parameters = alike ? habits.gradients : RandomTraffic(model, habits.world, type, random);
  habits.parameters.type = type;
  DrawSecondGathers(random, habits);
  const bool divided = habits.stage == ZeroStage::kStage3;
  if (divided && Coin(random, 2)) habits.kept_elements = static_cast<int64_t>(LogUniform(random, 6, 18));
  // In stage 3, only the small parameters that stay whole are gathered after the step. Their pieces need not
  // be like those of the partitioned parameters.
  const bool like_gathers = alike && !divided;
  habits.updated = like_gathers ? habits.parameters : RandomTraffic(model, habits.world, type, random);
  if (divided && Coin(random, 3)) habits.updated.pieces = Pieces::kParameters;
  habits.updated_order = Coin(random, 2) ? Order::kBlocks : static_cast<Order>(random() % 4);
  habits.updated_in_forward = !divided && Coin(random, 6);
}

void DrawActivations(const ModelShape& model, DataType type, std::mt19937_64& random,
                     InventedHabits& habits) {
  if (habits.world.tensor == 1) return;
  habits.activations_forward = static_cast<int>(Uniform(random, 1, 3));
  habits.activations_backward = static_cast<int>(Uniform(random, 1, 3));
  habits.activations_split = Coin(random, 2);
  habits.recompute = Coin(random, 3);
  habits.sends_batch = Coin(random, 2);
  habits.head_sums = static_cast<int>(Uniform(random, 0, 3));
  habits.sums_shared_gradients = Coin(random, 3);
  habits.activation_type = type;
  habits.tokens = Uniform(random, 1, 8) * model.transformer->sequence;
  habits.activation_elements = habits.tokens * model.transformer->hidden;
}

}  // namespace

InventedHabits DrawHabits(const ModelShape& model, std::mt19937_64& random) {
  InventedHabits habits;
  habits.stage = static_cast<ZeroStage>(random() % 4);
  habits.world = RandomWorld(habits.stage, model.transformer.has_value(), random);
  habits.blocks_together = static_cast<int>(Coin(random, 3) ? Uniform(random, 2, 4) : 1);
  habits.head_is_apart = Coin(random, 2);
  const DataType type = RandomType(random);
  DrawGradients(model, type, random, habits);
  DrawGathers(model, type, random, habits);
  DrawActivations(model, type, random, habits);
  habits.sends_parameters_first = Coin(random, 2);
  habits.sends_buffers = Coin(random, 4);
  habits.sends_used_map = Coin(random, 8);
  if (Coin(random, 6)) habits.announced = static_cast<int>(LogUniform(random, 0, 8));
  habits.scalars = RandomScalars(random);
  return habits;
}

ZeroStage StageToTell(const InventedHabits& habits) {
  if (habits.stage == ZeroStage::kStage3)
    return habits.gather_in_backward ? ZeroStage::kStage3 : ZeroStage::kUnknown;
  const bool divided = habits.stage != ZeroStage::kStage0;
  return divided && habits.micro_steps == 1 ? ZeroStage::kUnknown : habits.stage;
}

}  // namespace dynamiccl::agents
