// SPDX-License-Identifier: Apache-2.0
// Tests that a stored input of a block comes back bit for bit: whole, divided over ranks, from host memory
// and from pools. It must take exactly the stated number of bytes, and a write past a slot must be detected.
#include "zero_workloads/zero_r/activation_store.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/zero_workloads/rank_threads.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

at::Tensor Input(int64_t seed, at::ScalarType type) {
  at::manual_seed(static_cast<uint64_t>(seed));
  return at::randn({3, 8, 16}).to(type);
}

ContiguousPool PoolOf(const std::vector<int64_t>& slots, at::ScalarType type) {
  return ContiguousPool(slots, [type](int64_t elements) { return at::empty({elements}, type); });
}

TEST(ContiguousPool, SlotsLieInOnePieceAndStartOnCacheLines) {
  const ContiguousPool pool = PoolOf({5, 64, 1}, at::kBFloat16);
  ASSERT_EQ(pool.slots(), 3u);
  const char* end = nullptr;
  for (size_t i = 0; i < pool.slots(); ++i) {
    const at::Tensor& slot = pool.slot(i);
    const auto* const begin = static_cast<const char*>(slot.const_data_ptr());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 64, 0u);
    if (end != nullptr) {
      EXPECT_LE(begin - end, 128) << "a guard and the rest of a line";
    }
    end = begin + slot.nbytes();
    EXPECT_EQ(slot.storage().data(), pool.slot(0).storage().data());
    slot.zero_();
  }
  pool.CheckGuards();
}

TEST(ContiguousPool, AWritePastASlotIsFound) {
  for (const int64_t past : {-1, 5}) {
    const ContiguousPool pool = PoolOf({8, 5, 8}, at::kFloat);
    static_cast<float*>(pool.slot(1).data_ptr())[past] = 1.0f;
    try {
      pool.CheckGuards();
      ADD_FAILURE() << "element " << past << " of slot 1 was not seen";
    } catch (const std::logic_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(past < 0 ? "before slot 1" : "before slot 2"));
    }
  }
}

TEST(ContiguousPool, AWritePastTheLastSlotIsFound) {
  const ContiguousPool pool = PoolOf({8}, at::kFloat);
  static_cast<float*>(pool.slot(0).data_ptr())[8] = 0.0f;
  EXPECT_THROW(pool.CheckGuards(), std::logic_error);
}

TEST(ActivationStore, GivesBackWhatItKeptWhereverItLay) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const bool on_host : {false, true}) {
      for (const int64_t slots : {0, 2}) {
        ActivationStore store(
            {.on_host = on_host, .pool_slots = slots, .input_elements = 3 * 8 * 16, .options = type});
        const at::Tensor first = Input(1, type), second = Input(2, type);
        const KeptActivation kept = store.Keep(first), other = store.Keep(second);
        EXPECT_TRUE(at::equal(kept.Restore(), first));
        EXPECT_TRUE(at::equal(other.Restore(), second));
        EXPECT_EQ(on_host ? store.kept().on_host : store.kept().on_device,
                  2 * static_cast<int64_t>(first.nbytes()));
        EXPECT_EQ(on_host ? store.kept().on_device : store.kept().on_host, 0);
        store.CheckGuards();
      }
    }
  }
}

TEST(ActivationStore, UsesAPoolsSlotsAgainAndSaysWhenTheyAreOut) {
  ActivationStore store({.pool_slots = 2, .input_elements = 3 * 8 * 16, .options = at::kFloat});
  const void* place = nullptr;
  for (int round = 0; round < 3; ++round) {
    const KeptActivation kept = store.Keep(Input(round, at::kFloat));
    const void* const here = kept.Restore().const_data_ptr();
    if (round > 0) {
      EXPECT_EQ(here, place);
    }
    place = here;
  }
  const KeptActivation one = store.Keep(Input(1, at::kFloat)), two = store.Keep(Input(2, at::kFloat));
  EXPECT_THROW(store.Keep(Input(3, at::kFloat)), std::logic_error);
  EXPECT_THROW(store.Keep(at::zeros({4, 8, 16})), std::logic_error) << "larger than a slot";
}

TEST(PartitionedActivations, EachRankKeepsItsPartAndAllGetTheWholeBack) {
  for (const int ranks : {2, 4}) {
    for (const bool on_host : {false, true}) {
      for (const int64_t slots : {0, 3}) {
        RunGridThreads({ranks, ranks}, [&](Grid& grid) {
          ActivationStore store({.divide_over = grid.tensor(),
                                 .on_host = on_host,
                                 .pool_slots = slots,
                                 .input_elements = 3 * 8 * 16,
                                 .options = at::kBFloat16});
          std::vector<at::Tensor> inputs;
          std::vector<KeptActivation> kept;
          for (int i = 0; i < 3; ++i) {
            // The inputs are not random, because all threads share one generator.
            inputs.push_back(
                (at::arange(3 * 8 * 16, at::kFloat) * (i + 1)).sin().view({3, 8, 16}).to(at::kBFloat16));
            kept.push_back(store.Keep(inputs.back()));
          }
          const int64_t part = 3 * static_cast<int64_t>(inputs[0].nbytes()) / ranks;
          EXPECT_EQ(store.kept().on_device, on_host ? 0 : part);
          EXPECT_EQ(store.kept().on_host, on_host ? part : 0);
          for (size_t i = 3; i-- > 0;) EXPECT_TRUE(at::equal(kept[i].Restore(), inputs[i]));
          kept.clear();
          EXPECT_EQ(store.kept().on_device + store.kept().on_host, 0);
          store.CheckGuards();
        });
      }
    }
  }
}

// Restoring one input must start the gather of the input before it. Nothing may be gathered twice.
TEST(PartitionedActivations, PrefetchGathersTheInputBeforeEarly) {
  for (const bool on_host : {false, true}) {
    RunGridThreads({2, 2}, [&](Grid& grid) {
      ActivationStore store(
          {.divide_over = grid.tensor(), .on_host = on_host, .prefetch = true, .options = at::kFloat});
      std::vector<at::Tensor> inputs;
      std::vector<KeptActivation> kept;
      for (int i = 0; i < 4; ++i) {
        inputs.push_back((at::arange(3 * 8 * 16, at::kFloat) * (i + 1)).sin().view({3, 8, 16}));
        kept.push_back(store.Keep(inputs.back()));
      }
      const int64_t once = static_cast<int64_t>(inputs[0].nbytes()) / 2;
      const int64_t before = grid.tensor()->sent_bytes();
      for (size_t i = 4; i-- > 0;) {
        EXPECT_TRUE(at::equal(kept[i].Restore(), inputs[i]));
        EXPECT_EQ(grid.tensor()->sent_bytes() - before, once * (i == 0 ? 4 : static_cast<int64_t>(5 - i)));
        kept.pop_back();
      }
      EXPECT_EQ(store.kept().on_device + store.kept().on_host, 0);
    });
  }
}

TEST(PartitionedActivations, AGatherThatNobodyTakesEndsBeforeItsMemoryIsFreed) {
  RunGridThreads({2, 2}, [](Grid& grid) {
    ActivationStore store({.divide_over = grid.tensor(), .prefetch = true, .options = at::kFloat});
    std::vector<KeptActivation> kept;
    for (int i = 0; i < 3; ++i) kept.push_back(store.Keep(at::full({64, 1024}, i, at::kFloat)));
    EXPECT_EQ(kept[2].Restore().sum().item<float>(), 2.0f * 64 * 1024);
    kept.clear();
    EXPECT_EQ(store.kept().on_device, 0);
    EXPECT_EQ(store.Keep(at::ones({64, 1024})).Restore().sum().item<float>(), 64.0f * 1024);
  });
}

TEST(PartitionedActivations, RefusesWhatCannotBeDividedEvenly) {
  RunGridThreads({3, 3}, [](Grid& grid) {
    ActivationStore store({.divide_over = grid.tensor(), .options = at::kFloat});
    EXPECT_THROW(store.Keep(at::zeros({4, 4})), std::logic_error);
  });
}

}  // namespace
}  // namespace dynamiccl::zero
