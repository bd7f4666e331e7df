// SPDX-License-Identifier: Apache-2.0
// Tuner plugins of versions 2 to 7. Each is a small object of its own (scripted_tuner_v2.cc ...) whose
// functions forward to this program. The planner finds it by file name, by suffix, or inside a network
// plugin.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "src/hostccl/hostccl_constants.h"
#include "src/hostccl/planner.h"
#include "src/hostccl/plugin_host/tuner_plugin.h"
#include "tests/src/hostccl/scripted_tuner.h"
#include "tests/support/child_process.h"

namespace {

struct Script {
  ncclResult_t init_result = ncclSuccess;
  ncclResult_t result = ncclSuccess;
  int algorithm = 1;  // Ring
  int protocol = 2;   // Simple
  int channels = 3;
  int inits = 0;
  int finalizes = 0;
  size_t n_ranks = 0;
  size_t n_nodes = 0;
  ScriptedQuestion question{};
  std::vector<double> bandwidths;  // The llMaxBws of one node, by row.
  double new_bandwidth = 0;        // If it is not 0, it replaces all of these.
};
Script g_script;

}  // namespace

extern "C" {
__attribute__((visibility("default"))) ncclResult_t scriptedInit(size_t n_ranks, size_t n_nodes,
                                                                 ncclDebugLogger_t logger, void** context) {
  ++g_script.inits;
  g_script.n_ranks = n_ranks;
  g_script.n_nodes = n_nodes;
  logger(NCCL_LOG_INFO, NCCL_SUBSYS_TUNING, __FILE__, __LINE__, "scripted init");
  *context = &g_script;
  return g_script.init_result;
}

__attribute__((visibility("default"))) ncclResult_t scriptedPrice(void* context,
                                                                  const ScriptedQuestion* question,
                                                                  float** table, int* channels) {
  auto* script = static_cast<Script*>(context);
  script->question = *question;
  auto* cells = reinterpret_cast<float(*)[NCCL_NUM_PROTOCOLS]>(table);
  cells[script->algorithm][script->protocol] = 0;
  *channels = script->channels;
  return script->result;
}

__attribute__((visibility("default"))) ncclResult_t scriptedName(void* context,
                                                                 const ScriptedQuestion* question,
                                                                 int* algorithm, int* protocol,
                                                                 int* channels) {
  auto* script = static_cast<Script*>(context);
  EXPECT_EQ(*algorithm, NCCL_ALGO_UNDEF);
  EXPECT_EQ(*protocol, NCCL_PROTO_UNDEF);
  script->question = *question;
  *algorithm = script->algorithm;
  *protocol = script->protocol;
  *channels = script->channels;
  return script->result;
}

__attribute__((visibility("default"))) void scriptedBandwidths(double (*rows)[3], int n_rows) {
  for (int row = 0; row < n_rows; ++row) {
    g_script.bandwidths.push_back(rows[row][0]);
    if (g_script.new_bandwidth > 0) rows[row][0] = g_script.new_bandwidth;
  }
}

__attribute__((visibility("default"))) ncclResult_t scriptedFinalize(void* context) {
  ++static_cast<Script*>(context)->finalizes;
  return ncclSuccess;
}
}

namespace dynamiccl::hostccl {
namespace {

using testing_support::InChildProcess;

constexpr CommunicatorInfo kInfo{.id = 7, .rank = 0, .n_ranks = 4, .n_nodes = 2};
constexpr Fabric kFabric{.n_ranks = 4,
                         .n_nodes = 2,
                         .max_channels = 8,
                         .intra = {.latency_us = 1, .bandwidth_gbps = 4},
                         .inter = {.latency_us = 50, .bandwidth_gbps = 0.5}};
constexpr PlannedBatch kBatch{.collective = Collective::kAllReduce, .bytes = 4096, .n_pipe_ops = 2};

std::string PluginFile(int version) {
  return fmt::format("{}/libnccl-tuner-scripted_v{}.so", DYNAMICCL_TEST_PLUGIN_FOLDER, version);
}

std::unique_ptr<Planner> Make(const PlannerOptions& options = {}) {
  auto planner = Planner::Create(kInfo, kFabric, options);
  if (!planner) ADD_FAILURE() << planner.error().message;
  return std::move(*planner);
}

class TunerVersion : public ::testing::TestWithParam<int> {
 protected:
  static void UsePlugin() { ::setenv("NCCL_TUNER_PLUGIN", PluginFile(GetParam()).c_str(), 1); }
};

// NCCL 2.22 and 2.23 look only for versions 3 and 2.
TEST_P(TunerVersion, IsFoundByAReleaseThatKnowsIt) {
  InChildProcess([] {
    UsePlugin();
    const auto planner = Make({.emulated = EmulatedRelease::k222});
    ASSERT_TRUE(planner->Choose(kBatch).has_value());
    EXPECT_EQ(g_script.inits, GetParam() <= 3 ? 1 : 0);
    planner->Finalize();
  });
}

TEST_P(TunerVersion, IsAskedAndObeyed) {
  InChildProcess([] {
    UsePlugin();
    const auto planner = Make();
    EXPECT_EQ(AcquireTuner(kNewestTunerVersion)->version, GetParam());
    const auto config = planner->Choose(kBatch);
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(*config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 3}));
    EXPECT_EQ(g_script.question.function, ncclFuncAllReduce);
    EXPECT_EQ(g_script.question.bytes, 4096u);
    EXPECT_EQ(g_script.question.pipe_ops, 2);
    EXPECT_EQ(g_script.n_ranks, 4u);
    EXPECT_EQ(g_script.n_nodes, 2u);
    planner->Finalize();
    EXPECT_EQ(g_script.inits, 1);
    EXPECT_EQ(g_script.finalizes, 1);
  });
}

TEST_P(TunerVersion, ItsErrorsAreTheCallsErrors) {
  InChildProcess([] {
    UsePlugin();
    const auto planner = Make();
    g_script.result = ncclSystemError;
    const auto config = planner->Choose(kBatch);
    ASSERT_FALSE(config.has_value());
    EXPECT_EQ(config.error().result, ncclSystemError);
    g_script.init_result = ncclInternalError;
    EXPECT_FALSE(Planner::Create(kInfo, kFabric, {}).has_value());
  });
}

TEST_P(TunerVersion, SeesWhetherBuffersAreRegisteredFromVersion4) {
  InChildProcess([] {
    UsePlugin();
    const auto planner = Make();
    PlannedBatch batch = kBatch;
    ASSERT_TRUE(planner->Choose(batch).has_value());
    EXPECT_EQ(g_script.question.registered, GetParam() >= 4 ? 0 : -1);
    batch.registered = true;
    ASSERT_TRUE(planner->Choose(batch).has_value());
    EXPECT_EQ(g_script.question.registered, GetParam() >= 4 ? 1 : -1);
  });
}

INSTANTIATE_TEST_SUITE_P(All, TunerVersion, ::testing::Values(2, 3, 4, 5, 6, 7),
                         [](const auto& version) { return fmt::format("v{}", version.param); });

// Returns constants whose rows of llMaxBws begin with 1, 2, 3, 4 and, for Rubin, 5.
ncclTunerConstants_v7_t NumberedRows() {
  ncclTunerConstants_v7_t constants{};
  for (int row = 0; row < 5; ++row) constants.llMaxBws[row][0] = row + 1;
  constants.perChMaxNVLSTreeBws[4][2] = 99;
  return constants;
}

void LogNothing(ncclDebugLogLevel, unsigned long, const char*, int, const char*, ...) {}

ncclResult_t InitPlugin(int version, ncclTunerConstants_v7_t* constants) {
  static DynamicLibrary library;  // The library stays loaded while its functions are in use.
  auto opened = DynamicLibrary::Open(PluginFile(version), RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(opened);
  library = std::move(*opened);
  TunerInterface tuner;
  EXPECT_TRUE(FindTuner(library, tuner));
  EXPECT_EQ(tuner.version, version);
  void* context = nullptr;
  return tuner.functions.init(&context, 1, 4, 2, LogNothing, nullptr, constants);
}

TEST(TunerVersion7, SeesAndChangesTheRowOfRubin) {
  InChildProcess([] {
    ncclTunerConstants_v7_t constants = NumberedRows();
    g_script.new_bandwidth = 7;
    EXPECT_EQ(InitPlugin(7, &constants), ncclSuccess);
    EXPECT_EQ(g_script.bandwidths, (std::vector<double>{1, 2, 3, 4, 5}));
    for (const auto& row : constants.llMaxBws) EXPECT_EQ(row[0], 7);
  });
}

TEST(TunerVersion6, ChangesAllRowsButThatOfRubin) {
  InChildProcess([] {
    ncclTunerConstants_v7_t constants = NumberedRows();
    g_script.new_bandwidth = 7;
    EXPECT_EQ(InitPlugin(6, &constants), ncclSuccess);
    EXPECT_EQ(g_script.bandwidths, (std::vector<double>{1, 2, 3, 4}));
    for (int row = 0; row < 4; ++row) EXPECT_EQ(constants.llMaxBws[row][0], 7);
    EXPECT_EQ(constants.llMaxBws[4][0], 5);
    EXPECT_EQ(constants.perChMaxNVLSTreeBws[4][2], 99);
  });
}

TEST(TunerVersion6, OneThatFailsChangesNothing) {
  InChildProcess([] {
    ncclTunerConstants_v7_t constants = NumberedRows();
    g_script.new_bandwidth = 7;
    g_script.init_result = ncclInternalError;
    EXPECT_EQ(InitPlugin(6, &constants), ncclInternalError);
    EXPECT_EQ(constants.llMaxBws[0][0], 1);
    g_script.init_result = ncclSuccess;
    EXPECT_EQ(InitPlugin(6, nullptr), ncclSuccess) << "constants may be null";
  });
}

TEST(TunerVersion2, AnImpossiblePairIsNotTaken) {
  InChildProcess([] {
    ::setenv("NCCL_TUNER_PLUGIN", PluginFile(2).c_str(), 1);
    const auto planner = Make();
    g_script.algorithm = 2;  // CollNetDirect
    const auto config = planner->Choose(kBatch);
    ASSERT_TRUE(config.has_value());
    EXPECT_NE(config->algorithm, Algorithm::kCollnetDirect);
    EXPECT_EQ(config->channels, 3) << "its channels count all the same, as in NCCL";
    EXPECT_EQ(g_script.question.collnet, 0);
  });
}

TEST(TunerVersion2, WithoutAnOpinionNcclDecides) {
  InChildProcess([] {
    ::setenv("NCCL_TUNER_PLUGIN", PluginFile(2).c_str(), 1);
    const auto planner = Make();
    g_script.algorithm = g_script.protocol = -1;
    g_script.channels = 0;
    const CostTable table = EstimateCosts(HostcclModel(kFabric), kBatch.collective, kBatch.bytes,
                                          kBatch.n_pipe_ops, SupportedConfigs(kBatch.collective));
    const auto config = planner->Choose(kBatch);
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->algorithm, CheapestConfig(table).algorithm);
    EXPECT_EQ(config->protocol, CheapestConfig(table).protocol);
  });
}

TEST(TunerSearch, NamesFollowNcclsRules) {
  const auto names = [](const char* value) { return PluginCandidates(kTunerPlugin, value); };
  using List = std::vector<std::string>;
  EXPECT_EQ(names(nullptr), List{"libnccl-tuner.so"});
  EXPECT_EQ(names(""), List{"libnccl-tuner.so"});
  EXPECT_EQ(names("NONE"), List{});
  EXPECT_EQ(names("STATIC_PLUGIN"), List{""});
  EXPECT_EQ(names("stat"), List{""}) << "any prefix, in any case";
  EXPECT_EQ(names("/opt/x.so"), List{"/opt/x.so"});
  EXPECT_EQ(names("./x"), List{"./x"});
  EXPECT_EQ(names("libx.so"), List{"libx.so"});
  EXPECT_EQ(names("libx"), (List{"libx", "libnccl-tuner-libx.so"}));
  EXPECT_EQ(names("x.so"), (List{"x.so", "libnccl-tuner-x.so.so"}));
  EXPECT_EQ(names("mine"), (List{"mine", "libnccl-tuner-mine.so"}));
}

TEST(TunerSearch, NetworkPluginsMayBeAList) {
  using List = std::vector<std::string>;
  EXPECT_EQ(NetPluginCandidates(nullptr), List{"libnccl-net.so"});
  EXPECT_EQ(NetPluginCandidates("none"), List{});
  EXPECT_EQ(NetPluginCandidates("ofi,libother.so"), (List{"ofi", "libnccl-net-ofi.so", "libother.so"}));
}

TEST(TunerSearch, ATunerInsideTheNetworkPluginIsUsed) {
  InChildProcess([] {
    ::unsetenv("NCCL_TUNER_PLUGIN");
    ::setenv("NCCL_NET_PLUGIN", PluginFile(4).c_str(), 1);
    const auto planner = Make();
    ASSERT_NE(AcquireTuner(kNewestTunerVersion), nullptr);
    EXPECT_EQ(AcquireTuner(kNewestTunerVersion)->version, 4);
    EXPECT_EQ(planner->Choose(kBatch)->channels, 3);
  });
}

TEST(TunerSearch, NoneMeansNoTunerInTheNetworkPluginEither) {
  InChildProcess([] {
    ::setenv("NCCL_TUNER_PLUGIN", "none", 1);
    ::setenv("NCCL_NET_PLUGIN", PluginFile(4).c_str(), 1);
    Make();
    EXPECT_EQ(AcquireTuner(kNewestTunerVersion), nullptr);
    EXPECT_EQ(g_script.inits, 0);
  });
}

TEST(TunerSearch, AFirstLoadThatFailsIsFinal) {
  InChildProcess([] {
    ::setenv("NCCL_TUNER_PLUGIN", "/nowhere/libnccl-tuner-none-such.so", 1);
    Make();
    ::setenv("NCCL_TUNER_PLUGIN", PluginFile(3).c_str(), 1);
    Make();
    EXPECT_EQ(g_script.inits, 0);
  });
}

}  // namespace
}  // namespace dynamiccl::hostccl
