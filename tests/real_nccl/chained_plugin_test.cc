// SPDX-License-Identifier: Apache-2.0
// Chains a tuner that somebody else built (NVIDIA's example or aws-ofi-nccl's) behind DynamICCL. Calls that
// DynamICCL leaves alone must get the choices that this tuner makes without DynamICCL. The tests are skipped
// unless a variable names the tuner. The tuner's own environment is given as NAME=value;...
//   REAL_NCCL_CHAINED_TUNER=/path/libnccl-tuner-example.so
//   REAL_NCCL_CHAINED_ENVIRONMENT='NCCL_TUNER_CONFIG_FILE=/path/tuner.conf' ctest -R ChainedPlugin
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/real_nccl/real_nccl_run.h"
#include "tests/real_nccl/require_release.h"

namespace dynamiccl::real_nccl {
namespace {

const char* ChainedTuner() {
  return std::getenv("REAL_NCCL_CHAINED_TUNER");
}

Environment ChainedEnvironment() {
  Environment environment = {{"NCCL_TUNER_PLUGIN", ChainedTuner()}, {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  const char* more = std::getenv("REAL_NCCL_CHAINED_ENVIRONMENT");
  std::istringstream words(more == nullptr ? "" : more);
  for (std::string word; std::getline(words, word, ';');) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) environment[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return environment;
}

// Returns whether the release and the plugin have a common version of the tuner interface. A release uses the
// newest common version.
bool HasVersionFor(const NcclRelease& release) {
  void* plugin = ::dlopen(ChainedTuner(), RTLD_LAZY | RTLD_LOCAL);
  if (plugin == nullptr) return true;  // the run fails, and NCCL's log says why
  bool has = false;
  for (int version = 2; version <= release.tuner_version(); ++version)
    has |= ::dlsym(plugin, ("ncclTunerPlugin_v" + std::to_string(version)).c_str()) != nullptr;
  ::dlclose(plugin);
  return has;
}

class ChainedPlugin : public testing::TestWithParam<NcclRelease> {
 protected:
  void SetUp() override {
    if (ChainedTuner() == nullptr)
      GTEST_SKIP() << "no tuner to chain: set REAL_NCCL_CHAINED_TUNER (README.md)";
    ASSERT_TRUE(std::filesystem::exists(ChainedTuner())) << ChainedTuner() << " does not exist";
    REAL_NCCL_REQUIRE_RELEASE(GetParam());
    if (!HasVersionFor(GetParam()))
      GTEST_SKIP() << ChainedTuner() << " has no version of the tuner interface that this release knows";
    scratch_ = testing::TempDir() + "/chained_" + GetParam().text();
    std::filesystem::create_directories(scratch_);
    request_ = {.release = GetParam(),
                .scratch_folder = scratch_,
                .bytes = {1024, 65536, 1 << 20, 64 << 20, 1024, 65536, 1 << 20, 64 << 20},
                .environment = ChainedEnvironment()};
  }
  void TearDown() override {
    if (!scratch_.empty()) std::filesystem::remove_all(scratch_);
  }

  std::vector<TuningLine> Choices() {
    const RunOutcome outcome = RunDriver(request_);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_FALSE(outcome.choices.empty()) << outcome.output;
    return outcome.choices;
  }

  RunRequest request_;
  std::string scratch_;
};

TEST_P(ChainedPlugin, IsObeyedAsIfWeWereNotThere) {
  const std::vector<TuningLine> alone = Choices();
  request_.door = Door::kPreload;
  EXPECT_EQ(Choices(), alone) << "loaded without settings";
  request_.environment["DYNAMICCL_MODE"] = "observe";
  EXPECT_EQ(Choices(), alone) << "observing";
}

TEST_P(ChainedPlugin, DecidesWhatOurRulesLeave) {
  const std::vector<TuningLine> alone = Choices();
  std::ofstream(scratch_ + "/rules.csv") << "broadcast,0,18446744073709551615,ring,ll,1,-1,-1\n";
  request_.door = Door::kPreload;
  request_.environment["DYNAMICCL_RULES"] = scratch_ + "/rules.csv";
  const std::vector<TuningLine> chained = Choices();
  ASSERT_EQ(chained.size(), alone.size());
  // DynamICCL leaves the first call of each function and size to NCCL. The rules therefore apply in the
  // second half.
  for (size_t call = 0; call < chained.size(); ++call) {
    if (chained[call].function != "Broadcast") {
      EXPECT_EQ(chained[call], alone[call]);
    } else if (call >= chained.size() / 2) {
      EXPECT_EQ(chained[call].algorithm + chained[call].protocol, "RINGLL") << chained[call];
    }
  }
}

// The chained tuner must change some choice. Otherwise the tests above compare NCCL with itself.
TEST_P(ChainedPlugin, ChangesWhatNcclChooses) {
  const std::vector<TuningLine> with = Choices();
  request_.environment.erase("NCCL_TUNER_PLUGIN");
  EXPECT_NE(Choices(), with) << "configure it so that it chooses (REAL_NCCL_CHAINED_ENVIRONMENT)";
}

std::string NameOf(const testing::TestParamInfo<NcclRelease>& release) {
  std::string name = release.param.text();
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Releases, ChainedPlugin,
                         testing::Values(NcclRelease{2, 27, 7}, NcclRelease{2, 28, 9}, NcclRelease{2, 30, 7},
                                         NcclRelease{2, 32, 3}),
                         NameOf);

}  // namespace
}  // namespace dynamiccl::real_nccl
