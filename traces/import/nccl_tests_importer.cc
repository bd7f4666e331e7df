// SPDX-License-Identifier: Apache-2.0
// Output of nccl-tests and rccl-tests of all generations as measurement rows:
//     #  Rank  0 Group  0 Pid 1 on  a device  0 [0x01] NVIDIA H100
//     #       size         count      type   redop    root     time   algbw   busbw #wrong     time  ...
//          1048576        262144     float     sum      -1    93.20   11.25   19.69      0    92.80  ...
// Columns are found by the names in the table's own header line. Where a row has fewer values than columns
// (old alltoall leaves redop blank), a value belongs to the column below which it ends. Times are kept and
// bus bandwidth is not: it is computed with the ring's factor whatever the algorithm.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <istream>
#include <optional>
#include <set>
#include <sstream>

#include "traces/import/gzip_stream.h"
#include "traces/import/nccl_tests_tables.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// A word and where it ends.
struct Token {
  std::string_view text;
  size_t end = 0;  // offset behind the last character
};

// The words of a line.
std::vector<Token> Tokens(std::string_view line) {
  std::vector<Token> tokens;
  size_t begin = 0;
  while ((begin = line.find_first_not_of(" \t\r", begin)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    tokens.push_back({line.substr(begin, end - begin), end});
    begin = end;
  }
  return tokens;
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Removes OpenMPI's "[1,0]<stdout>:" wherever it stands, and srun's "0: " at the start.
std::string WithoutTags(std::string line) {
  for (size_t at = 0; (at = line.find(">:", at)) != std::string::npos;) {
    const size_t open = line.rfind('[', at);
    const size_t tag = open == std::string::npos ? open : line.find(']', open);
    const bool is_tag = tag != std::string::npos && line.compare(tag + 1, 4, "<std") == 0;
    if (is_tag) line.erase(open, at + 2 - open);
    at = is_tag ? open : at + 2;
  }
  // srun pads the number to equal width.
  const size_t colon = line.find(": ");
  const size_t number = line.find_first_not_of(' ');
  if (colon != std::string::npos && number < colon &&
      AllDigits(std::string_view(line).substr(number, colon - number))) {
    line.erase(0, colon + 2);
  }
  return line;
}

// A time; nothing for "N/A" and other words.
std::optional<float> Microseconds(std::string_view text) {
  float value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value >= 0)) return std::nullopt;
  return value;
}

// Reads one file line by line. A file may hold several tables; each gets topologies of its own. A table whose
// test or number of ranks is not known ends the import; lines of other programs are passed over.
class TextParser {
 public:
  // The file's name may name the test, and names topologies.
  explicit TextParser(const std::string& path)
      : path_(path), collective_(TestIn(std::filesystem::path(path).filename().string())) {}

  // Reads a line: the test's name, NCCL's version, a comment or a row. Other lines are passed over.
  Status Take(std::string line) {
    ++line_number_;
    line = WithoutTags(std::move(line));
    if (const size_t perf = line.find("_perf"); perf != std::string::npos) {
      const size_t begin = line.find_last_of(" /", perf);
      const auto named = TestIn(std::string_view(line).substr(begin == std::string::npos ? 0 : begin, perf));
      if (named) collective_ = named;
      imported_.command = line;
    }
    if (line.starts_with("NCCL version ")) imported_.library = "NCCL " + line.substr(13);
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) return {};
    if (line[first] == '#') return TakeComment(line, first);
    if (!columns_.empty() && line[first] >= '0' && line[first] <= '9') return TakeRow(line);
    return {};
  }

  Result<Imported> Finish() {
    if (rows_ == 0) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}: line {}: no row of results in this file", path_,
                    line_number_),
          "expected the table that nccl-tests prints, with a header line '#  size  count  type ...'");
    }
    Imported result;
    result.unfilled = {{"algorithm", rows_, "unknown"},
                       {"protocol", rows_, "unknown"},
                       {"channels", rows_, "unknown"},
                       {"fabric", imported_.contexts.size(), "zeros"}};
    if (empty_ > 0) result.notes.push_back(fmt::format("{} rows of 0 bytes: left out", empty_));
    if (untimed_ > 0) result.notes.push_back(fmt::format("{} rows without a time: left out", untimed_));
    result.measurements = std::move(imported_);
    return result;
  }

 private:
  Status Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}: {}", path_, line_number_, what);
  }

  Status TakeComment(const std::string& line, size_t hash) {
    const auto tokens = Tokens(std::string_view(line).substr(hash + 1));
    if (tokens.empty()) return {};
    if (tokens[0].text == "nThread" || tokens[0].text == "nThread:")
      StartTable();
    else if (tokens[0].text == "Rank" && tokens.size() > 6)
      TakeRank(tokens);
    else if (tokens[0].text == "size" && tokens.size() >= 5)
      return TakeColumns(line, hash);
    return {};
  }

  // Forgets the table before.
  void StartTable() {
    columns_.clear();
    hosts_.clear();
    ranks_ = 0;
  }

  // Counts a rank and reads its host and GPU: "Rank 0 Group 0 Pid 258918 on nid005446 device 0 [0x01] NVIDIA
  // GH200 120GB".
  void TakeRank(const std::vector<Token>& tokens) {
    ++ranks_;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i].text == "on") hosts_.insert(std::string(tokens[i + 1].text));
    }
    imported_.machine.clear();
    for (size_t i = tokens.size(); i-- > 0 && !tokens[i].text.starts_with('[');) {
      imported_.machine =
          std::string(tokens[i].text) + (imported_.machine.empty() ? "" : " ") + imported_.machine;
    }
  }

  // Reads the header line of a table.
  Status TakeColumns(const std::string& line, size_t hash) {
    columns_.clear();
    for (Token token : Tokens(std::string_view(line).substr(hash + 1))) {
      columns_.push_back({std::string(token.text), token.end + hash + 1});
    }
    if (ranks_ == 0)
      return Fail("a table before any line '#  Rank  0 ...': the number of ranks is not known");
    if (!collective_)
      return Fail("neither the file's name nor a line before names the test (all_reduce_perf, ...)");
    table_ = AddContext("");
    in_place_table_ = AddContext(" in-place");
    return {};
  }

  // Adds a topology and returns its name.
  std::string AddContext(const std::string& suffix) {
    MeasurementContext context;
    context.topology = std::filesystem::path(path_).stem().string();
    // A table has two contexts.
    const size_t earlier = imported_.contexts.size() / 2;
    if (earlier > 0) context.topology += fmt::format(" table {}", earlier + 1);
    context.topology += suffix;
    context.model.fabric.n_ranks = ranks_;
    context.model.fabric.n_nodes = std::max<int32_t>(1, static_cast<int32_t>(hosts_.size()));
    imported_.contexts.push_back(context);
    return context.topology;
  }

  // Reads a row. An INFO line may begin with a digit too, and is passed over.
  Status TakeRow(const std::string& line) {
    const auto tokens = Tokens(line);
    if (tokens.size() < 4 || !AllDigits(tokens[0].text)) return {};  // an INFO line that begins with a digit
    uint64_t bytes = 0;
    std::from_chars(tokens[0].text.data(), tokens[0].text.data() + tokens[0].text.size(), bytes);
    const auto times = TimesOf(tokens);
    if (times.empty())
      return Fail(fmt::format("a row of {} values under {} columns", tokens.size(), columns_.size()));
    if (bytes == 0) {
      ++empty_;
      return {};
    }
    AppendRow(table_, bytes, times[0]);
    if (times.size() > 1) AppendRow(in_place_table_, bytes, times[1]);
    ++rows_;
    return {};
  }

  // The values under the columns named "time" or "cputime": out of place, then in place.
  std::vector<std::string_view> TimesOf(const std::vector<Token>& tokens) const {
    std::vector<std::string_view> times;
    if (tokens.size() > columns_.size() + 1) return times;  // a line of another kind
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].name != "time" && columns_[c].name != "cputime") continue;
      const Token* value = tokens.size() == columns_.size() ? &tokens[c] : NearestTo(columns_[c].end, tokens);
      if (value != nullptr) times.push_back(value->text);
    }
    return times;
  }

  // The value of a column. Columns are right-aligned, and a value that ends 4 or more characters off belongs
  // to another column.
  static const Token* NearestTo(size_t end, const std::vector<Token>& tokens) {
    for (const Token& token : tokens) {
      if (token.end + 4 > end && token.end < end + 4) return &token;
    }
    return nullptr;
  }

  // Adds a measurement; "N/A" instead of a time is counted.
  void AppendRow(const std::string& topology, uint64_t bytes, std::string_view time) {
    const auto microseconds = Microseconds(time);
    if (!microseconds) {
      ++untimed_;
      return;
    }
    imported_.rows.push_back({.topology = topology,
                              .collective = *collective_,
                              .bytes = bytes,
                              .config = kLeaveNcclAlone,
                              .is_default = true,
                              .microseconds = {*microseconds}});
  }

  struct Column {
    std::string name;
    size_t end;
  };

  std::string path_;
  std::optional<Collective> collective_;
  size_t line_number_ = 0;
  std::vector<Column> columns_;
  std::set<std::string> hosts_;
  int32_t ranks_ = 0;
  std::string table_;
  std::string in_place_table_;
  uint64_t rows_ = 0;  // rows of the file; each gives one or two measurements
  uint64_t empty_ = 0;
  uint64_t untimed_ = 0;  // "N/A" instead of a time
  MeasurementFile imported_;
};

// Recognised by the lines above a table of results.
class NcclTests final : public TraceImporter {
 public:
  std::string_view name() const override { return "nccl-tests"; }
  std::string_view sentence() const override {
    return "results of nccl-tests or rccl-tests (text, JSON of -J, comma-separated), as measurements without "
           "algorithm, protocol, channels and fabric";
  }
  bool Recognises(std::string_view head) const override {
    return head.find("# nThread ") != std::string_view::npos ||
           head.find("#       size ") != std::string_view::npos || IsTestJson(head) || IsTestTable(head);
  }
  Result<Imported> Import(const std::string& path) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    auto imported = ImportFrom(stream.stream(), path);
    DYNAMICCL_CHECK_OK(stream.status());
    return imported;
  }

 private:
  // The first line shows which form the file has.
  static Result<Imported> ImportFrom(std::istream& stream, const std::string& path) {
    if (stream.peek() == '{') return ImportTestJson(stream, path);
    TextParser parser(path);
    std::string line;
    if (std::getline(stream, line)) {
      if (IsTestTable(line)) {
        std::string rest(std::istreambuf_iterator<char>(stream), {});
        std::istringstream whole(line + "\n" + rest);
        return ImportTestTable(whole, path);
      }
      do DYNAMICCL_CHECK_OK(parser.Take(std::move(line)));
      while (std::getline(stream, line));
    }
    return parser.Finish();
  }
};

}  // namespace

const TraceImporter& NcclTestsImporter() {
  static const NcclTests importer;
  return importer;
}

}  // namespace dynamiccl
