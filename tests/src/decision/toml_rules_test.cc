// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <random>

#include "src/decision/decision_engine.h"
#include "src/decision/override_rules.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

constexpr const char* kExample = R"(version = 1

[[rule]]
collective = "AllReduce"
min_bytes = "64K"
max_bytes = 1048576
nodes = 2
ranks = 16
pipe_ops = 1
config = "Tree/LL128/4"

[[rule]]
collective = "reducescatter"
role = "gradient_reduce"
config = "ring/simple"

[[rule]]
collective = "reduce_scatter"
config = "nccl"
)";

std::string ErrorOf(const std::string& rule) {
  const auto rules = OverrideRules::Parse("version = 1\n[[rule]]\n" + rule, "r.toml");
  return rules ? "no error" : rules.error().message;
}

TEST(TomlRules, SayWhatTheCsvSaysAndMore) {
  const auto rules = OverrideRules::Parse(kExample, "r.toml");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->rules().size(), 3u);
  const OverrideRule& first = rules->rules()[0];
  EXPECT_EQ(first.line, 3);
  EXPECT_EQ(first.min_bytes, 65536u);
  EXPECT_EQ(first.max_bytes, 1048576u);
  EXPECT_EQ(first.config, (CollectiveConfig{Algorithm::kTree, Protocol::kLL128, 4}));
  EXPECT_EQ(rules->rules()[1].config.channels, 0);
  EXPECT_EQ(rules->rules()[1].max_bytes, UINT64_MAX);
  EXPECT_TRUE(rules->rules()[2].config.leaves_nccl_alone());
  const RuleSubject subject{Collective::kAllReduce, 65536, 2, 16, 1};
  EXPECT_EQ(rules->Match(subject), &rules->rules()[0]);
  for (const RuleSubject& other : {RuleSubject{Collective::kAllReduce, 65535, 2, 16, 1},
                                   RuleSubject{Collective::kAllReduce, 65536, 1, 16, 1},
                                   RuleSubject{Collective::kAllReduce, 65536, 2, 8, 1},
                                   RuleSubject{Collective::kAllReduce, 65536, 2, 16, 2}})
    EXPECT_EQ(rules->Match(other), nullptr);
}

TEST(TomlRules, ARecognisedRoleIsACondition) {
  const auto rules = OverrideRules::Parse(kExample, "r.toml");
  ASSERT_TRUE(rules);
  RuleSubject subject{Collective::kReduceScatter, 8, 1, 4, 1, Role::kGradientReduce};
  EXPECT_EQ(rules->Match(subject), &rules->rules()[1]);
  subject.role = Role::kUnknown;
  EXPECT_EQ(rules->Match(subject), &rules->rules()[2]);
}

constexpr const char* kByPhase = R"(version = 2

[[rule]]
collective = "allgather"
phase = "backward"
stage = 3
config = "ring/simple/2"

[[rule]]
collective = "allgather"
stage = "unknown"
config = "ring/ll"
)";

TEST(TomlRules, ARecognisedPhaseAndStageAreConditions) {
  auto rules = OverrideRules::Parse(kByPhase, "r.toml");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_TRUE(rules->rules()[0].needs_recognition());
  EXPECT_FALSE(rules->rules()[1].needs_recognition());
  EXPECT_TRUE(rules->any_needs_recognition());
  DecisionEngine engine({.n_ranks = 4, .rules = std::make_shared<OverrideRules>(std::move(*rules))});
  const ConfigMask all = NcclConfigs(Collective::kAllGather);
  DecisionKey key{Collective::kAllGather, 1 << 20};
  EXPECT_EQ(engine.Decide(key, all).config.protocol, Protocol::kLL) << "nothing is recognised";
  key.phase = Phase::kBackward;
  key.stage = ZeroStage::kStage3;
  EXPECT_EQ(engine.Decide(key, all).config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 2}));
  key.phase = Phase::kForward;
  EXPECT_EQ(engine.Decide(key, all).decided_by, DecidedBy::kNccl);
  key = {Collective::kAllGather, 1 << 20, 1, Role::kUnknown, 0, true, Phase::kBackward, ZeroStage::kStage2};
  EXPECT_EQ(engine.Decide(key, all).decided_by, DecidedBy::kNccl);
}

TEST(TomlRules, PhaseAndStageCameWithVersion2AndMemoryWithVersion3) {
  const auto error = [](int version, const std::string& condition) {
    const auto rules = OverrideRules::Parse("version = " + std::to_string(version) +
                                                "\n[[rule]]\ncollective = \"allreduce\"\n" + condition +
                                                "\nconfig = \"ring/simple\"\n",
                                            "r.toml");
    return rules ? "no error" : rules.error().message;
  };
  for (const char* good : {"phase = \"forward\"", "phase = \"other\"", "stage = 0", "stage = \"unknown\""})
    EXPECT_EQ(error(2, good), "no error") << good;
  EXPECT_EQ(error(1, "role = \"scalar\""), "no error");
  EXPECT_THAT(error(1, "phase = \"forward\""),
              HasSubstr("r.toml: line 4, column 9: 'phase' needs \"version = 2\""));
  EXPECT_THAT(error(1, "stage = 1"), HasSubstr("r.toml: line 4, column 9: 'stage' needs \"version = 2\""));
  EXPECT_THAT(error(2, "phase = \"Forward\""), HasSubstr("'Forward' is not one of unknown, forward"));
  EXPECT_THAT(error(2, "phase = 1"), HasSubstr("r.toml: line 4"));
  for (const char* bad : {"stage = 4", "stage = -1", "stage = \"three\"", "stage = 1.0", "stage = []"})
    EXPECT_THAT(error(2, bad), HasSubstr("r.toml: line 4, column 9: 'stage' is not one of 0, 1, 2, 3"))
        << bad;
  for (const char* good : {"memory = \"low\"", "memory = \"unknown\"", "phase = \"forward\""})
    EXPECT_EQ(error(3, good), "no error") << good;
  EXPECT_THAT(error(2, "memory = \"high\""),
              HasSubstr("r.toml: line 4, column 10: 'memory' needs \"version = 3\""));
  EXPECT_THAT(error(3, "memory = \"High\""), HasSubstr("'High' is not one of low, medium, high, unknown"));
  EXPECT_THAT(error(3, "memory = 2"), HasSubstr("r.toml: line 4"));
  EXPECT_THAT(error(4, ""), HasSubstr("'version'"));
}

TEST(TomlRules, AgreedMemoryPressureIsACondition) {
  auto rules = OverrideRules::Parse(
      "version = 3\n[[rule]]\ncollective = \"allgather\"\nmemory = \"high\"\nconfig = \"ring/ll/1\"\n",
      "r.toml");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_TRUE(rules->any_needs_memory());
  DecisionEngine engine({.n_ranks = 4, .rules = std::make_shared<OverrideRules>(std::move(*rules))});
  const ConfigMask all = NcclConfigs(Collective::kAllGather);
  DecisionKey key{Collective::kAllGather, 1 << 20};
  EXPECT_EQ(engine.Decide(key, all).decided_by, DecidedBy::kNccl);
  key.memory = MemoryPressure::kMedium;
  EXPECT_EQ(engine.Decide(key, all).decided_by, DecidedBy::kNccl);
  key.memory = MemoryPressure::kHigh;
  EXPECT_EQ(engine.Decide(key, all).config, (CollectiveConfig{Algorithm::kRing, Protocol::kLL, 1}));
}

// Any beginning of a file must be read, or refused with its place.
TEST(TomlRules, ACutFileIsReadOrRefused) {
  const std::string whole = kByPhase;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto rules = OverrideRules::Parse(whole.substr(0, bytes), "r.toml");
    EXPECT_TRUE(rules || rules.error().message.find("r.toml") == 0) << bytes;
  }
}

// If a rule has "nccl", the engine does not ask the policy.
TEST(TomlRules, NcclsChoiceCanBeTheRule) {
  auto rules = OverrideRules::Parse(kExample, "r.toml");
  ASSERT_TRUE(rules);
  int asked = 0;
  DecisionEngine engine({.n_nodes = 1,
                         .n_ranks = 4,
                         .rules = std::make_shared<OverrideRules>(std::move(*rules)),
                         .policy = [&](const TableKey&, const ConfigMask&) {
                           ++asked;
                           return CollectiveConfig{Algorithm::kRing, Protocol::kLL, 1};
                         }});
  DecisionKey key{Collective::kReduceScatter, 8, 1, Role::kUnknown};
  EXPECT_TRUE(engine.Decide(key, NcclConfigs(Collective::kReduceScatter)).config.leaves_nccl_alone());
  EXPECT_EQ(asked, 0);
  key.role = Role::kGradientReduce;
  const Decision decision = engine.Decide(key, NcclConfigs(Collective::kReduceScatter));
  EXPECT_EQ(decision.decided_by, DecidedBy::kRule);
  EXPECT_EQ(decision.config.protocol, Protocol::kSimple);
}

OverrideRules RulesOf(const std::string& rule) {
  auto rules = OverrideRules::Parse("version = 1\n[[rule]]\n" + rule, "r.toml");
  EXPECT_TRUE(rules) << rules.error().message;
  return rules ? *rules : OverrideRules();
}

TEST(TomlRules, AChunkSizeGoesWithTheRulesConfig) {
  const std::string rule = "collective = \"allreduce\"\nmax_bytes = \"1M\"\nconfig = \"ring/simple/2\"\n";
  EXPECT_FALSE(RulesOf(rule).any_chunk_bytes());
  const OverrideRules rules = RulesOf(rule + "chunk_bytes = \"64K\"\n");
  EXPECT_TRUE(rules.any_chunk_bytes());
  EXPECT_EQ(rules.rules().at(0).chunk_bytes, 65536u);
  DecisionEngine engine({.n_ranks = 4, .rules = std::make_shared<OverrideRules>(rules)});
  const DecisionKey key{Collective::kAllReduce, 1 << 20};
  const ConfigMask all = NcclConfigs(Collective::kAllReduce);
  EXPECT_EQ(engine.Decide(key, all).chunk_bytes, 65536u);
  EXPECT_EQ(engine.Decide({Collective::kAllReduce, (1 << 20) + 1}, all).chunk_bytes, 0u);
  // A config that NCCL does not offer is not used, and neither is its chunk size.
  ConfigMask without = all;
  without.reset(ConfigIndex(Algorithm::kRing, Protocol::kSimple));
  EXPECT_EQ(engine.Decide(key, without).chunk_bytes, 0u);
  EXPECT_EQ(engine.Decide(key, {}).chunk_bytes, 0u);
}

TEST(TomlRules, AChunkSizeIsWholeGrainsOfTheProtocol) {
  const auto error = [](const char* config, const char* bytes) {
    return ErrorOf(std::string("collective = \"allreduce\"\nconfig = \"") + config +
                   "\"\nchunk_bytes = " + bytes + "\n");
  };
  for (const char* bytes : {"512", "131072", "\"4M\"", "\"1G\""})
    EXPECT_EQ(error("ring/simple", bytes), "no error") << bytes;
  EXPECT_EQ(error("tree/ll128", "2048"), "no error");
  EXPECT_THAT(
      error("ring/simple", "0"),
      HasSubstr("r.toml: line 5, column 15: 'chunk_bytes' is 0: it must be a multiple of 512 from 512"));
  EXPECT_THAT(error("ring/simple", "1000"), HasSubstr("line 5, column 15: 'chunk_bytes' is 1000"));
  EXPECT_THAT(error("ring/simple", "\"2G\""), HasSubstr("'chunk_bytes' is 2147483648"));
  EXPECT_THAT(error("ring/ll128", "1536"), HasSubstr("a multiple of 512 from 2048"));
  EXPECT_THAT(error("ring/simple", "-512"), HasSubstr("'chunk_bytes' must be a number of bytes"));
  EXPECT_THAT(error("ring/simple", "true"), HasSubstr("'chunk_bytes' must be a number of bytes"));
  EXPECT_THAT(error("nccl", "4096"), HasSubstr("'chunk_bytes' needs a 'config' with an algorithm"));
}

TEST(TomlRules, AMistakeIsAnErrorWithLineAndColumn) {
  EXPECT_THAT(ErrorOf("collective = \"allreduce\"\n"),
              HasSubstr("r.toml: line 2, column 1: key 'config' is missing"));
  EXPECT_THAT(ErrorOf("config = \"nccl\"\n"), HasSubstr("key 'collective' is missing"));
  EXPECT_THAT(ErrorOf("collective = \"send\"\nconfig = \"nccl\"\n"),
              HasSubstr("line 3, column 14: 'send' is not one of"));
  EXPECT_THAT(ErrorOf("collective = 4\nconfig = \"nccl\"\n"), HasSubstr("'collective' must be a text"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"ring\"\n"),
              HasSubstr("line 4, column 10: 'ring' is no configuration"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"ring/ll/x\"\n"), HasSubstr("is no configuration"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"ring/ll/256\"\n"),
              HasSubstr("is no configuration"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"nccl\"\nmin_bytes = -1\n"),
              HasSubstr("number of bytes"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"nccl\"\nmax_bytes = \"4X\"\n"),
              HasSubstr("number of bytes"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"nccl\"\nmin_bytes = 9\nmax_bytes = 8\n"),
              HasSubstr("smaller"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"nccl\"\nranks = 0\n"),
              HasSubstr("'ranks' must be an integer from 1"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"nccl\"\nrole = \"gradients\"\n"),
              HasSubstr("gradient_reduce"));
  EXPECT_THAT(ErrorOf("collective = \"reduce\"\nconfig = \"nccl\"\nchannels = 2\n"),
              HasSubstr("line 5, column 1: unknown key 'channels'"));
  EXPECT_THAT(ErrorOf("collective = \n"), HasSubstr("r.toml: line 3"));
  EXPECT_FALSE(OverrideRules::Parse("", "r.toml"));
  EXPECT_FALSE(OverrideRules::Parse("version = 4\n", "r.toml"));
  for (const char* known : {"version = 1\n", "version = 3\n"})
    EXPECT_TRUE(OverrideRules::Parse(known, "r.toml"));
}

TEST(TomlRules, DamageNeverDoesMoreThanFail) {
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text = kExample;
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random() % 256);
      else
        text.erase(at, random() % 9);
    }
    (void)OverrideRules::Parse(text, "r.toml");
  }
}

Result<OverrideRules> CommunicatorRules(const std::string& rules) {
  return OverrideRules::Parse("version = 1\n" + rules, "r.toml");
}

TEST(TomlRules, FirstRuleThatMatchesACommunicatorWins) {
  const auto rules = CommunicatorRules(
      "[[communicator]]\nranks = 8\nnodes = 2\nmin_ctas = 16\n"
      "[[communicator]]\nranks = 8\nmin_ctas = 4\nmax_ctas = 4\n"
      "[[communicator]]\nmax_ctas = 32\n");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_TRUE(rules->any_about_communicators());
  EXPECT_EQ(rules->MatchCommunicator(8, 2)->ctas, (CtaBounds{16, 0}));
  EXPECT_EQ(rules->MatchCommunicator(8, 1)->ctas, (CtaBounds{4, 4}));
  EXPECT_EQ(rules->MatchCommunicator(8, 0)->ctas, (CtaBounds{4, 4})) << "nobody knows the nodes";
  EXPECT_EQ(rules->MatchCommunicator(2, 2)->ctas, (CtaBounds{0, 32}));
  EXPECT_EQ(rules->MatchCommunicator(2, 2)->line, 10);
  EXPECT_TRUE(rules->rules().empty());
  EXPECT_EQ(CommunicatorRules("[[communicator]]\nranks = 8\n")->MatchCommunicator(4, 1), nullptr);
  EXPECT_FALSE(CommunicatorRules("")->any_about_communicators());
}

TEST(TomlRules, BoundsOfACommunicatorAreThoseOfNccl) {
  const auto error = [](const std::string& rule) {
    const auto rules = CommunicatorRules("[[communicator]]\n" + rule);
    return rules ? "no error" : rules.error().message;
  };
  EXPECT_EQ(error("min_ctas = 1\nmax_ctas = 64\n"), "no error");
  EXPECT_THAT(error("min_ctas = 0\n"), HasSubstr("r.toml: line 3, column 12: 'min_ctas' must be an integer"));
  EXPECT_THAT(error("max_ctas = 65\n"), HasSubstr("'max_ctas' must be an integer from 1 to 64"));
  EXPECT_THAT(error("min_ctas = 8\nmax_ctas = 4\n"),
              HasSubstr("line 4, column 12: 'max_ctas' is smaller than 'min_ctas'"));
  EXPECT_THAT(error("config = \"ring/ll\"\n"), HasSubstr("unknown key 'config'"));
  EXPECT_THAT(error("ranks = 0\n"), HasSubstr("'ranks' must be an integer"));
}

}  // namespace
}  // namespace dynamiccl
