// SPDX-License-Identifier: Apache-2.0
// Compares the memory of a rank, counted where tensors are made, with the table of docs/zero_memory.md: they
// must agree exactly. Also compares it with the answer of `zero estimate` for the same run: it must agree up
// to the padding of shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/estimate/memory_estimate.h"

namespace dynamiccl::zero {
namespace {

// The small model has 2 blocks, hidden size 64, sequence length 32 and a vocabulary of 256 bytes.
constexpr int64_t kBlocks = 2, kHidden = 64, kSequence = 32, kVocabulary = 256;
constexpr int64_t kBucketBytes = 65536;

struct Sizes {
  int64_t block, root;  // padded: each shard is a multiple of 128 elements
  int64_t psi() const { return root + kBlocks * block; }
};

int64_t Padded(int64_t elements, int64_t ranks) {
  const int64_t multiple = 128 * ranks;
  return (elements + multiple - 1) / multiple * multiple;
}

Sizes SizesAt(int64_t ranks) {
  return {Padded(12 * kHidden * kHidden + 13 * kHidden, ranks),
          Padded((2 * kVocabulary + kSequence + 2) * kHidden + kVocabulary, ranks)};
}

struct Case {
  int ranks;
  int stage;
  std::string type;
  int64_t element() const { return type == "fp32" ? 4 : 2; }
};

MemoryReport MemoryOf(const Case& run, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--stage", std::to_string(run.stage), "--dtype", run.type, "--steps",
                                        "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return TrainSmall(run.ranks, arguments).memory;
}

void ExpectFormulas(const Case& run, const MemoryReport& memory) {
  SCOPED_TRACE(run.type + ", stage " + std::to_string(run.stage) + ", ranks " + std::to_string(run.ranks));
  const Sizes sizes = SizesAt(run.ranks);
  const int64_t psi = sizes.psi(), own = psi / run.ranks, element = run.element();
  const bool fp32 = run.type == "fp32";
  // In fp32 the master weights are themselves the shard of parameters.
  const int64_t shard = run.stage == 0 || fp32 ? 0 : element * own;
  EXPECT_EQ(memory.current.at("parameters"), (run.stage < 3 ? element * psi : 0) + shard);
  EXPECT_EQ(memory.current.at("gradients"), element * (run.stage == 0 ? psi : own));
  EXPECT_EQ(memory.current.at("master"), 4 * (run.stage == 0 ? psi : own));
  EXPECT_EQ(memory.current.at("moments"), 8 * (run.stage == 0 ? psi : own));
  const int64_t positions = kBucketBytes / element / run.ranks;
  const int64_t capacity = std::min((positions + 127) / 128 * 128, own);
  EXPECT_EQ(memory.peak.at("buckets"), 2 * element * run.ranks * capacity);
  // The root, the block that is computed and the block that is prefetched have memory. It is freed after the
  // step.
  EXPECT_EQ(memory.peak.at("gathered"), run.stage == 3 ? element * (sizes.root + 2 * sizes.block) : 0);
  EXPECT_EQ(memory.current.at("gathered"), 0);
  // In stages 2 and 3, autograd's gradients are freed unit by unit, so they are never all in memory at once.
  const int64_t autograd = memory.peak.at("gradients") - memory.current.at("gradients");
  if (run.stage == 1) {
    EXPECT_GE(autograd, element * (psi - 1000 * run.ranks));
  }
  if (run.stage >= 2) {
    EXPECT_LE(autograd, element * (sizes.root + 2 * sizes.block));
  }
  EXPECT_GT(memory.activations_kept, 0);
}

EstimateSettings SmallModelOf(EstimateSettings settings, const Case& run, int64_t layers) {
  settings.shape = TransformerShape{.layers = layers,
                                    .hidden = kHidden,
                                    .sequence = kSequence,
                                    .vocabulary = kVocabulary,
                                    .tied_head = false};
  settings.dtype = run.type;
  settings.ranks = run.ranks;
  settings.bucket_bytes = kBucketBytes;
  return settings;
}

// The estimate is that of the paper, without padding. The trainer pads each shard of a unit to a multiple of
// 128 elements and each parameter to a multiple of 32. All parameters of this model are multiples of 32.
void ExpectEstimated(const Case& run, const MemoryReport& memory, int64_t layers = kBlocks,
                     int64_t ahead = 1) {
  SCOPED_TRACE("estimate, stage " + std::to_string(run.stage) + ", ranks " + std::to_string(run.ranks));
  EstimateSettings settings = SmallModelOf({}, run, layers);
  settings.units_ahead = ahead;
  const StageEstimate estimate = EstimateOf(settings)[static_cast<size_t>(run.stage)];
  // The estimator does not count the head's bias of 256 numbers.
  const auto near = [&](int64_t counted, double estimated, int64_t bytes_of_one, const char* what) {
    const auto padding = static_cast<double>(((layers + 1) * 128 * run.ranks + kVocabulary) * bytes_of_one);
    EXPECT_GE(static_cast<double>(counted), estimated) << what;
    EXPECT_LE(static_cast<double>(counted), estimated + padding) << what;
  };
  const bool copies_shard = run.stage == 1 || run.stage == 2;
  const int64_t shard = copies_shard ? 2 * SizesAt(run.ranks).psi() / run.ranks : 0;
  near(memory.current.at("parameters") - shard, estimate.states.parameters, 2, "parameters");
  // In stage 1 the trainer keeps all gradients only until the end of a step's backward passes.
  const int64_t gradients = run.stage == 1 ? memory.peak.at("gradients") - memory.current.at("gradients")
                                           : memory.current.at("gradients");
  near(gradients, estimate.states.gradients, 2, "gradients");
  near(memory.current.at("master") + memory.current.at("moments"), estimate.states.optimizer, 12,
       "optimizer");
  near(memory.peak.at("gathered"), estimate.gathered, 2, "gathered");
  EXPECT_NEAR(static_cast<double>(memory.peak.at("buckets")), estimate.buffers, 2 * 2 * 128.0 * run.ranks);
}

void ExpectFormulas(int ranks) {
  for (const char* type : {"fp32", "bf16"}) {
    int64_t kept = 0;
    for (int stage = 0; stage < 4; ++stage) {
      const Case run{ranks, stage, type};
      const MemoryReport memory = MemoryOf(run);
      ExpectFormulas(run, memory);
      // In fp32 the estimator counts no master weights beside the parameters. In stages 0 to 2 the trainer
      // has them.
      if (run.type == "bf16") ExpectEstimated(run, memory);
      // Autograd keeps the same activations in all stages.
      if (stage == 0) kept = memory.activations_kept;
      EXPECT_EQ(memory.activations_kept, kept);
    }
  }
}

TEST(MemoryFormula, OneRank) {
  ExpectFormulas(1);
}

TEST(MemoryFormula, TwoRanks) {
  ExpectFormulas(2);
}

TEST(MemoryFormula, ThreeRanks) {
  ExpectFormulas(3);
}

TEST(MemoryFormula, FourRanks) {
  ExpectFormulas(4);
}

TEST(MemoryFormula, WithoutPrefetchOneBlockLessIsGathered) {
  const Sizes sizes = SizesAt(2);
  const MemoryReport memory = MemoryOf({2, 3, "fp32"}, {"--no-prefetch"});
  EXPECT_EQ(memory.peak.at("gathered"), 4 * (sizes.root + sizes.block));
}

TEST(MemoryFormula, EachUnitAheadIsOneBlockMore) {
  const Sizes sizes = SizesAt(2);
  for (const int64_t ahead : {1, 2, 3, 4, 9}) {
    const Case run{2, 3, "bf16"};
    const MemoryReport memory = MemoryOf(run, {"--layers", "5", "--prefetch-units", std::to_string(ahead)});
    ExpectEstimated(run, memory, 5, ahead);
    const int64_t blocks = std::min<int64_t>(5, 1 + ahead);
    EXPECT_EQ(memory.peak.at("gathered"), 2 * (sizes.root + blocks * sizes.block)) << ahead;
    EXPECT_EQ(memory.current.at("gathered"), 0);
  }
}

// The 6 blocks form units of 2 or 3 blocks, of 4 and 2, or one unit. The unit that is computed and those that
// are prefetched have memory.
TEST(MemoryFormula, UnitsOfSeveralBlocksAreGatheredTogether) {
  const auto gathered = [](const std::string& blocks, const std::string& ahead) {
    return MemoryOf({2, 3, "bf16"}, {"--layers", "6", "--unit-blocks", blocks, "--prefetch-units", ahead})
        .peak.at("gathered");
  };
  const int64_t root = 2 * SizesAt(2).root;
  const auto bytes = [](int64_t blocks) {
    return 2 * Padded(blocks * (12 * kHidden * kHidden + 13 * kHidden), 2);
  };
  EXPECT_EQ(gathered("2", "1"), root + 2 * bytes(2));
  EXPECT_EQ(gathered("2", "2"), root + 3 * bytes(2));
  EXPECT_EQ(gathered("3", "1"), root + 2 * bytes(3));
  EXPECT_EQ(gathered("4", "1"), root + bytes(4) + bytes(2));
  EXPECT_EQ(gathered("6", "1"), root + bytes(6));
}

// With its norm, an attention has 4 h^2 + 6 h parameters and a feed-forward network 8 h^2 + 7 h.
TEST(MemoryFormula, HalvesOfBlocksAreGatheredApart) {
  const int64_t h = kHidden;
  const int64_t attention = Padded(4 * h * h + 6 * h, 2), feed_forward = Padded(8 * h * h + 7 * h, 2);
  const auto gathered = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--layers", "6", "--unit", "half_block"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return MemoryOf({2, 3, "bf16"}, arguments).peak.at("gathered");
  };
  const int64_t root = 2 * SizesAt(2).root;
  EXPECT_EQ(gathered({"--no-prefetch"}), root + 2 * feed_forward);
  EXPECT_EQ(gathered({}), root + 2 * (attention + feed_forward));
  EXPECT_EQ(gathered({"--prefetch-units", "2"}), root + 2 * (attention + 2 * feed_forward));
}

// Rank 0 of two ranks owns the root and every second block as a whole. A bucket has room for the largest
// unit.
TEST(MemoryFormula, AnOwnerHoldsItsUnitsWhole) {
  const Sizes sizes = SizesAt(2);
  for (const int stage : {1, 2, 3}) {
    const MemoryReport memory = MemoryOf({2, stage, "bf16"}, {"--layers", "5", "--exchange", "layer_owner"});
    const int64_t own = sizes.root + 2 * sizes.block, all = sizes.root + 5 * sizes.block;
    EXPECT_EQ(memory.current.at("master"), 4 * own);
    EXPECT_EQ(memory.current.at("moments"), 8 * own);
    EXPECT_EQ(memory.current.at("gradients"), 2 * own);
    EXPECT_EQ(memory.current.at("parameters"), 2 * own + (stage < 3 ? 2 * all : 0));
    EXPECT_EQ(memory.peak.at("buckets"), 2 * 2 * std::max(sizes.root, sizes.block));
  }
}

// Sums over micro-steps need memory besides that of one micro-step. The estimate must include them.
TEST(MemoryFormula, SumsOverMicroStepsAreEstimated) {
  struct Sums {
    int stage;
    std::vector<std::string> more;
    const char* place;
    const char* type = "fp32";
  };
  for (const auto& [stage, more, place, type] :
       std::vector<Sums>{{0, {}, "sharded"},
                         {0, {"--accumulation-type", "model"}, "sharded", "model"},
                         {2, {}, "sharded"},
                         {3, {}, "sharded"},
                         {2, {"--accumulation", "local"}, "local"},
                         {3, {"--accumulation", "local"}, "local"}}) {
    SCOPED_TRACE(testing::Message() << "stage " << stage << ", " << place << ", " << type);
    std::vector<std::string> arguments = {"--micro-steps", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Case run{2, stage, "bf16"};
    EstimateSettings settings{.accumulation_type = type, .accumulation = place};
    const auto estimated = EstimateOf(SmallModelOf(settings, run, kBlocks))[static_cast<size_t>(stage)];
    // Local sums exist from the first micro-step to the last, together with autograd's gradients of some
    // units.
    const MemoryReport memory = MemoryOf(run, arguments);
    const bool lasts = stage >= 2 && place == std::string_view("sharded");
    const auto counted = static_cast<double>((lasts ? memory.current : memory.peak).at("gradients"));
    const Sizes sizes = SizesAt(2);
    EXPECT_GE(counted, estimated.states.gradients);
    EXPECT_LE(counted, estimated.states.gradients * 1.02 + 4096 +
                           static_cast<double>(lasts ? 0 : 2 * (sizes.root + 2 * sizes.block)));
  }
}

TEST(MemoryFormula, ActivationsGrowWithTheBatchAndStatesDoNot) {
  std::vector<MemoryReport> reports;
  for (const char* batch : {"12", "24", "36"}) {
    reports.push_back(MemoryOf({2, 2, "fp32"}, {"--batch", batch}));
  }
  const int64_t more = reports[1].activations_kept - reports[0].activations_kept;
  EXPECT_GT(more, 0);
  EXPECT_EQ(reports[2].activations_kept - reports[1].activations_kept, more);
  for (const char* category : {"parameters", "gradients", "master", "moments", "buckets"}) {
    EXPECT_EQ(reports[0].current.at(category), reports[2].current.at(category)) << category;
  }
}

}  // namespace
}  // namespace dynamiccl::zero
