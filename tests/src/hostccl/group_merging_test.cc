// SPDX-License-Identifier: Apache-2.0
// The planner merges some calls of a group and plans them as one. This program is the tuner plugin and
// records the questions it gets. Neighbours of similar traffic are merged. A call with limits, a selection or
// an event of its own is planned alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "src/nccl_abi/tuner_v5.h"
#include "tests/support/spawn_ranks.h"

namespace {

// The sizes in bytes that the tuner of one rank was asked about, in order.
struct Questions {
  std::mutex mutex;
  int inits = 0;
  int first_context = 0;
  std::vector<size_t> bytes;

  std::vector<size_t> Take() {
    const std::lock_guard lock(mutex);
    return std::exchange(bytes, {});
  }
};
Questions g_questions;

ncclResult_t InitTuner(void** context, uint64_t, size_t, size_t, ncclDebugLogger_t, ncclNvlDomainInfo_v5_t*,
                       ncclTunerConstants_v5_t*) {
  const std::lock_guard lock(g_questions.mutex);
  *context = g_questions.inits++ == 0 ? &g_questions.first_context : nullptr;
  return ncclSuccess;
}

ncclResult_t NoteQuestion(void* context, ncclFunc_t, size_t bytes, int, float**, int, int, int, int*) {
  const std::lock_guard lock(g_questions.mutex);
  if (context != nullptr) g_questions.bytes.push_back(bytes);
  return ncclSuccess;
}

ncclResult_t FinalizeTuner(void*) {
  return ncclSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const ncclTuner_v5_t ncclTunerPlugin_v5 = {"group_merging_test", InitTuner, NoteQuestion, FinalizeTuner};

namespace dynamiccl {
namespace {

using testing::RankContext;
using testing::SpawnRanks;

using Sizes = std::vector<size_t>;
// The call has no config at all, which differs from a config with only default values.
constexpr const ncclCollConfig_t* kPlain = nullptr;

struct Call {
  size_t bytes;
  const ncclCollConfig_t* config = kPlain;
};

// Runs one group of AllReduce calls, checks their sums, and returns the tuner's questions about them.
Sizes QuestionsAbout(const std::vector<Call>& calls) {
  g_questions.Take();
  g_questions.inits = 0;
  ::setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
  EXPECT_EQ(SpawnRanks(2,
                       [&](RankContext& rank) {
                         std::vector<std::vector<float>> data;
                         for (const Call& call : calls) data.emplace_back(call.bytes / sizeof(float), 1.0F);
                         ncclGroupStart();
                         for (size_t i = 0; i < calls.size(); ++i) {
                           EXPECT_EQ(
                               ncclAllReduceConfig(data[i].data(), data[i].data(), data[i].size(), ncclFloat,
                                                   ncclSum, rank.comm, rank.stream, calls[i].config),
                               ncclSuccess);
                         }
                         EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
                         EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
                         for (const auto& values : data) {
                           EXPECT_EQ(values, std::vector<float>(values.size(), 2));
                         }
                       }),
            ncclSuccess);
  ::unsetenv("NCCL_TUNER_PLUGIN");
  Sizes asked = g_questions.Take();
  std::sort(asked.begin(), asked.end());
  return asked;
}

ncclCollConfig_t Config() {
  return DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
}

TEST(GroupMerging, NeighboursOfLikeTrafficAreOneQuestion) {
  EXPECT_EQ(QuestionsAbout({{1024}, {1024}, {2048}}), Sizes{4096});
  EXPECT_EQ(QuestionsAbout({{1024}, {4096}}), (Sizes{1024, 4096})) << "a factor of four";
  EXPECT_EQ(QuestionsAbout({{1028}, {4096}}), Sizes{5124}) << "just below it";
}

TEST(GroupMerging, ACallWithLimitsIsAskedAboutAlone) {
  ncclCollConfig_t limits = Config();
  limits.maxCTAs = 1;
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &limits}}), (Sizes{1024, 1024}));
  EXPECT_EQ(QuestionsAbout({{1024, &limits}, {1024, &limits}}), (Sizes{1024, 1024})) << "equal ones as well";
  EXPECT_EQ(QuestionsAbout({{1024, &limits}, {2048}, {2048}}), (Sizes{1024, 4096}));
  limits = Config();
  limits.minCTAs = 2;
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &limits}}), (Sizes{1024, 1024}));
}

TEST(GroupMerging, ACallWithASelectionPolicyOrEventIsAskedAboutAlone) {
  ncclCollConfig_t selection = Config();
  selection.algSelection = "RING";
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &selection}}), (Sizes{1024, 1024}));
  ncclCollConfig_t policy = Config();
  policy.CTAPolicy = NCCL_CTA_POLICY_DEFAULT;
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &policy}}), (Sizes{1024, 1024}));
  ncclCollConfig_t nvls = Config();
  nvls.nvlsCTAs = 2;
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &nvls}}), (Sizes{1024, 1024}));
  hostcclEvent_t event = nullptr;
  ASSERT_EQ(hostcclEventCreate(&event), ncclSuccess);
  ncclCollConfig_t noted = Config();
  noted.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(event);
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &noted}}), (Sizes{1024, 1024}));
  EXPECT_EQ(hostcclEventDestroy(event), ncclSuccess);
}

// As in NCCL, a tag that only names a call does not isolate the call.
TEST(GroupMerging, ATagAloneDoesNotIsolate) {
  ncclCollConfig_t tagged = Config();
  tagged.userProfilerTag = 7;
  const ncclCollConfig_t silent = Config();
  EXPECT_EQ(QuestionsAbout({{1024}, {1024, &tagged}, {1024, &silent}}), Sizes{3072});
}

// Calls of equal traffic keep their order, and the planner merges only neighbours.
TEST(GroupMerging, AnIsolatedCallKeepsThoseBeforeAndAfterItApart) {
  ncclCollConfig_t limits = Config();
  limits.maxCTAs = 1;
  EXPECT_EQ(QuestionsAbout({{1024}, {1024}, {1024, &limits}, {1024}}), (Sizes{1024, 1024, 2048}));
}

}  // namespace
}  // namespace dynamiccl
