// SPDX-License-Identifier: Apache-2.0
// Tests the tuner as NCCL sees it. NCCL loads the object by name and asks it. The object must never fail, and
// must not touch anything that is not its own.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "src/base/whole_file.h"
#include "src/cost_model/tuner_constants.h"
#include "src/decision/saved_decisions.h"
#include "src/nccl_abi/tuner_v7.h"
#include "src/nccl_plugin/tuner_constants_rows.h"
#include "src/policy/policy_file.h"
#include "tests/support/child_process.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

using testing_support::InChildProcess;

std::string PolicyPath() {
  return std::filesystem::temp_directory_path() / ("tuner_door." + std::to_string(::getpid()));
}

// NCCL 2.28 uses version 5, 2.30 version 6 and 2.32.6 version 7. All versions begin with the same members.
template <typename Tuner>
const Tuner* Load(const char* symbol) {
  void* object = ::dlopen(DYNAMICCL_TEST_PRELOAD, RTLD_NOW | RTLD_LOCAL);
  return object == nullptr ? nullptr : static_cast<const Tuner*>(::dlsym(object, symbol));
}

ncclTunerConstants_v5_t Constants(int n_ranks) {
  CostModelInput input;
  input.constants = NcclHopperConstants(1);
  input.fabric = {n_ranks, 1, 8, {1, 10}, {5, 5}};
  return ToTunerConstants(input);
}

struct Table {
  explicit Table(float value, int n_algorithms = 7) : cells(static_cast<size_t>(n_algorithms * 3), value) {}
  float& at(int algorithm, int protocol) { return cells[static_cast<size_t>(algorithm * 3 + protocol)]; }
  int zeros() const { return static_cast<int>(std::count(cells.begin(), cells.end(), 0.0f)); }
  std::vector<float> cells;
};

template <typename Tuner>
struct Door {
  explicit Door(const char* symbol, ncclTunerConstants_v5_t constants = Constants(4))
      : tuner(Load<Tuner>(symbol)) {
    ncclNvlDomainInfo_v5_t domains{1, 4, 4};
    if constexpr (std::is_same_v<Tuner, ncclTuner_v7_t>) {
      ncclTunerConstants_v7_t all = WithRubinRow(constants);
      all.llMaxBws[4][0] = 1e-3;  // no decision depends on it
      EXPECT_EQ(tuner->init(&context, 17, 4, 1, nullptr, &domains, &all), ncclSuccess);
    } else {
      EXPECT_EQ(tuner->init(&context, 17, 4, 1, nullptr, &domains, &constants), ncclSuccess);
    }
  }
  ~Door() { EXPECT_EQ(tuner->finalize(context), ncclSuccess); }

  int Ask(Table& table, size_t bytes, int n_pipe_ops = 1) {
    int channels = 0;
    EXPECT_EQ(tuner->getCollInfo(context, ncclFuncAllReduce, bytes, n_pipe_ops,
                                 reinterpret_cast<float**>(table.cells.data()),
                                 static_cast<int>(table.cells.size() / 3), 3, 0, &channels),
              ncclSuccess);
    return channels;
  }

  const Tuner* tuner;
  void* context = nullptr;
};

// Sets a policy that prefers Ring/Simple everywhere. The digest in its variable shows that the user vouches
// for it.
void UsePolicy() {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple);
  const auto digest = WritePolicyFile(PolicyPath(), *policy);
  ASSERT_TRUE(digest) << digest.error().message;
  ::setenv("DYNAMICCL_POLICY", PolicyPath().c_str(), 1);
  ::setenv("DYNAMICCL_POLICY_SHA256", ToHex(*digest).c_str(), 1);
}

TEST(TunerDoor, WritesOneZeroAndChannelsOrNothing) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    Table table(50.0f);
    table.at(1, 0) = 1.0f;  // NCCL's own choice
    const int channels = door.Ask(table, 1024);
    EXPECT_EQ(table.at(1, 2), 0.0f);
    EXPECT_EQ(table.zeros(), 1);
    EXPECT_GE(channels, 1);
    EXPECT_LE(channels, 8);
    EXPECT_EQ(table.at(1, 0), 1.0f);
  });
}

// NCCL 2.31.2 sets its constants only after it has passed them to the tuner.
TEST(TunerDoor, ConstantsThatAreNotSetAreAsGoodAsNone) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6", ncclTunerConstants_v5_t{});
    Table table(50.0f);
    door.Ask(table, 1 << 20);
    EXPECT_EQ(table.at(1, 2), 0.0f);
    EXPECT_EQ(table.zeros(), 1);
  });
}

TEST(TunerDoor, Versions5To7AnswerTheSame) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v5_t> five("ncclTunerPlugin_v5");
    Door<ncclTuner_v6_t> six("ncclTunerPlugin_v6");
    Door<ncclTuner_v7_t> seven("ncclTunerPlugin_v7");
    int decided = 0;
    for (size_t bytes = 1; bytes < (1u << 26); bytes = bytes * 3 + 1) {
      Table a(50.0f), b(50.0f), c(50.0f);
      const int channels = five.Ask(a, bytes);
      EXPECT_EQ(six.Ask(b, bytes), channels);
      EXPECT_EQ(seven.Ask(c, bytes), channels);
      decided += a.zeros();
      EXPECT_EQ(a.cells, b.cells);
      EXPECT_EQ(a.cells, c.cells);
    }
    EXPECT_GT(decided, 0);
  });
}

TEST(TunerDoor, Version7TakesNoConstantsAndChangesNone) {
  InChildProcess([] {
    UsePolicy();
    const auto* tuner = Load<ncclTuner_v7_t>("ncclTunerPlugin_v7");
    ncclTunerConstants_v7_t constants = WithRubinRow(Constants(4));
    const ncclTunerConstants_v7_t given = constants;
    for (ncclTunerConstants_v7_t* told : {&constants, static_cast<ncclTunerConstants_v7_t*>(nullptr)}) {
      void* context = nullptr;
      ncclNvlDomainInfo_v5_t domains{1, 4, 4};
      ASSERT_EQ(tuner->init(&context, 17, 4, 1, nullptr, &domains, told), ncclSuccess);
      size_t chunk_bytes = 4096;
      EXPECT_EQ(tuner->getChunkSize(context, ncclFuncAllReduce, 1 << 20, 1, 2, 1, &chunk_bytes), ncclSuccess);
      EXPECT_EQ(chunk_bytes, 4096u) << "no rule sets it";
      EXPECT_EQ(tuner->finalize(context), ncclSuccess);
    }
    EXPECT_EQ(std::memcmp(&constants, &given, sizeof(given)), 0);
  });
}

TEST(TunerDoor, EntriesThatNcclRuledOutOrPricedOutStay) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    for (const float cost : {-1.0f, 600.0f, 1.7e38f}) {
      Table table(1.0f);
      table.at(1, 2) = cost;
      const Table before = table;
      EXPECT_EQ(door.Ask(table, 1024), 0);
      EXPECT_EQ(table.cells, before.cells);
    }
    Table nothing(-1.0f);
    EXPECT_EQ(door.Ask(nothing, 1024), 0);
    EXPECT_EQ(nothing.cells, Table(-1.0f).cells);
  });
}

TEST(TunerDoor, QuestionWithoutOperationsIsIgnored) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    Table table(50.0f);
    EXPECT_EQ(door.Ask(table, 1024, 0), 0);
    EXPECT_EQ(table.zeros(), 0);
  });
}

TEST(TunerDoor, TablesOfOtherShapesAreNotOverrun) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    for (const int n_algorithms : {1, 2, 6, 7, 9}) {
      Table table(50.0f, n_algorithms);
      door.Ask(table, 1024);
      EXPECT_LE(table.zeros(), 1) << n_algorithms;
    }
  });
}

TEST(TunerDoor, UnknownCollectivesAreLeftAlone) {
  InChildProcess([] {
    UsePolicy();
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    for (const int function : {-1, 5, 7, 8, 1000}) {
      Table table(50.0f);
      int channels = 0;
      EXPECT_EQ(door.tuner->getCollInfo(door.context, static_cast<ncclFunc_t>(function), 64, 1,
                                        reinterpret_cast<float**>(table.cells.data()), 7, 3, 0, &channels),
                ncclSuccess);
      EXPECT_EQ(table.zeros(), 0) << function;
    }
  });
}

TEST(TunerDoor, NamedByTheUserWithoutPolicyItTouchesNothing) {
  InChildProcess([] {
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    Table table(50.0f);
    EXPECT_EQ(door.Ask(table, 1024), 0);
    EXPECT_EQ(table.cells, Table(50.0f).cells);
    size_t chunk = 4096;
    EXPECT_EQ(door.tuner->getChunkSize(door.context, ncclFuncAllReduce, 64, 1, 2, 1, &chunk), ncclSuccess);
    EXPECT_EQ(chunk, 4096u);
  });
}

TEST(TunerDoor, PolicyThatIsNotTheVouchedOneIsNotUsed) {
  InChildProcess([] {
    UsePolicy();
    ::setenv("DYNAMICCL_POLICY_SHA256", std::string(64, '0').c_str(), 1);
    ::setenv("DYNAMICCL_LOG", "none", 1);
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    Table table(50.0f);
    EXPECT_EQ(door.Ask(table, 1024), 0);
    EXPECT_EQ(table.zeros(), 0);
  });
}

// Ranks that cannot attest may have other rules, so they must not choose chunks either.
TEST(TunerDoor, ChunkSizesOfRulesAreNotUsedWithoutAttestation) {
  const std::string path = PolicyPath() + ".toml";
  InChildProcess([&] {
    ASSERT_TRUE(ReplaceFile(path,
                            "version = 1\n[[rule]]\ncollective = \"allreduce\"\nconfig = \"ring/simple\"\n"
                            "chunk_bytes = 4096\n"));
    ::setenv("DYNAMICCL_RULES", path.c_str(), 1);
    ::setenv("DYNAMICCL_LOG", "none", 1);
    Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
    Table table(50.0f);
    EXPECT_EQ(door.Ask(table, 1024), 0);
    for (const int function : {-1, 4, 5, 1000}) {
      size_t chunk = 65536;
      EXPECT_EQ(
          door.tuner->getChunkSize(door.context, static_cast<ncclFunc_t>(function), 1024, 1, 2, 1, &chunk),
          ncclSuccess);
      EXPECT_EQ(chunk, 65536u) << function;
    }
  });
  ::unlink(path.c_str());
}

// Ranks that cannot attest may have other rules, and nothing would show it.
TEST(TunerDoor, RulesAndSavedDecisionsAreNotVouchedFor) {
  const std::string path = PolicyPath() + ".beside";
  for (const char* setting : {"DYNAMICCL_RULES", "DYNAMICCL_DECISIONS"}) {
    InChildProcess([&] {
      UsePolicy();
      const auto policy = ReadPolicyFile(PolicyPath());
      ASSERT_TRUE(policy);
      SavedDecisions saved(ToHex((*policy)->sha256));
      for (int shape = 0; shape < 64; ++shape)
        saved.Set(
            {1 + shape % 16, 1 + shape / 16, {Collective::kAllReduce, SizeClassOf(1024), Role::kUnknown}},
            {Algorithm::kRing, Protocol::kSimple, 2});
      const bool rules = std::string_view(setting) == "DYNAMICCL_RULES";
      ASSERT_TRUE(ReplaceFile(path, rules ? "allreduce,0,4096,ring,simple,2,-1,-1\n" : saved.Text()));
      ::setenv(setting, path.c_str(), 1);
      ::setenv("DYNAMICCL_LOG", "none", 1);
      Door<ncclTuner_v6_t> door("ncclTunerPlugin_v6");
      Table table(50.0f);
      EXPECT_EQ(door.Ask(table, 1024), 0);
      EXPECT_EQ(table.zeros(), 0);
    });
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace dynamiccl
