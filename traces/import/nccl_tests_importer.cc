// SPDX-License-Identifier: Apache-2.0
// Output of nccl-tests and rccl-tests of all generations as measurement rows:
//     #  Rank  0 Group  0 Pid 1 on  a device  0 [0x01] NVIDIA H100
//     #       size         count      type   redop    root     time   algbw   busbw #wrong     time  ...
//          1048576        262144     float     sum      -1    93.20   11.25   19.69      0    92.80  ...
// Only the times are kept. The printed bandwidths are derived from them, with the ring's factor whatever the
// algorithm was. They serve as a check of time, size and test: a contradiction shows a damaged row.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "traces/import/gzip_stream.h"
#include "traces/import/log_line.h"
#include "traces/import/nccl_tests_ranks.h"
#include "traces/import/nccl_tests_rows.h"
#include "traces/import/nccl_tests_tables.h"
#include "traces/import/system_names.h"
#include "traces/import/text_fields.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// A test as a log names it.
struct TestProgram {
  std::string name;  // "all_reduce"
  std::optional<Collective> collective;
};

// The test whose program occurs in a line: "all_reduce" of "./build/all_reduce_perf -b 8". The name of an
// unknown program must begin a word and be followed by options, because names of folders may end in "_perf"
// too.
std::optional<TestProgram> ProgramIn(std::string_view line) {
  std::optional<TestProgram> found;
  for (size_t at = 0; (at = line.find("_perf", at)) != std::string_view::npos; at += 5) {
    const size_t before = line.find_last_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view name = line.substr(begin, at - begin);
    if (const NamedTest* const test = NamedTestIn(name)) {
      found = {std::string(name), test->collective};
      continue;
    }
    const std::string_view rest = line.substr(at + 5);
    const bool begins_word = begin == 0 || line[before] == ' ' || line[before] == '/';
    const bool titled = line.find("test starting: ") != std::string_view::npos && rest.empty();
    if (!found && begins_word && (titled || rest.starts_with(" -")))
      found = {std::string(name), std::nullopt};
  }
  return found;
}

// Counts rows, or times of rows, with one kind of defect.
struct NotedRows {
  std::string what;  // "rows that are cut: left out"
  uint64_t count = 0;
  size_t first_line = 0;
};

// Reads one file line by line. A file may contain several tables; each gets topologies of its own. A table
// whose test or number of ranks is unknown ends the import. Lines of other programs are skipped, and unusable
// rows are counted.
class TextParser {
 public:
  // The test's name may come from `options` or the file's name. The topologies are named after the file.
  TextParser(const std::string& path, const ImportOptions& options) : path_(path) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (options.collective)
      program_ = {std::string(Name(*options.collective)), options.collective};
    else if (const NamedTest* const test = NamedTestIn(name))
      program_ = {std::string(test->name), test->collective};
  }

  // Reads a line: the test's name, NCCL's version, a comment or a row. Other lines are skipped. `whole`: the
  // line ends with a newline, so no value in it is cut.
  Status Take(std::string_view log_line, bool whole) {
    ++line_number_;
    const std::string_view line = PlainLogLine(log_line, changed_line_);
    if (const auto program = ProgramIn(line)) {
      program_ = *program;
      imported_.command = line;
    }
    if (line.starts_with("rccl-tests:")) rccl_ = true;
    DYNAMICCL_CHECK_OK(TakeLibrary(line));
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    if (line[first] == '#') return TakeComment(line, first);
    if (!columns_.empty() && line[first] >= '0' && line[first] <= '9') TakeRow(line, whole);
    return {};
  }

  Result<Imported> Finish() {
    if (rows_ == 0) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: line {}: no row of results in this file{}",
                                path_, line_number_, AllNotes()),
                      "expected the table that nccl-tests prints, with a header line '#  size  count  type "
                      "...'");
    }
    Imported result;
    result.unfilled = {{"algorithm", rows_, "unknown"},
                       {"protocol", rows_, "unknown"},
                       {"channels", rows_, "unknown"},
                       {"fabric", imported_.contexts.size(), "zeros"}};
    for (const NotedRows& rows : noted_) result.notes.push_back(NoteOf(rows));
    imported_.hosts = fmt::format("{}", fmt::join(hosts_of_file_, ","));
    result.measurements = std::move(imported_);
    if (rccl_) result.format = fmt::format("rccl-tests: {}", NcclTestsImporter().sentence());
    return result;
  }

 private:
  tl::unexpected<Error> Fail(const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}: {}", path_, line_number_, what);
  }

  static std::string NoteOf(const NotedRows& rows) {
    return fmt::format("{} {} (the first in line {})", rows.count, rows.what, rows.first_line);
  }
  // All notes as the end of an error message: ": " and the notes; empty without notes.
  std::string AllNotes() const {
    std::string text;
    for (const NotedRows& rows : noted_) text += (text.empty() ? ": " : "; ") + NoteOf(rows);
    return text;
  }
  void LeaveOut(const std::string& what) { Note(what + ": left out"); }
  void Note(const std::string& what) {
    auto place =
        std::find_if(noted_.begin(), noted_.end(), [&](const NotedRows& rows) { return rows.what == what; });
    if (place == noted_.end()) place = noted_.insert(place, {what, 0, line_number_});
    ++place->count;
  }

  // Reads the version of NCCL. A second one in the same file is an error, because a measurement file has one.
  Status TakeLibrary(std::string_view line) {
    auto library = LibraryIn(line);
    if (!library) return {};
    // Other forms of the results do not contain CUDA's version, so the version of NCCL is kept without it.
    library->resize(std::min(library->find("+cuda"), library->size()));
    if (!imported_.library.empty() && *library != imported_.library)
      return FailSecond("library", *library, imported_.library);
    imported_.library = *library;
    return {};
  }
  tl::unexpected<Error> FailSecond(const char* what, const std::string& second,
                                   const std::string& first) const {
    return WithHint(Fail(fmt::format("a second {} in this file, '{}' after '{}'", what, second, first)),
                    "their times are not to be mixed: split the file before this run");
  }

  Status TakeComment(std::string_view line, size_t hash) {
    const auto tokens = Tokens(line.substr(hash + 1));
    if (tokens.empty()) return {};
    if (tokens[0].text == "nThread" || tokens[0].text == "nThread:")
      StartTable();
    else if (tokens[0].text == "Rank" && tokens.size() > 6)
      return TakeRank(tokens);
    else if (tokens[0].text == "size" && tokens.size() >= 5)
      return TakeColumns(line, hash);
    return {};
  }

  // Resets the state of the previous table.
  void StartTable() {
    columns_ = {};
    listed_ = {};
    machines_.clear();
    ranks_ = 0;
  }

  // Reads a rank, its group, host and GPU: "Rank 0 Group 0 Pid 258918 on nid005446 device 0 [0x01] NVIDIA
  // GH200 120GB". Releases before groups print no group.
  Status TakeRank(const std::vector<Token>& tokens) {
    const auto rank = NumberIn<int32_t>(tokens[1].text);
    const bool grouped = tokens[2].text == "Group";
    const auto number = grouped ? NumberIn<int32_t>(tokens[3].text) : std::optional<int32_t>(0);
    if (!rank || *rank < 0 || !number) return Fail("a line of a rank without its number");
    if (*rank >= kMostTestRanks) return Fail(fmt::format("rank {} is not below {}", *rank, kMostTestRanks));
    std::string host;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i].text == "on") host = tokens[i + 1].text;
    }
    if (!host.empty()) hosts_of_file_.insert(HostPattern(host));
    if (!listed_.Add(*number, *rank, host))
      return WithHint(Fail(fmt::format("rank {} stands in the list of ranks twice", *rank)),
                      "the output of several processes is mixed: nccl-tests built without MPI=1 runs in each "
                      "of them alone; give one process's output");
    std::string machine;
    for (size_t i = tokens.size(); i-- > 0 && !tokens[i].text.starts_with('[');)
      machine = std::string(tokens[i].text) + (machine.empty() ? "" : " ") + machine;
    machines_.insert(machine);
    return {};
  }

  // Reads the header line of a table.
  Status TakeColumns(std::string_view line, size_t hash) {
    if (listed_.empty())
      return Fail("a table before any line '#  Rank  0 ...': the number of ranks is not known");
    const ListedRanks::Communicator communicator = listed_.Measured();
    ranks_ = communicator.ranks;
    nodes_ = communicator.nodes;
    for (const std::string& note : communicator.notes) Note(note);
    if (!program_) return WithHint(Fail(kUnnamedTest), kNameTheTest);
    columns_ = RowColumns(line, hash);
    test_ = *program_;
    if (!test_.collective) return {};
    const std::string machine = fmt::format("{}", fmt::join(machines_, " + "));
    if (!imported_.machine.empty() && machine != imported_.machine)
      return FailSecond("machine", machine, imported_.machine);
    imported_.machine = machine;
    topologies_ = {AddContext(""), AddContext(" in-place")};
    return {};
  }

  // Adds a topology and returns its name.
  std::string AddContext(const std::string& suffix) {
    MeasurementContext context;
    context.topology = std::filesystem::path(path_).stem().string();
    // Each table has two contexts: out of place and in place.
    const size_t earlier = imported_.contexts.size() / 2;
    if (earlier > 0) context.topology += fmt::format(" table {}", earlier + 1);
    context.topology += suffix;
    context.model.fabric.n_ranks = ranks_;
    context.model.fabric.n_nodes = nodes_;
    imported_.contexts.push_back(context);
    return context.topology;
  }

  // Reads a row. An INFO line may begin with a digit too and is skipped.
  void TakeRow(std::string_view line, bool whole) {
    const std::vector<Token> tokens = Tokens(line);
    const size_t digits = tokens[0].text.find_first_not_of("0123456789");
    const bool grouped = digits != std::string_view::npos;
    if (grouped && tokens[0].text.find_first_not_of("0123456789,.'") != std::string_view::npos) return;
    // A row has a value for each column; old alltoall leaves one blank.
    if (tokens.size() < (grouped ? columns_.size() - 1 : 4)) return;
    if (!test_.collective)
      return LeaveOut(fmt::format("rows of {}, which is no collective of NCCL", test_.name));
    if (grouped) return LeaveOut("rows whose size has marks between its digits");
    const auto row = whole ? columns_.Row(tokens) : std::nullopt;
    if (!row) return LeaveOut("rows that are cut or have other output in them");
    if (row->bytes == 0) return LeaveOut("rows of 0 bytes");
    bool used = false;
    for (size_t i = 0; i < std::min(row->times.size(), topologies_.size()); ++i)
      used |= AppendTime(topologies_[i], row->bytes, row->times[i]);
    rows_ += used;
  }

  // Adds a measurement, unless its time is missing or its numbers contradict each
  // other.
  bool AppendTime(const std::string& topology, uint64_t bytes, const RowTime& time) {
    if (!time.us) return LeaveOut("rows without a time"), false;
    if (!time.FitsSize(bytes)) return LeaveOut("times that do not fit their size and bandwidth"), false;
    if (!FitsTest(time)) {
      return LeaveOut(
                 fmt::format("times whose bandwidths are not those of {} on {} ranks", test_.name, ranks_)),
             false;
    }
    if (time.of_host) Note(kHostTimes);
    if (time.wrong) Note("times whose results were wrong (#wrong above 0): kept");
    imported_.rows.push_back({.topology = topology,
                              .collective = *test_.collective,
                              .bytes = bytes,
                              .config = kLeaveNcclAlone,
                              .is_default = true,
                              .microseconds = {*time.us}});
    return true;
  }

  // True if the bus bandwidth fits the test.
  bool FitsTest(const RowTime& time) const {
    return time.FitsFactor(BusBandwidthFactor(*test_.collective, ranks_));
  }

  std::string path_;
  std::string changed_line_;
  std::optional<TestProgram> program_;  // the latest program that was named
  TestProgram test_;                    // the test of the current table
  size_t line_number_ = 0;
  RowColumns columns_;
  ListedRanks listed_;  // the ranks above the current table
  std::set<std::string> hosts_of_file_;
  std::set<std::string> machines_;
  int32_t ranks_ = 0, nodes_ = 0;          // of the current table's communicator
  std::array<std::string, 2> topologies_;  // out of place, in place
  uint64_t rows_ = 0;                      // rows of the file; each gives one or two measurements
  bool rccl_ = false;                      // the file has the header of rccl-tests
  std::vector<NotedRows> noted_;
  MeasurementFile imported_;
};

// Recognises an output by the lines above a table of results.
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
  // The first line shows which form the file has.
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    const std::string_view begin = stream.Ahead();
    if (begin.starts_with('{')) return ImportTestJson(stream, path, options);
    if (IsTestTable(begin)) return ImportTestTable(stream, path);
    TextParser parser(path, options);
    DYNAMICCL_CHECK_OK(
        stream.EachLine([&](std::string_view line) { return parser.Take(line, stream.line_ended()); }));
    return parser.Finish();
  }
};

}  // namespace

const TraceImporter& NcclTestsImporter() {
  static const NcclTests importer;
  return importer;
}

}  // namespace dynamiccl
