// SPDX-License-Identifier: Apache-2.0
// Only the line that begins a communicator names it. The lines after it belong to the same communicator and
// rank as long as they come from the same thread.
#include "tools/canary/communicator_log.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <list>
#include <regex>
#include <string_view>
#include <tuple>

#include "tools/canary/cell_output.h"
#include "tools/canary/release_library.h"
#include "traces/import/log_line.h"
#include "traces/import/nccl_debug_lines.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

std::string PatternName(int pattern) {
  constexpr const char* kNames[] = {"", "Tree", "Tree", "Tree", "Ring", "NVLS", "CollNet Direct"};
  if (pattern > 0 && pattern < static_cast<int>(std::size(kNames))) return kNames[pattern];
  return fmt::format("pattern {}", pattern);
}

// The state of one logging thread: the communicator, rank and block of lines that it is writing.
struct LoggingThread {
  CommunicatorLog* communicator = nullptr;
  RankLog* rank = nullptr;
  LoggedGraph* graph = nullptr;
  int channels = 0;                      // number of channels of `graph`
  int next_channel = 0;                  // the channel whose line comes next
  std::set<std::string> graph_adapters;  // found in the lines of `graph` so far
  bool in_topology = false;
  std::map<std::string, int> links;     // links of the topology that is being logged
  std::vector<std::string> algorithms;  // columns of the part of the cost table that is being logged
  std::vector<std::string> protocols;   // the protocol of each column
  int table_row = -1;                   // index of the last row of that part in NCCL's order
};

// Counts the links in a line of the topology: "+ NVL[370.8] - NVS/0-0". PCI links are left out, because a
// machine may be described with more or fewer bridges and still be the same for the graph search.
void CountLinks(const std::string& text, std::map<std::string, int>* links) {
  static const std::regex kLink(R"(\+ ([A-Z0-9]+)(\[[0-9.]+\]) - )");
  std::smatch match;
  if (std::regex_search(text, match, kLink) && match[1] != "PCI") ++(*links)[match[1].str() + match[2].str()];
}

// Reads the lines of a node's topology, from "=== System : maxBw ..." to "=====...". Returns false for lines
// of other kinds.
bool ReadTopology(const std::string& text, LoggingThread& thread) {
  if (text.starts_with("=== System")) {
    thread.in_topology = true;
    thread.links.clear();
    return true;
  }
  if (!thread.in_topology) return false;
  if (text.starts_with("+ ") || text.starts_with("CPU/")) {
    CountLinks(text, &thread.links);
    return true;
  }
  thread.in_topology = false;
  if (text.starts_with("=====")) thread.rank->links = thread.links;
  return false;
}

// Reads the lines of a graph. Returns false for lines of other kinds.
bool ReadGraph(const std::string& text, LoggingThread& thread) {
  static const std::regex kSearch(
      R"(^Pattern (\d+), (crossNic \d+, nChannels (\d+), bw [0-9.]+/[0-9.]+, type \w+/\w+, sameChannels \d+)$)");
  std::smatch match;
  if (text.starts_with("Pattern ") && std::regex_search(text, match, kSearch)) {
    const std::string name = PatternName(std::stoi(match[1]));
    std::string key = name;
    for (int number = 2; thread.rank->graphs.contains(key); ++number)
      key = fmt::format("{} {}", name, number);
    thread.graph = &thread.rank->graphs[key];
    *thread.graph = {std::stoi(match[1]), match[2], {}};
    thread.channels = std::stoi(match[3]);
    thread.next_channel = 0;
    thread.graph_adapters.clear();
    return true;
  }
  if (thread.graph == nullptr || !text.starts_with(fmt::format("{} :", thread.next_channel))) return false;
  for (const std::string_view word : Words(text)) {
    if (word.starts_with("NET/")) thread.graph_adapters.emplace(word);
  }
  if (++thread.next_channel == thread.channels) thread.graph->adapters = thread.graph_adapters;
  return true;
}

// Reads "Channel 00/16 :  0  7  6  5  4  3  2  1". A line that lacks a rank, because it is cut, is ignored.
bool ReadRing(const std::string& text, CommunicatorLog& communicator) {
  static const std::regex kRing(R"(^Channel (\d+)/(\d+) :((?: +\d+)+)$)");
  std::smatch match;
  if (!text.starts_with("Channel ") || !std::regex_search(text, match, kRing)) return false;
  const std::string words = match[3];
  const std::vector<std::string_view> ranks = Words(words);
  const std::set<std::string_view> distinct(ranks.begin(), ranks.end());
  if (static_cast<int>(distinct.size()) == communicator.ranks && distinct.size() == ranks.size())
    communicator.rings[std::stoi(match[1])] = fmt::format("{}", fmt::join(ranks, " "));
  return true;
}

// Reads "Trees [0] 1/8/-1->0->-1 [1] -1/-1/-1->0->7".
bool ReadTrees(const std::string& text, RankLog& rank) {
  static const std::regex kTree(R"(\[\d+\] (-?\d+/-?\d+/-?\d+->\d+->-?\d+))");
  if (!text.starts_with("Trees [")) return false;
  rank.trees.clear();
  for (std::sregex_iterator tree(text.begin(), text.end(), kTree), end; tree != end; ++tree)
    rank.trees.push_back((*tree)[1]);
  return true;
}

std::vector<std::string> Columns(std::string_view text) {
  std::vector<std::string> columns;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    columns.emplace_back(Trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return columns;
}

// The rows of each part of the cost table, in NCCL's order.
constexpr std::array<std::string_view, 8> kTableRows = {"Algorithm",     "Protocol", "Max NThreads",
                                                        "Broadcast",     "Reduce",   "AllGather",
                                                        "ReduceScatter", "AllReduce"};

void ReadTimes(const std::string& row, const std::vector<std::string>& times, LoggingThread& thread) {
  constexpr size_t kEach = 3;  // number of protocols of each algorithm
  for (size_t at = 0; at < std::min(times.size(), thread.protocols.size()); ++at) {
    if (at / kEach >= thread.algorithms.size()) break;
    std::string value = times[at];
    std::erase(value, ' ');
    thread.communicator
        ->expected[fmt::format("{} {} {}", row, thread.algorithms[at / kEach], thread.protocols[at])] = value;
  }
}

// Reads the rows of the cost table. A row that does not end with its bar is cut and ignored. If the log lacks
// a heading of a part, the times of that part are ignored too. A row that does not follow the previous row in
// NCCL's order begins a new part.
//   "Algorithm   |    Tree     |    Ring    |"
//   "Protocol    |   LL | LL128 | Simple | LL | ..."
//   "AllReduce   | 25.2/ 16.6 | 48.5/124.8 | ..."
void ReadTable(const std::string& text, LoggingThread& thread) {
  if (!text.ends_with('|')) return;
  std::vector<std::string> columns = Columns(text);
  const std::string row = columns.front();
  columns.erase(columns.begin());
  const auto known = std::ranges::find(kTableRows, row);
  if (known == kTableRows.end()) return;
  const int index = static_cast<int>(known - kTableRows.begin());
  if (index <= thread.table_row) {
    thread.algorithms.clear();
    thread.protocols.clear();
  }
  thread.table_row = index;
  if (row == "Algorithm") {
    thread.algorithms = columns;
  } else if (row == "Protocol") {
    thread.protocols = columns;
  } else if (row != "Max NThreads") {
    ReadTimes(row, columns, thread);
  }
}

class LogReader {
 public:
  LoggedJob Read(const std::string& text) {
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      ReadLine(std::string_view(text).substr(begin, end - begin));
    for (auto& [id, communicator] : begun_) job_.communicators.push_back(std::move(communicator));
    if (job_.communicators.size() == 1) {
      job_.communicators.front().transports = std::move(transports_);
      job_.communicators.front().adapters = std::move(adapters_);
    }
    return std::move(job_);
  }

 private:
  void ReadLine(std::string_view line) {
    std::string changed;
    line = PlainLogLine(line, changed);
    const std::vector<DebugPiece> pieces = DebugPieces(line);
    if (!job_.release) job_.release = ReleaseInText(std::string(line));
    if (pieces.empty()) return;
    if (pieces.size() > 1 || pieces.front().cut) {
      ++job_.cut_lines;  // the last text may end with the rest of the first one
      return;
    }
    const DebugPiece& piece = pieces.front();
    const std::string text(Trimmed(piece.text));
    const auto [transport, adapter] = ConnectionOf(text);
    if (!transport.empty()) {
      transports_.insert(transport);
      if (!adapter.empty()) adapters_.insert(adapter);
    } else if (const auto variable = ParseDebugVariable(text)) {
      job_.variables[variable->name] = variable->value;
    } else {
      ReadOfThread(text, threads_[fmt::format("{}:{}:{}", piece.host, piece.process_id, piece.thread_id)]);
    }
  }

  void ReadOfThread(const std::string& text, LoggingThread& thread) {
    if (const auto line = ParseDebugCommunicator(text)) {
      Begin(*line, thread);
      return;
    }
    if (text.find(" coll channels") != std::string::npos) {
      ReadChannels(text, thread);
      return;
    }
    if (thread.communicator == nullptr) return;
    if (ReadTopology(text, thread) || ReadGraph(text, thread)) return;
    thread.graph = nullptr;
    if (ReadRing(text, *thread.communicator) || ReadTrees(text, *thread.rank)) return;
    ReadTable(text, thread);
  }

  // Reads a line that names a communicator, its size and the rank.
  void Begin(const DebugCommunicator& line, LoggingThread& thread) {
    if (line.id != 0 || thread.communicator == nullptr) {
      const auto key = std::pair(line.id, line.n_ranks);
      const auto known = std::ranges::find(begun_, key, &Begun::first);
      CommunicatorLog& communicator =
          known != begun_.end() ? known->second : begun_.emplace_back(key, CommunicatorLog{}).second;
      communicator.ranks = line.n_ranks;
      RankLog& rank = communicator.by_rank[line.rank];
      if (thread.rank != &rank) thread = {.communicator = &communicator, .rank = &rank};
    }
    if (line.n_nodes > 0) thread.communicator->nodes = line.n_nodes;
  }

  // Reads "16 coll channels, 16 collnet channels, 0 nvls channels, ...". A log that begins late has this line
  // without the one that begins the communicator.
  void ReadChannels(const std::string& text, LoggingThread& thread) {
    const auto channels = real_nccl::ParseChannels(text);
    if (!channels) return;
    if (thread.communicator == nullptr) {
      if (begun_.empty()) begun_.emplace_back(std::pair(uint64_t{0}, 0), CommunicatorLog{});
      if (begun_.front().second.ranks > 0) return;
      begun_.front().second.channels = *channels;
      return;
    }
    thread.communicator->channels = *channels;
    thread.rank->complete = true;
  }

  using Begun = std::pair<std::pair<uint64_t, int>, CommunicatorLog>;  // by commId and number of ranks
  LoggedJob job_;
  std::set<std::string> transports_, adapters_;
  std::list<Begun> begun_;  // a list, because threads refer to its elements
  std::map<std::string, LoggingThread> threads_;
};

}  // namespace

const CommunicatorLog* LoggedJob::Find(int ranks, int nodes) const {
  const CommunicatorLog* found = nullptr;
  const auto fit = [&](const CommunicatorLog& one) {
    return std::tuple(one.ranks == ranks, one.ranks == ranks && one.nodes == nodes, one.ranks);
  };
  for (const CommunicatorLog& one : communicators) {
    if (found == nullptr || fit(one) > fit(*found)) found = &one;
  }
  return found;
}

LoggedJob ReadNcclLog(const std::string& text) {
  return LogReader().Read(text);
}

}  // namespace dynamiccl
