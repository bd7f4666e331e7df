// SPDX-License-Identifier: Apache-2.0
// The planner with and without a plugin. This program itself is the plugin (STATIC_PLUGIN). Each test sets
// the plugin's answers.
#include "src/hostccl/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "src/cost_model/tuner_constants.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/hostccl_constants.h"
#include "src/nccl_abi/tuner_v6.h"
#include "tests/support/child_process.h"

namespace {

using Table = float (*)[NCCL_NUM_PROTOCOLS];

struct Script {
  ncclResult_t init_result = ncclSuccess;
  ncclResult_t result = ncclSuccess;
  std::function<void(Table, int*)> answer = [](Table, int*) {};
  std::function<void(ncclTunerConstants_v5_t*)> edit = [](ncclTunerConstants_v5_t*) {};
  int inits = 0;
  int finalizes = 0;
  uint64_t comm_id = 0;
  size_t bytes = 0;
  int pipe_ops = 0;
  std::vector<int> all_pipe_ops;
  std::vector<size_t> all_bytes;
  ncclTunerConstants_v5_t constants{};
  std::function<ncclResult_t(size_t, int, size_t*)> chunk = [](size_t, int, size_t*) { return ncclSuccess; };
};
Script g_script;

ncclResult_t ScriptInit(void** ctx, uint64_t comm_id, size_t, size_t, ncclDebugLogger_t logger,
                        ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v5_t* constants) {
  ++g_script.inits;
  g_script.comm_id = comm_id;
  g_script.constants = *constants;
  logger(NCCL_LOG_INFO, NCCL_SUBSYS_TUNING, __FILE__, __LINE__, "scripted tuner %d", 42);
  g_script.edit(constants);
  *ctx = &g_script;
  return g_script.init_result;
}

ncclResult_t ScriptAnswer(void* ctx, ncclFunc_t, size_t bytes, int pipe_ops, float** table, int, int, int,
                          int* channels) {
  auto* script = static_cast<Script*>(ctx);
  script->bytes = bytes;
  script->pipe_ops = pipe_ops;
  script->all_pipe_ops.push_back(pipe_ops);
  script->all_bytes.push_back(bytes);
  script->answer(reinterpret_cast<Table>(table), channels);
  return script->result;
}

ncclResult_t ScriptChunk(void* ctx, ncclFunc_t, size_t bytes, int, int, int channels, size_t* chunk) {
  return static_cast<Script*>(ctx)->chunk(bytes, channels, chunk);
}

ncclResult_t ScriptFinalize(void* ctx) {
  ++static_cast<Script*>(ctx)->finalizes;
  return ncclSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ncclTuner_v6_t ncclTunerPlugin_v6;
const ncclTuner_v6_t ncclTunerPlugin_v6 = {"scripted", ScriptInit, ScriptAnswer, ScriptFinalize, ScriptChunk};

namespace dynamiccl::hostccl {
namespace {

using testing_support::InChildProcess;

constexpr CommunicatorInfo kInfo{.id = 0x1234, .rank = 0, .n_ranks = 4, .n_nodes = 2};
constexpr Fabric kFabric{.n_ranks = 4,
                         .n_nodes = 2,
                         .max_channels = 8,
                         .intra = {.latency_us = 1, .bandwidth_gbps = 4},
                         .inter = {.latency_us = 50, .bandwidth_gbps = 0.5}};

std::unique_ptr<Planner> Make(const PlannerOptions& options = {}) {
  auto planner = Planner::Create(kInfo, kFabric, options);
  if (!planner) ADD_FAILURE() << planner.error().message;
  return std::move(*planner);
}

CollectiveConfig ChosenFor(Planner& planner, Collective collective, uint64_t bytes) {
  const auto config = planner.Choose({.collective = collective, .bytes = bytes});
  if (!config) ADD_FAILURE() << config.error().message;
  return config.value_or(kLeaveNcclAlone);
}

void WithoutPlugin() {
  ::setenv("NCCL_TUNER_PLUGIN", "none", 1);
}
void WithScript() {
  ::setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
}

TEST(Planner, WithoutPluginTheChoiceIsTheArgminOfTheTable) {
  InChildProcess([] {
    WithoutPlugin();
    const auto planner = Make();
    for (int c = 0; c < kTunableCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (uint64_t bytes = 8; bytes <= (1u << 28); bytes *= 2) {
        const CostTable table =
            EstimateCosts(HostcclModel(kFabric), collective, bytes, 1, SupportedConfigs(collective));
        const CollectiveConfig expected = CheapestConfig(table);
        const CollectiveConfig chosen = ChosenFor(*planner, collective, bytes);
        ASSERT_EQ(chosen.algorithm, expected.algorithm) << bytes;
        ASSERT_EQ(chosen.protocol, expected.protocol) << bytes;
        ASSERT_GE(chosen.channels, 1);
        ASSERT_LE(chosen.channels, 8);
      }
    }
  });
}

TEST(Planner, OnlyWhatHostcclImplementsIsChosen) {
  InChildProcess([] {
    WithScript();
    g_script.answer = [](Table table, int*) {
      // The plugin prices every pair at zero, including impossible pairs.
      for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a) {
        for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) table[a][p] = 0;
      }
    };
    const auto planner = Make();
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllReduce, 1024).algorithm, Algorithm::kTree);
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 1024).algorithm, Algorithm::kRing);
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 1024).protocol, Protocol::kLL);
  });
}

TEST(Planner, WithoutLinksOneChannelIsEnoughUnlessMoreAreAskedFor) {
  InChildProcess([] {
    WithoutPlugin();
    const auto linked = Make();
    const auto unlinked = Make({.links = false});
    for (const auto collective : {Collective::kAllGather, Collective::kReduceScatter}) {
      EXPECT_EQ(ChosenFor(*linked, collective, 16 << 20).channels, 8);
      EXPECT_EQ(ChosenFor(*unlinked, collective, 16 << 20).channels, 1);
    }
    EXPECT_EQ(ChosenFor(*unlinked, Collective::kAllReduce, (4 << 20) - 4).channels, 1);
    EXPECT_EQ(ChosenFor(*unlinked, Collective::kAllReduce, 4 << 20).channels, 8);
    EXPECT_EQ(ChosenFor(*unlinked, Collective::kBroadcast, 16 << 20).channels, 8);
    const CollectiveConfig ring{Algorithm::kRing, Protocol::kSimple, 0};
    for (const auto& [planner, channels] : {std::pair(linked.get(), 8), std::pair(unlinked.get(), 1)})
      EXPECT_EQ(planner->UsualChannels({.collective = Collective::kAllGather, .bytes = 16 << 20}, ring),
                channels);
    const auto raised = Make({.min_ctas = 3, .links = false});
    EXPECT_EQ(ChosenFor(*raised, Collective::kAllGather, 16 << 20).channels, 3);
    EXPECT_EQ(ChosenFor(*raised, Collective::kAllGather, 64).channels, 1) << "up to 2.30 it raises no call";
  });
}

TEST(Planner, APluginIsObeyedAndItsChannelsReplaceNccls) {
  InChildProcess([] {
    WithScript();
    g_script.answer = [](Table table, int* channels) {
      EXPECT_EQ(*channels, 0);
      EXPECT_GT(table[1][1], 0) << "LL128 is legal where LL is";
      EXPECT_EQ(table[6][2], -1) << "PAT does not reduce to all";
      table[1][2] = 0;
      *channels = 3;
    };
    const auto planner = Make();
    const auto config = planner->Choose({.collective = Collective::kAllReduce, .bytes = 64, .n_pipe_ops = 2});
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(*config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 3}));
    EXPECT_EQ(g_script.bytes, 64u);
    EXPECT_EQ(g_script.pipe_ops, 2);
    EXPECT_EQ(g_script.comm_id, kInfo.id);
    EXPECT_EQ(FromTunerConstants(g_script.constants, 4, 2), HostcclModel(kFabric));
  });
}

TEST(Planner, ChannelsStayWithinWhatIsSetUp) {
  InChildProcess([] {
    WithScript();
    int wanted = 100;
    g_script.answer = [&wanted](Table table, int* channels) {
      table[1][2] = 0;
      *channels = wanted;
    };
    const auto planner = Make({.max_ctas = 4});
    EXPECT_EQ(planner->channels(), 4);
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 64).channels, 4);
    wanted = -7;
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 64).channels, 1);
  });
}

TEST(Planner, AMinusOneOfThePluginDisablesAnEntry) {
  InChildProcess([] {
    WithScript();
    g_script.answer = [](Table table, int*) {
      table[0][0] = table[0][1] = table[0][2] = table[1][0] = table[1][1] = table[5][2] = -1;
    };
    const auto planner = Make();
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllReduce, 64),
              (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 1}));
  });
}

TEST(Planner, AnErrorOfThePluginFailsTheCallWithItsCode) {
  InChildProcess([] {
    WithScript();
    g_script.result = ncclSystemError;
    const auto planner = Make();
    const auto config = planner->Choose({.collective = Collective::kAllReduce, .bytes = 64});
    ASSERT_FALSE(config.has_value());
    EXPECT_EQ(config.error().result, ncclSystemError);
    g_script.result = ncclInProgress;
    EXPECT_TRUE(planner->Choose({.collective = Collective::kAllReduce, .bytes = 64}).has_value());
  });
}

TEST(Planner, AnErrorOfInitFailsTheCommunicator) {
  InChildProcess([] {
    WithScript();
    g_script.init_result = ncclInternalError;
    const auto planner = Planner::Create(kInfo, kFabric, {});
    ASSERT_FALSE(planner.has_value());
    EXPECT_EQ(planner.error().result, ncclInternalError);
  });
}

// Another thread calls Finalize, as ncclCommAbort does, while the plugin answers a question.
TEST(Planner, FinalizeWaitsForAQuestionAndLaterOnesGoWithoutThePlugin) {
  InChildProcess([] {
    WithScript();
    const auto planner = Make();
    std::thread ends;
    g_script.answer = [&](Table, int*) {
      std::atomic<bool> begun{false};
      ends = std::thread([&] {
        begun = true;
        planner->Finalize();
      });
      while (!begun) std::this_thread::yield();
      for (int turn = 0; turn < 1000 && g_script.finalizes == 0; ++turn) std::this_thread::yield();
      EXPECT_EQ(g_script.finalizes, 0) << "the plugin is answering";
    };
    ChosenFor(*planner, Collective::kAllReduce, 1024);
    ends.join();
    EXPECT_EQ(g_script.finalizes, 1);
    ChosenFor(*planner, Collective::kAllReduce, 1024);
    EXPECT_EQ(g_script.all_bytes.size(), 1U);
  });
}

TEST(Planner, InitOncePerCommunicatorAndFinalizeOnce) {
  InChildProcess([] {
    WithScript();
    {
      const auto first = Make();
      const auto second = Make();
      EXPECT_EQ(g_script.inits, 2);
      first->Finalize();
      first->Finalize();
      EXPECT_EQ(g_script.finalizes, 1);
    }
    EXPECT_EQ(g_script.finalizes, 2);
  });
}

TEST(Planner, EditedConstantsChangeTheModel) {
  InChildProcess([] {
    WithScript();
    g_script.edit = [](ncclTunerConstants_v5_t* constants) {
      for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) constants->baseLatencies[0][p] = 1e6;
      constants->baseLatencies[1][0] = constants->baseLatencies[1][1] = 1e6;
      constants->baseLatencies[5][2] = 1e6;  // This is NVLSTree with Simple.
    };
    const auto planner = Make();
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllReduce, 64),
              (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 1}));
  });
}

TEST(Planner, PinsLeavingNothingAreAnInvalidUsageWithNcclsWords) {
  InChildProcess([] {
    WithoutPlugin();
    ::setenv("NCCL_ALGO", "Tree", 1);
    ::setenv("NCCL_PROTO", "LL", 1);
    const auto planner = Make();
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllReduce, 1 << 20).algorithm, Algorithm::kTree);
    const auto config = planner->Choose({.collective = Collective::kAllGather, .bytes = 64});
    ASSERT_FALSE(config.has_value());
    EXPECT_EQ(config.error().result, ncclInvalidUsage);
    EXPECT_THAT(config.error().message,
                testing::HasSubstr(
                    "no algorithm/protocol available for function AllGather with datatype ncclFloat32. "
                    "NCCL_ALGO was set to Tree. NCCL_PROTO was set to LL."));
    EXPECT_EQ(LastWarning(), config.error().message);
  });
}

TEST(Planner, AnUnknownTokenFailsTheCommunicator) {
  InChildProcess([] {
    WithoutPlugin();
    ::setenv("NCCL_ALGO", "rings", 1);
    const auto planner = Planner::Create(kInfo, kFabric, {});
    ASSERT_FALSE(planner.has_value());
    EXPECT_EQ(planner.error().message, "Unrecognized element token \"rings\" when parsing \"rings\"");
  });
}

TEST(Planner, PinnedEntriesReachThePluginAsImpossible) {
  InChildProcess([] {
    WithScript();
    ::setenv("NCCL_ALGO", "Ring", 1);
    g_script.answer = [](Table table, int*) {
      EXPECT_EQ(table[0][0], -1);
      EXPECT_EQ(table[0][2], -1);
      EXPECT_GT(table[1][0], 0);
    };
    const auto planner = Make();
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllReduce, 64).algorithm, Algorithm::kRing);
  });
}

constexpr PlannerOptions k232{.emulated = EmulatedRelease::k232};

TEST(Planner232, TheFirstQuestionIsAboutNothingAndItsAnswerIsIgnored) {
  InChildProcess([] {
    WithScript();
    g_script.answer = [](Table table, int* channels) {
      if (g_script.pipe_ops > 0) {
        EXPECT_GT(table[1][0], 0);
        return;
      }
      for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a) {
        for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) {
          EXPECT_EQ(table[a][p], -1);
          table[a][p] = 1e-3f;
        }
      }
      *channels = 1;
    };
    const auto planner = Make(k232);
    const CollectiveConfig config = ChosenFor(*planner, Collective::kAllGather, 1 << 20);
    EXPECT_EQ(config.algorithm, Algorithm::kRing);
    EXPECT_EQ(config.channels, 8);
    EXPECT_THAT(g_script.all_pipe_ops, testing::ElementsAre(0, 1));
    EXPECT_THAT(g_script.all_bytes, testing::ElementsAre((1 << 20) / 4, 1 << 20)) << "a rank's share first";
    ChosenFor(*planner, Collective::kReduceScatter, 256);
    EXPECT_EQ(g_script.all_bytes[2], 1024u);
    ChosenFor(*planner, Collective::kBroadcast, 256);
    EXPECT_EQ(g_script.all_pipe_ops.size(), 5u) << "Broadcast has no symmetric kernels";
  });
}

TEST(Planner232, ChannelsOfThePluginOnlyCap) {
  InChildProcess([] {
    WithScript();
    int wanted = 3;
    g_script.answer = [&wanted](Table table, int* channels) {
      if (g_script.pipe_ops == 0) return;
      table[1][2] = 0;
      *channels = wanted;
    };
    const auto planner = Make(k232);
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 1 << 24).channels, 3);
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 64).channels, 1) << "3 does not raise 1";
    wanted = -4;
    EXPECT_EQ(ChosenFor(*planner, Collective::kAllGather, 1 << 24).channels, 8);
    const auto raised = Make({.min_ctas = 2, .emulated = EmulatedRelease::k232});
    EXPECT_EQ(ChosenFor(*raised, Collective::kAllGather, 64).channels, 2) << "minCTAs raises";
    const auto older = Make({.min_ctas = 2});
    wanted = 0;
    EXPECT_EQ(ChosenFor(*older, Collective::kAllGather, 64).channels, 1) << "not up to 2.30";
  });
}

TEST(Planner232, TiesGoToTheHighestPairAndNegativesWin) {
  InChildProcess([] {
    WithScript();
    g_script.answer = [](Table table, int*) {
      if (g_script.pipe_ops > 0) table[0][0] = table[0][2] = table[1][0] = 0;
    };
    EXPECT_EQ(ChosenFor(*Make(k232), Collective::kAllReduce, 64).algorithm, Algorithm::kRing);
    EXPECT_EQ(ChosenFor(*Make(), Collective::kAllReduce, 64).algorithm, Algorithm::kTree);
    g_script.answer = [](Table table, int*) {
      if (g_script.pipe_ops > 0) table[0][2] = NCCL_ALGO_PROTO_IGNORE;
    };
    EXPECT_EQ(ChosenFor(*Make(k232), Collective::kAllReduce, 64).algorithm, Algorithm::kTree);
    EXPECT_EQ(ChosenFor(*Make(k232), Collective::kAllReduce, 64).protocol, Protocol::kSimple);
  });
}

TEST(Planner232, WhatIsImpossibleStaysSo) {
  InChildProcess([] {
    WithScript();
    g_script.answer = [](Table table, int*) {
      for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a) {
        for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) table[a][p] = -5;
      }
    };
    EXPECT_EQ(ChosenFor(*Make(k232), Collective::kBroadcast, 64).algorithm, Algorithm::kRing);
  });
}

TEST(Planner, ATunerMayChangeTheChunkSize) {
  InChildProcess([] {
    WithScript();
    g_script.chunk = [](size_t bytes, int channels, size_t* chunk) {
      EXPECT_EQ(bytes, 1000u) << "a channel's share";
      EXPECT_EQ(channels, 1);
      EXPECT_EQ(*chunk, 4096u);
      *chunk = 512;
      return ncclSuccess;
    };
    const auto planner = Make();
    const ChunkQuestion question{
        Collective::kAllReduce, 4000, {Algorithm::kRing, Protocol::kSimple, 4}, 4096};
    EXPECT_EQ(planner->ChunkBytes(question).value_or(0), 512u);
    g_script.chunk = [](size_t, int, size_t*) { return ncclInternalError; };
    EXPECT_EQ(planner->ChunkBytes(question).error().result, ncclInternalError);
  });
}

TEST(Planner, WithoutATunerTheChunkIsTheDefault) {
  InChildProcess([] {
    WithoutPlugin();
    const ChunkQuestion question{
        Collective::kAllReduce, 4000, {Algorithm::kRing, Protocol::kSimple, 4}, 4096};
    EXPECT_EQ(Make()->ChunkBytes(question).value_or(0), 4096u);
  });
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Planner, TheTuningLineIsNccls) {
  const std::string path = testing::TempDir() + "planner_tuning_line.txt";
  InChildProcess([&path] {
    WithScript();
    ::setenv("NCCL_DEBUG", "INFO", 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    ::setenv("NCCL_DEBUG_FILE", path.c_str(), 1);
    const auto planner = Make({.device = 2});
    planner->LogScheduled(Collective::kAllReduce, 1048576, {Algorithm::kRing, Protocol::kSimple, 4});
    planner->LogScheduled(Collective::kReduceScatter, 12, {Algorithm::kRing, Protocol::kLL, 1});
  });
  const std::string text = Contents(path);
  EXPECT_THAT(text, testing::ContainsRegex(
                        "[^:]+:[0-9]+:[0-9]+ \\[2\\] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING "
                        "proto SIMPLE channel[{]Lo[.][.]Hi[}]=[{]0[.][.]3[}]\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("ReduceScatter: 12 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"));
  EXPECT_THAT(text, testing::HasSubstr("NCCL INFO TUNER/Plugin: Using scripted (v6)\n"));
  EXPECT_THAT(text, testing::HasSubstr("NCCL INFO scripted tuner 42\n"));
}

TEST(Planner, TheBasicPluginIsFoundByPathAndByName) {
  const std::string folder = DYNAMICCL_TEST_PLUGIN_FOLDER;
  const std::string path = folder + "/libnccl-tuner-basic.so";
#ifdef __SANITIZE_ADDRESS__
  // The sanitizer's dlopen does not search the program's run path.
  const std::vector<std::string> names{path};
#else
  const std::vector<std::string> names{path, "libnccl-tuner-basic.so", "basic"};
#endif
  for (const std::string& name : names) {
    InChildProcess([&name] {
      ::setenv("NCCL_TUNER_PLUGIN", name.c_str(), 1);
      const auto planner = Make();
      for (uint64_t bytes = 8; bytes <= (1u << 26); bytes *= 8) {
        const CollectiveConfig config = ChosenFor(*planner, Collective::kAllReduce, bytes);
        EXPECT_EQ(config.algorithm, Algorithm::kRing) << name;
        EXPECT_EQ(config.protocol, Protocol::kSimple) << name;
      }
    });
  }
}

}  // namespace
}  // namespace dynamiccl::hostccl
