// SPDX-License-Identifier: Apache-2.0
// Lines are split into words; a parser expects its keys in the order in which NCCL prints them. Every number
// must end where its word ends, so that part of a number in a cut line is not read as a number.
#include "traces/import/nccl_debug_lines.h"

#include <algorithm>
#include <cctype>

#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kMark = " NCCL INFO ";
// These words begin the place and the text in a record of the log plugin.
constexpr std::string_view kPluginRank = " rank=";
constexpr std::string_view kPluginMessage = " msg=\"";
// This text separates a call's name from its numbers.
constexpr std::string_view kCallMark = ": opCount ";

// Returns the word that ends at `end`, and moves `end` to the blank before the word.
std::string_view WordBefore(std::string_view line, size_t& end) {
  while (end > 0 && line[end - 1] == ' ') --end;
  const size_t stop = end;
  while (end > 0 && line[end - 1] != ' ') --end;
  return line.substr(end, stop - end);
}

// The host's name at the end of `text`. A progress bar, which ends without a newline, may stand before it.
std::string_view HostAtEnd(std::string_view text) {
  constexpr std::string_view kHostLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  const size_t before = text.find_last_not_of(kHostLetters);
  return before == std::string_view::npos || before + 1 == text.size() ? text : text.substr(before + 1);
}

// Parses "<host>:<pid>:<tid>".
std::optional<DebugPiece> PieceOf(std::string_view place, int32_t device) {
  const size_t thread = place.rfind(':');
  if (thread == std::string_view::npos || thread == 0) return std::nullopt;
  const size_t process = place.rfind(':', thread - 1);
  if (process == std::string_view::npos) return std::nullopt;
  const auto process_id = NumberIn<int64_t>(place.substr(process + 1, thread - process - 1));
  const auto thread_id = NumberIn<int64_t>(place.substr(thread + 1));
  if (!process_id || !thread_id) return std::nullopt;
  return DebugPiece{HostAtEnd(place.substr(0, process)), *process_id, *thread_id, device, ""};
}

// Parses a record of NCCL's log plugin. Only records of errors, which hold no call, have more fields between
// "rank=" and "msg=". Of a record that is cut, the text ends where a call's numbers begin, so that it counts
// as cut.
std::optional<DebugPiece> PluginRecord(std::string_view line) {
  const size_t mark = line.find(kPluginMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view record = line.substr(mark);
  const size_t rank = record.find(kPluginRank);
  const size_t message = record.find(kPluginMessage);
  if (rank == std::string_view::npos || message == std::string_view::npos || message < rank)
    return std::nullopt;
  const size_t place = rank + kPluginRank.size();
  auto piece = PieceOf(record.substr(place, message - place), -1);
  if (!piece) return std::nullopt;
  piece->text = record.substr(message + kPluginMessage.size());
  if (piece->text.ends_with('"'))
    piece->text.remove_suffix(1);
  else if (const size_t numbers = piece->text.find(kCallMark); numbers != std::string_view::npos)
    piece->text = piece->text.substr(0, numbers + kCallMark.size());
  return piece;
}

// Parses "<host>:<pid>:<tid> [<device>]" that ends at `mark`. Sets `begin` to its first byte.
std::optional<DebugPiece> PrefixBefore(std::string_view line, size_t mark, size_t& begin) {
  begin = mark;
  const std::string_view device = WordBefore(line, begin);
  const std::string_view place = WordBefore(line, begin);
  if (device.size() < 3 || device.front() != '[' || device.back() != ']') return std::nullopt;
  const auto number = NumberIn<int32_t>(device.substr(1, device.size() - 2));
  return number ? PieceOf(place, *number) : std::nullopt;
}

// Iterates over "key value key value".
class KeyedWords {
 public:
  explicit KeyedWords(std::string_view text) : words_(Words(text)) {}

  std::string_view Word() { return at_ < words_.size() ? words_[at_++] : ""; }
  // Returns the value if the next word is `key`; else returns an empty text and does not advance.
  std::string_view Value(std::string_view key) {
    if (at_ + 1 >= words_.size() || words_[at_] != key) return "";
    at_ += 2;
    return words_[at_ - 1];
  }
  template <typename T>
  bool Number(std::string_view key, T& value) {
    const auto number = NumberIn<T>(Value(key));
    if (number) value = *number;
    return number.has_value();
  }
  // The value after the first occurrence of `key` anywhere.
  std::string_view Find(std::string_view key) const {
    const auto place = std::find(words_.begin(), words_.end(), key);
    return place == words_.end() || place + 1 == words_.end() ? "" : *(place + 1);
  }

 private:
  std::vector<std::string_view> words_;
  size_t at_ = 0;
};

std::optional<uint64_t> Hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// True if the text is a pointer as NCCL prints it.
bool IsPointer(std::string_view text) {
  return text == "(nil)" || (text.starts_with("0x") && Hexadecimal(text));
}

// The collective of a function's name. AllToAllv is RCCL's.
std::optional<Collective> FunctionOf(std::string_view name) {
  return name == "AllToAllv" ? Collective::kAllToAll : ParseCollective(name);
}

// Skips the buffers of a call.
bool TakeBuffers(KeyedWords& words) {
  if (!IsPointer(words.Value("sendbuff")) || !IsPointer(words.Value("recvbuff"))) return false;
  const std::string_view accumulator = words.Value("acc");
  return accumulator.empty() || IsPointer(accumulator);
}

// The number in a word such as "[nranks=8]".
std::optional<int32_t> BracketedRanks(std::string_view word) {
  constexpr std::string_view kStart = "[nranks=";
  if (!word.starts_with(kStart) || !word.ends_with(']')) return std::nullopt;
  return NumberIn<int32_t>(word.substr(kStart.size(), word.size() - kStart.size() - 1));
}

// NCCL names algorithms and protocols, except before 2.24, where it prints their numbers.
std::optional<Algorithm> AlgorithmOf(std::string_view text) {
  const auto number = NumberIn<int8_t>(text);
  if (!number) return ParseAlgorithm(text);
  if (*number < 0 || *number >= kAlgorithms) return std::nullopt;
  return static_cast<Algorithm>(*number);
}

std::optional<Protocol> ProtocolOf(std::string_view text) {
  const auto number = NumberIn<int8_t>(text);
  if (!number) return ParseProtocol(text);
  if (*number < 0 || *number >= kProtocols) return std::nullopt;
  return static_cast<Protocol>(*number);
}

// Returns 4 for "channel{Lo..Hi}={0..3}". A line that is cut could give another number, so the closing brace
// must be there.
std::optional<uint8_t> ChannelsOf(std::string_view text) {
  constexpr std::string_view kStart = "channel{Lo..Hi}={";
  const size_t dots = text.rfind("..");
  if (!text.starts_with(kStart) || !text.ends_with('}') || dots < kStart.size()) return std::nullopt;
  const auto low = NumberIn<int32_t>(text.substr(kStart.size(), dots - kStart.size()));
  const auto high = NumberIn<int32_t>(text.substr(dots + 2, text.size() - dots - 3));
  if (!low || !high || *low < 0 || *high < *low || *high - *low > 254) return std::nullopt;
  return static_cast<uint8_t>(*high - *low + 1);
}

// A line about NCCL_NET_PLUGIN that does not contain the variable's name. The same words after TUNER/Plugin
// do not prove that NCCL_TUNER_PLUGIN was set: NCCL also writes them about libraries that it tries by itself.
constexpr std::string_view kNetPluginRead = "NET/Plugin: Plugin name set by env to ";

bool IsVariableName(std::string_view name) {
  return name.starts_with("NCCL_") && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return std::isupper(letter) != 0 || std::isdigit(letter) != 0 || letter == '_';
         });
}

// Removes the full stop that NCCL writes behind a number.
std::string LoggedValue(std::string_view text) {
  text = Trimmed(text);
  if (text.ends_with('.') && NumberIn<int64_t>(text.substr(0, text.size() - 1))) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

std::vector<DebugPiece> DebugPieces(std::string_view line) {
  if (const auto record = PluginRecord(line)) return {*record};
  std::vector<DebugPiece> pieces;
  for (size_t mark = 0; (mark = line.find(kMark, mark)) != std::string_view::npos; mark += kMark.size()) {
    size_t begin = 0;
    auto piece = PrefixBefore(line, mark, begin);
    if (!pieces.empty() && !pieces.back().cut) {
      std::string_view& text = pieces.back().text;
      const auto start = static_cast<size_t>(text.data() - line.data());
      text = line.substr(start, begin > start ? begin - start : 0);
      pieces.back().cut = true;
    }
    if (!piece) continue;
    piece->text = line.substr(mark + kMark.size());
    pieces.push_back(*piece);
  }
  return pieces;
}

bool BeginsDebugCall(std::string_view text) {
  const size_t colon = text.find(kCallMark);
  return colon != std::string_view::npos && FunctionOf(text.substr(0, colon));
}

std::optional<DebugCall> ParseDebugCall(std::string_view text) {
  if (!BeginsDebugCall(text)) return std::nullopt;
  const size_t colon = text.find(':');
  DebugCall call;
  call.collective = *FunctionOf(text.substr(0, colon));
  KeyedWords words(text.substr(colon + 1));
  const auto operation = Hexadecimal(words.Value("opCount"));
  if (!operation || !TakeBuffers(words)) return std::nullopt;
  call.operation = *operation;
  const bool numbers = words.Number("count", call.count) && words.Number("datatype", call.data_type) &&
                       words.Number("op", call.op) && words.Number("root", call.root);
  call.communicator = words.Value("comm");
  const auto ranks = BracketedRanks(words.Word());
  call.stream = words.Value("stream");
  if (!numbers || !ranks || *ranks < 1 || !IsPointer(call.communicator) || !IsPointer(call.stream))
    return std::nullopt;
  call.n_ranks = *ranks;
  if (int32_t task = 0; words.Number("task", task)) words.Number("globalrank", call.job_rank);
  return call;
}

std::optional<DebugChoice> ParseDebugChoice(std::string_view text) {
  const size_t bytes_at = text.find(" Bytes -> Algo ");
  if (bytes_at == std::string_view::npos) return std::nullopt;
  DebugChoice choice;
  std::string_view size = text.substr(0, bytes_at);
  if (const size_t colon = size.find(": "); colon != std::string_view::npos) {
    choice.collective = FunctionOf(size.substr(0, colon));
    if (!choice.collective) return std::nullopt;
    size.remove_prefix(colon + 2);
  }
  KeyedWords words(text.substr(bytes_at + 10));
  const auto bytes = NumberIn<uint64_t>(Trimmed(size));
  const auto algorithm = AlgorithmOf(words.Value("Algo"));
  const auto protocol = ProtocolOf(words.Value("proto"));
  if (!bytes || !algorithm || !protocol) return std::nullopt;
  choice.bytes = *bytes;
  choice.config = {*algorithm, *protocol, 0};
  if (!words.Value("time").empty()) return choice;
  const auto channels = ChannelsOf(words.Word());
  if (!channels) return std::nullopt;
  choice.config.channels = *channels;
  return choice;
}

bool IsChoiceWithoutTuner(std::string_view text) {
  const size_t open = text.find(" [");
  return open != std::string_view::npos && FunctionOf(text.substr(0, open)) &&
         text.find("]: ", open) != std::string_view::npos &&
         text.find(" Bytes -> ", open) != std::string_view::npos;
}

std::optional<DebugCommunicator> ParseDebugCommunicator(std::string_view text) {
  if (text.find("comm") == std::string_view::npos) return std::nullopt;
  const KeyedWords words(text);
  const auto rank = NumberIn<int32_t>(words.Find("rank"));
  const bool nodes_line = text.starts_with("comm 0x");
  const auto ranks = NumberIn<int32_t>(words.Find(nodes_line ? "nRanks" : "nranks"));
  DebugCommunicator communicator{.communicator = words.Find("comm")};
  if (!rank || !ranks || *rank < 0 || *ranks <= *rank || !IsPointer(communicator.communicator))
    return std::nullopt;
  communicator.rank = *rank;
  communicator.n_ranks = *ranks;
  if (nodes_line) {
    communicator.n_nodes = NumberIn<int32_t>(words.Find("nNodes")).value_or(0);
    return communicator;
  }
  const auto id = Hexadecimal(words.Find("commId"));
  if (!id || text.find(" - Init ") == std::string_view::npos) return std::nullopt;
  communicator.id = *id;
  return communicator;
}

std::optional<DebugVariable> ParseDebugVariable(std::string_view text) {
  if (text.starts_with(kNetPluginRead))
    return DebugVariable{"NCCL_NET_PLUGIN", LoggedValue(text.substr(kNetPluginRead.size()))};
  if (text.starts_with("TUNER/Plugin: NCCL_TUNER_PLUGIN set to ")) text.remove_prefix(14);
  for (const std::string_view middle : {" set by environment to ", " set to "}) {
    const size_t at = text.find(middle);
    if (at == std::string_view::npos || !IsVariableName(text.substr(0, at))) continue;
    return DebugVariable{std::string(text.substr(0, at)), LoggedValue(text.substr(at + middle.size()))};
  }
  return std::nullopt;
}

}  // namespace dynamiccl
