// SPDX-License-Identifier: Apache-2.0
// Judges settings about the network: which network, adapters and interface NCCL uses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kUsing = "Using network ";
constexpr std::string_view kLoadedPlugin = "NET/Plugin: Loaded net plugin ";

// Removes the version from a name such as "Instant (v8)".
std::string NameBefore(const std::string& text) {
  return text.substr(0, text.find(" (v"));
}

// Returns the lines that name the networks of communicators: "Using network IB".
std::vector<const LogLine*> Networks(const NcclLog& log) {
  std::vector<const LogLine*> found;
  for (const LogLine& line : log.notes) {
    if (line.text.starts_with(kUsing)) found.push_back(&line);
  }
  return found;
}

std::string NetworkOf(const LogLine& line) {
  return std::string(Trimmed(std::string_view(line.text).substr(kUsing.size())));
}

// A list of names that a setting allows or excludes: "eth", "^docker,lo", "=mlx5_0:1". Without '=' each name
// is a prefix.
struct NameFilter {
  bool excludes = false;
  bool exact = false;
  std::vector<std::string> names;  // without ports

  bool Admits(std::string_view name) const {
    const bool listed = std::any_of(names.begin(), names.end(), [&](const std::string& one) {
      return exact ? name == one : name.starts_with(one);
    });
    return listed != excludes;
  }
};

NameFilter ParseFilter(std::string_view text) {
  NameFilter filter;
  for (; text.starts_with('^') || text.starts_with('='); text.remove_prefix(1))
    (text.front() == '^' ? filter.excludes : filter.exact) = true;
  for (const std::string_view word : CommaFields(text)) {
    if (!word.empty()) filter.names.emplace_back(word.substr(0, word.find(':')));
  }
  return filter;
}

// Returns the adapters in a line such as "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB
// eth0:10.0.0.1<0>". The name of a fused adapter is several names joined by '+'.
std::vector<std::string> NamesIn(std::string_view text) {
  std::vector<std::string> names;
  text = text.substr(0, text.find(';'));
  for (const std::string_view word : Words(text)) {
    const size_t bracket = word.find(']');
    if (!word.starts_with('[') || bracket + 1 >= word.size() || !NumberIn<int>(word.substr(1, bracket - 1)))
      continue;
    std::string_view adapters = word.substr(bracket + 1);
    adapters = adapters.substr(0, adapters.find_first_of(":/"));
    for (size_t plus; (plus = adapters.find('+')) != std::string_view::npos; adapters.remove_prefix(plus + 1))
      names.emplace_back(adapters.substr(0, plus));
    names.emplace_back(adapters);
  }
  return names;
}

// Returns the line that says why NCCL found no InfiniBand; null without one.
const LogLine* WhyNoInfiniBand(const NcclLog& log) {
  const LogLine* const none = log.Find("NET/IB : No device found");
  return none != nullptr ? none : log.Find("Failed to open libibverbs");
}

// Returns a refutation of an NCCL_IB_* setting if the job uses only sockets. Only NCCL's InfiniBand network
// and plugins derived from it ("IBext") read these settings. Returns nothing if another network is in use.
std::optional<Receipt> JudgeOtherNetwork(const Judged& judged) {
  const auto networks = Networks(judged.log());
  if (networks.empty()) return std::nullopt;
  for (const LogLine* const line : networks) {
    if (NetworkOf(*line) != "Socket") return std::nullopt;
  }
  const LogLine* const why = WhyNoInfiniBand(judged.log());
  return NotInEffect(
      judged, "network Socket",
      why == nullptr ? "InfiniBand is not used" : fmt::format("InfiniBand is not used ({})", why->text),
      why == nullptr ? networks.front() : why);
}

// Returns the interfaces that NCCL uses for its bootstrap, with the lines that name them: "Bootstrap: Using
// eth0:10.0.0.1<0>", or a list "[0]eth0:...".
std::vector<std::pair<std::string, const LogLine*>> Interfaces(const NcclLog& log) {
  std::vector<std::pair<std::string, const LogLine*>> found;
  for (const LogLine& line : log.notes) {
    const bool bootstrap =
        line.text.starts_with("Bootstrap : Using") || line.text.starts_with("Bootstrap: Using");
    if (!bootstrap && !line.text.starts_with("NET/Socket : Using [")) continue;
    for (std::string& name : NamesIn(line.text)) found.emplace_back(std::move(name), &line);
    const std::vector<std::string_view> words = Words(line.text);
    if (bootstrap && !words.back().starts_with('[') && words.back().find(':') != std::string_view::npos)
      found.emplace_back(words.back().substr(0, words.back().find(':')), &line);
  }
  return found;
}

// Returns a refutation if a name of the list also allows an adapter that the user hardly meant: mlx5_1 is a
// prefix of mlx5_10.
std::optional<Receipt> JudgePrefix(const Judged& judged, const NameFilter& filter,
                                   const std::vector<std::string>& used, const LogLine& line) {
  if (filter.exact || filter.excludes) return std::nullopt;
  for (const std::string& name : used) {
    const bool named = std::any_of(filter.names.begin(), filter.names.end(), [&](const std::string& one) {
      // "mlx5" and "eth" mean all adapters of a family. A name that ends in a digit means one adapter.
      return name == one || (name.starts_with(one) && !one.empty() && (one.back() < '0' || one.back() > '9'));
    });
    if (named) continue;
    const bool digit = std::any_of(filter.names.begin(), filter.names.end(), [&](const std::string& one) {
      return name.starts_with(one) && name.size() > one.size() && name[one.size()] >= '0' &&
             name[one.size()] <= '9';
    });
    if (digit)
      return NotInEffect(judged, fmt::format("{} is used too", name),
                         "a name without '=' is a prefix; '=' before the list takes exact names", &line);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Receipt> CheckNet(const Judged& judged) {
  for (const LogLine* const line : Networks(judged.log())) {
    const std::string network = NetworkOf(*line);
    if (!EqualIgnoringCase(network, judged.asked.value))
      return NotInEffect(judged, "network " + network, "the communicator uses another network", line);
    return InEffect(judged, "network " + network, *line);
  }
  const LogLine* line = judged.log().Find("Failed to initialize any NET plugin");
  if (line == nullptr) line = judged.log().Find(fmt::format("network {} not found", judged.asked.value));
  if (line != nullptr)
    return NotInEffect(judged, "the communicator was not made", "the network is not to be had", line);
  return std::nullopt;
}

std::optional<Receipt> CheckNetPlugin(const Judged& judged) {
  const NcclLog& log = judged.log();
  const auto networks = Networks(log);
  const std::string network = networks.empty() ? "" : NetworkOf(*networks.front());
  const std::string effect = networks.empty() ? "" : "network " + network;
  const bool own = network == "Socket" || network == "IB";
  const LogLine* const loaded = log.Find(kLoadedPlugin);
  if (judged.asked.value == "none") {
    if (own) return InEffect(judged, effect, *networks.front());
    if (loaded == nullptr) return std::nullopt;
    return NotInEffect(judged, effect, "a plugin was loaded", loaded);
  }
  if (const LogLine* const line = log.Find("NET/Plugin: Could not find", judged.asked.value))
    return NotInEffect(judged, effect, "the plugin was not found in the library path", line);
  if (networks.empty() || loaded == nullptr || !judged.was_read()) return std::nullopt;
  const std::string name = NameBefore(loaded->text.substr(kLoadedPlugin.size()));
  if (network == name) return InEffect(judged, effect, *loaded);
  if (!own) return std::nullopt;
  return NotInEffect(judged, effect,
                     fmt::format("the plugin was loaded as {}, but another network is used", name),
                     networks.front());
}

std::optional<Receipt> CheckIbDisable(const Judged& judged) {
  const auto networks = Networks(judged.log());
  if (networks.empty()) return std::nullopt;
  const std::string network = NetworkOf(*networks.front());
  const bool infiniband = network.starts_with("IB");
  const LogLine* const looked = WhyNoInfiniBand(judged.log());
  if (judged.asked.value == "1") {
    if (infiniband) return NotInEffect(judged, "network " + network, "InfiniBand is used", networks.front());
    return judged.was_read() || (network == "Socket" && looked == nullptr)
               ? std::optional(InEffect(judged, "network " + network, *networks.front()))
               : std::nullopt;
  }
  if (judged.asked.value != "0") return std::nullopt;
  if (infiniband) return InEffect(judged, "network " + network, *networks.front());
  // A line about a failed search shows that NCCL searched for InfiniBand, so InfiniBand is not disabled.
  if (looked == nullptr) return std::nullopt;
  return InEffect(judged,
                  fmt::format("InfiniBand is not disabled, and not used all the same: network {}", network),
                  *looked);
}

std::optional<Receipt> CheckIbHca(const Judged& judged) {
  if (auto receipt = JudgeOtherNetwork(judged)) return receipt;
  const LogLine* const line = judged.log().Find("NET/IB : Using");
  if (line == nullptr) return std::nullopt;
  const NameFilter filter = ParseFilter(judged.asked.value);
  const std::vector<std::string> used = NamesIn(line->text);
  for (const std::string& name : used) {
    if (!filter.Admits(name))
      return NotInEffect(judged, fmt::format("{} is used", name), "the list does not admit this adapter",
                         line);
  }
  // The check does not compare ports, so a value with ports is left to other checks.
  if (used.empty() || judged.asked.value.find(':') != std::string::npos) return std::nullopt;
  if (auto receipt = JudgePrefix(judged, filter, used, *line)) return receipt;
  if (!judged.was_read()) return std::nullopt;
  return InEffect(judged, fmt::format("adapters {}", fmt::join(used, " ")), *line);
}

std::optional<Receipt> CheckOtherIb(const Judged& judged) {
  return JudgeOtherNetwork(judged);
}

// Plugins derived from NCCL's sockets, such as FastSocket, read these settings too.
std::optional<Receipt> CheckSocketThreads(const Judged& judged) {
  const auto networks = Networks(judged.log());
  const auto is_of_sockets = [](const LogLine* line) {
    return NetworkOf(*line).find("Socket") != std::string::npos;
  };
  if (networks.empty() || judged.was_read() || std::any_of(networks.begin(), networks.end(), is_of_sockets))
    return std::nullopt;
  return NotInEffect(judged, "network " + NetworkOf(*networks.front()), "NCCL's sockets carry no data",
                     networks.front());
}

std::optional<Receipt> CheckSocketInterface(const Judged& judged) {
  for (const std::string_view words : {"no socket interface found", "No usable listening interface found"}) {
    if (const LogLine* const line = judged.log().Find(words))
      return NotInEffect(judged, "no interface", "no interface of the host fits", line);
  }
  const NameFilter filter = ParseFilter(judged.asked.value);
  const auto interfaces = Interfaces(judged.log());
  for (const auto& [name, line] : interfaces) {
    if (!filter.Admits(name))
      return NotInEffect(judged, fmt::format("{} is used", name), "the list does not admit it", line);
  }
  if (interfaces.empty() || !judged.was_read()) return std::nullopt;
  return InEffect(judged, fmt::format("interface {}", interfaces.front().first), *interfaces.front().second);
}

}  // namespace dynamiccl
