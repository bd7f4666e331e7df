// SPDX-License-Identifier: Apache-2.0
#include "src/transport/topology.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

constexpr const char* kGood = R"(version = 1
nodes = 2
ranks_per_node = [2, 1]
seed = 9
[link.intra]
latency_us = 1
bandwidth_gbps = 6.5
[link.inter]
rails = 2
latency_us = 30.5
bandwidth_gbps = 1
jitter_us = 3
[[link.override]]
from = 0
to = 1
latency_us = 60
bandwidth_gbps = 0.5
[[link.override]]
rail = 1
both = true
degrade = 0.25
[[event]]
at_s = 1.5
for_s = 0.25
from = 1
load = 0.5
burst_on_ms = 2
burst_off_ms = 4
[[event]]
at_call = 100
from = 0
to = 0
latency_us = 7
)";

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseTopology(text, "t.toml");
  return parsed ? "" : parsed.error().message;
}

TEST(TopologyFile, ReadsEveryKey) {
  const auto topology = ParseTopology(kGood, "t.toml");
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  EXPECT_EQ(topology->nodes, 2);
  EXPECT_EQ(topology->ranks_per_node, (std::vector<int>{2, 1}));
  EXPECT_EQ(topology->seed, 9);
  EXPECT_EQ(topology->rails, 2);
  EXPECT_EQ(topology->Between(0, 0, 0), (LinkShape{.latency_us = 1, .bandwidth_gbps = 6.5}));
  EXPECT_EQ(topology->Between(1, 0, 0), (LinkShape{30.5, 1, 3}));
  EXPECT_EQ(topology->Between(0, 1, 0), (LinkShape{60, 0.5, 3}));
  EXPECT_EQ(topology->Between(0, 1, 1)->degrade, 0.25);
  ASSERT_EQ(topology->events.size(), 2u);
  EXPECT_EQ(topology->events[0].begin, 1'500'000'000);
  EXPECT_EQ(topology->events[0].end, 1'750'000'000);
  EXPECT_EQ(topology->EventsOf(1, 0, 1).size(), 1u);
  EXPECT_EQ(topology->EventsOf(0, 0, 0).front().begin, 100);
  EXPECT_TRUE(topology->EventsOf(0, 1, 0).empty());
}

TEST(TopologyFile, AbsentLinksAreNotShaped) {
  const auto topology = ParseTopology("version = 1\nnodes = 3\n", "t.toml");
  ASSERT_TRUE(topology.has_value());
  EXPECT_FALSE(topology->Between(0, 1, 0).has_value());
}

TEST(TopologyFile, ComplaintsNameThePlace) {
  EXPECT_EQ(ErrorOf("version = 1\nnodes = 2\nspeed = 3\n"), "t.toml: line 3, column 1: unknown key 'speed'");
  EXPECT_EQ(ErrorOf("version = 1\nnodes = 0\n"),
            "t.toml: line 2, column 9: 'nodes' must be an integer from 1 to 1024");
  EXPECT_NE(ErrorOf("version = 2\nnodes = 2\n").find("line 1, column 11"), std::string::npos);
  EXPECT_NE(ErrorOf("version = 1\n").find("key 'nodes' is missing"), std::string::npos);
  EXPECT_NE(
      ErrorOf("version = 1\nnodes = 2\n[link.inter]\nlatency_us = -1\nbandwidth_gbps = 1\n").find("line 4"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf("version = 1\nnodes = 2\n[link.inter]\nlatency_us = 1\nbandwidth_gbps = 0\n").find("line 5"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf("version = 1\nnodes = 2\n[link.inter]\nlatency_us = nan\nbandwidth_gbps = 1\n").find("line 4"),
      std::string::npos);
  EXPECT_NE(ErrorOf("version = 1\nnodes = \n").find("line 2"), std::string::npos);
  EXPECT_NE(ErrorOf("version = 1\nnodes = 2\n[[link.override]]\nfrom = 0\nto = 2\n").find("'to'"),
            std::string::npos);
}

TEST(TopologyFile, ComplaintsOfWhatIsInALinkNameThePlace) {
  const std::string head = "version = 1\nnodes = 2\n[link.inter]\nlatency_us = 1\nbandwidth_gbps = 1\n";
  EXPECT_EQ(ErrorOf(head + "load = 1\n"), "t.toml: line 6, column 8: 'load' must be a number from 0 to 0.99");
  EXPECT_EQ(ErrorOf(head + "degrade = 0\n"),
            "t.toml: line 6, column 11: 'degrade' must be a number above 0 to 1");
  EXPECT_EQ(ErrorOf(head + "rails = 9\n"),
            "t.toml: line 6, column 9: 'rails' must be an integer from 1 to 8");
  EXPECT_EQ(ErrorOf(head + "jitter_us = \"x\"\n"), "t.toml: line 6, column 13: 'jitter_us' must be a number");
  EXPECT_EQ(ErrorOf(head + "[[link.override]]\nrail = 1\ndegrade = 0.5\n"),
            "t.toml: line 7, column 8: 'rail' must be an integer from 0 to 0");
  EXPECT_EQ(ErrorOf(head + "[[link.override]]\nfrom = 1\n"),
            "t.toml: line 6, column 1: no key says what the link is like");
  EXPECT_EQ(ErrorOf(head + "[[link.override]]\nfrom = 1\nto = 1\ndegrade = 0.5\n"),
            "t.toml: line 6, column 1: key 'latency_us' is missing");
  EXPECT_EQ(ErrorOf("version = 1\nnodes = 2\nranks_per_node = [1, 2, 3]\n"),
            "t.toml: line 3, column 18: 'ranks_per_node' has 3 numbers for 2 nodes");
  EXPECT_EQ(ErrorOf("version = 1\nnodes = 2\nranks_per_node = [1, 0]\n"),
            "t.toml: line 3, column 22: 'ranks_per_node' must hold integers from 1 to 1024");
}

TEST(TopologyFile, ComplaintsOfEventsNameThePlace) {
  const std::string head =
      "version = 1\nnodes = 2\n[link.inter]\nlatency_us = 1\nbandwidth_gbps = 1\n[[event]]\nload = 0.5\n";
  EXPECT_EQ(ErrorOf(head), "t.toml: line 6, column 1: an event has either 'at_s' or 'at_call'");
  EXPECT_EQ(ErrorOf(head + "at_s = 1\nat_call = 1\n"),
            "t.toml: line 6, column 1: an event has either 'at_s' or 'at_call'");
  EXPECT_EQ(ErrorOf(head + "at_s = -1\n"),
            "t.toml: line 8, column 8: 'at_s' must be seconds from 0 to 1000000");
  EXPECT_EQ(ErrorOf(head + "at_s = 1\nfor_s = 0\n"),
            "t.toml: line 9, column 9: 'for_s' must be seconds above 0 to 1000000");
  EXPECT_EQ(ErrorOf(head + "at_call = 1\nfor_s = 1\n"),
            "t.toml: line 9, column 9: 'for_s' belongs to 'at_s'");
  EXPECT_EQ(ErrorOf(head + "at_s = 1\nfor_calls = 1\n"),
            "t.toml: line 9, column 13: 'for_calls' belongs to 'at_call'");
  EXPECT_NE(ErrorOf(head + "at_call = 0\n").find("line 8"), std::string::npos);
  EXPECT_EQ(ErrorOf(head + "at_s = 1\nfrom = 0\nto = 0\n"),
            "t.toml: line 6, column 1: an event needs links that 'link' shapes");
}

class RandomTopologies {
 public:
  explicit RandomTopologies(uint64_t seed) : random_(seed) {}

  Topology Next() {
    Topology topology;
    topology.nodes = Up(1, 6);
    topology.seed = Up(0, 1 << 30);
    if (Maybe()) topology.ranks_per_node.resize(Maybe() ? 1 : static_cast<size_t>(topology.nodes));
    for (int& ranks : topology.ranks_per_node) ranks = Up(1, 9);
    topology.inter.emplace();
    Fill(3).ApplyTo(*topology.inter);
    topology.rails = Up(1, kMaxRails);
    if (Maybe()) Fill(3).ApplyTo(topology.intra.emplace());
    for (int i = Up(0, 3); i > 0; --i) topology.overrides.push_back({Target(topology), Fill(3)});
    for (int i = Up(0, 3); i > 0; --i) topology.events.push_back(Event(topology));
    return topology;
  }

 private:
  int Up(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool Maybe() { return Up(0, 1) == 1; }

  // Sets the fields whose bits are in `always`, and some others at random.
  LinkChange Fill(uint32_t always) {
    LinkChange change;
    for (size_t i = 0; i < kLinkFields; ++i) {
      const LinkField& field = LinkFieldTable()[i];
      if ((always >> i & 1) == 0 && Maybe()) continue;
      const double part = std::uniform_real_distribution<double>(1e-9, 1)(random_);
      change.Set(i, field.least + (field.most - field.least) * part);
    }
    return change;
  }

  LinkTarget Target(const Topology& topology) {
    LinkTarget target{Up(-1, topology.nodes - 1), Up(-1, topology.nodes - 1), Up(-1, topology.rails - 1)};
    target.both = Maybe();
    return target;
  }

  LinkEvent Event(const Topology& topology) {
    LinkEvent event{
        .by_call = Maybe(), .begin = Up(1, 1 << 30), .target = Target(topology), .change = Fill(1)};
    if (Maybe()) event.end = event.begin + Up(1, 1 << 30);
    if (!topology.intra && event.target.from == event.target.to) event.target.from = event.target.to = -1;
    return event;
  }

  std::mt19937_64 random_;
};

TEST(TopologyFile, ReadsBackWhatIsWritten) {
  RandomTopologies topologies(5);
  for (int round = 0; round < 500; ++round) {
    const Topology topology = topologies.Next();
    const std::string text = FormatTopology(topology);
    const auto parsed = ParseTopology(text, "t.toml");
    ASSERT_TRUE(parsed.has_value()) << "round " << round << ": " << parsed.error().message << "\n" << text;
    ASSERT_EQ(*parsed, topology) << "round " << round << "\n" << text;
  }
}

// A damaged file must give an error that names a place, or a topology within the ranges. It must not crash
// the parser.
TEST(TopologyFile, SurvivesDamage) {
  std::mt19937_64 random(6);
  RandomTopologies topologies(7);
  constexpr std::string_view kLetters = "0123456789.-=[]\"'\n #eabcxyz_\0\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? kGood : FormatTopology(topologies.Next());
    for (int i = 0; i < 1 + round % 4; ++i) {
      const size_t at = random() % text.size();
      const char letter = kLetters[random() % kLetters.size()];
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 9);
      else if (random() % 2 == 0)
        text.insert(at, 1, letter);
      else
        text[at] = letter;
    }
    const auto parsed = ParseTopology(text, "t.toml");
    if (parsed) {
      ASSERT_TRUE(ParseTopology(FormatTopology(*parsed), "again").has_value()) << text;
    } else {
      ASSERT_EQ(parsed.error().message.find("t.toml: line"), 0u) << parsed.error().message;
    }
  }
}

// A file that is cut anywhere must give an error or be a valid shorter file. It must not crash the parser.
TEST(TopologyFile, SurvivesTruncationAtEachLength) {
  const std::string text = kGood;
  for (size_t length = 0; length < text.size(); ++length) {
    const auto parsed = ParseTopology(text.substr(0, length), "t.toml");
    const std::string message = parsed ? "t.toml: line" : parsed.error().message;
    EXPECT_NE(message.find("t.toml: line"), std::string::npos) << length;
  }
}

TEST(Topology, SpreadsRanksEvenlyWithoutRanksPerNode) {
  Topology topology;
  topology.nodes = 2;
  EXPECT_EQ(*topology.NodesOfRanks(4), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(*topology.NodesOfRanks(3), (std::vector<int>{0, 0, 1}));
}

TEST(Topology, FillsNodesOfDifferentSizesInOrder) {
  Topology topology;
  topology.nodes = 3;
  topology.ranks_per_node = {3, 1, 2};
  EXPECT_EQ(*topology.NodesOfRanks(6), (std::vector<int>{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(*topology.NodesOfRanks(4), (std::vector<int>{0, 0, 0, 1}));
  EXPECT_EQ(topology.NodesOfRanks(7).error().message,
            "the topology has places for 6 ranks on 3 nodes, not 7");
}

TEST(Topology, RefusesMoreRanksThanPlaces) {
  Topology topology;
  topology.nodes = 2;
  topology.ranks_per_node = {2};
  EXPECT_TRUE(topology.NodesOfRanks(4).has_value());
  EXPECT_FALSE(topology.NodesOfRanks(5).has_value());
}

// Returns the nominal links, which a planner gets as well.
std::vector<LinkParameters> NominalLinks(const Topology& topology) {
  std::vector<LinkParameters> links;
  for (int from = 0; from < topology.nodes; ++from) {
    for (int to = 0; to < topology.nodes; ++to) {
      LinkParameters link = topology.Between(from, to, 0).value_or(LinkShape{}).nominal();
      link.bandwidth_gbps *= topology.RailsBetween(from, to);
      links.push_back(link);
    }
  }
  return links;
}

TEST(TopologyPresets, TheModelCannotTellTheOddOnesFromTheirPlainTwins) {
  const auto nominal = [](const char* name) { return NominalLinks(*LoadTopology(name)); };
  for (const char* odd : {"two-nodes-slow-rail", "two-nodes-steady-load", "two-nodes-bursty-load"}) {
    EXPECT_EQ(nominal(odd), nominal("two-nodes-infiniband")) << odd;
    EXPECT_NE(*LoadTopology(odd), *LoadTopology("two-nodes-infiniband")) << odd;
  }
  for (const char* odd : {"four-nodes-degraded-link", "four-nodes-slow-node"}) {
    EXPECT_EQ(nominal(odd), nominal("four-nodes-infiniband")) << odd;
    EXPECT_NE(*LoadTopology(odd), *LoadTopology("four-nodes-infiniband")) << odd;
  }
  EXPECT_EQ(LoadTopology("four-nodes-slow-node")->Between(1, 3, 0)->degrade, 0.25);
  EXPECT_EQ(LoadTopology("four-nodes-slow-node")->Between(1, 2, 0)->degrade, 1);
  EXPECT_EQ(*LoadTopology("asymmetric-nodes")->NodesOfRanks(4), (std::vector<int>{0, 0, 0, 1}));
}

TEST(TopologyPresets, AreFoundByNameAndReadBack) {
  for (const TopologyPreset& preset : TopologyPresets()) {
    EXPECT_EQ(*LoadTopology(preset.name), preset.topology);
    EXPECT_EQ(*ParseTopology(FormatTopology(preset.topology), preset.name), preset.topology);
  }
  EXPECT_TRUE(LoadTopology("").has_value());
  const auto missing = LoadTopology("no-such-preset");
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().hint.find("two-nodes-ethernet"), std::string::npos);
}

TEST(TopologyFile, CharactersOfOtherScriptsStandInQuotesAndCommentsAlone) {
  const std::string good = "version = 1 # Knoten: zw\xc3\xb6lf\nnodes = 2\n";
  EXPECT_TRUE(ParseTopology(good, "x"));
  const auto bad = ParseTopology("version = 1\n\xef\xb0\xb0i = 1\n", "x");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("x: line 2: byte 12 of the file"), std::string::npos)
      << bad.error().message;
  EXPECT_NE(bad.error().hint.find("a blank before the quote"), std::string::npos) << bad.error().hint;
}

// toml++ 3.3 takes a number and the quote behind it for one word, and a text in three quotes may end
// anywhere. A Greek letter after either is undefined behaviour in toml++, which a build with UBSan detects.
TEST(TopologyFile, CharactersOfOtherScriptsBehindNumbersAreRefusedBeforeTheLibrarySeesThem) {
  for (const std::string text :
       {"sou= 2'''\xce\xa7", "a=2\"\xce\xa7", "a=2[{\"\xc3\xa9[[\xce\xa7", "a=\"#\"\xce\xa7",
        "a = \"\"\"abc 'def\"\"\"\xce\xa7'", "a = \"\\\x01\xce\xa7\""}) {
    const auto refused = ParseTopology("version = 1\n" + text, "x");
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().message.find("x: line 2: byte "), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace dynamiccl
