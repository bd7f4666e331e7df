// SPDX-License-Identifier: Apache-2.0
// NCCL_DEBUG=INFO logs with NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING as traces. COLL lines give the calls, TUNING
// lines algorithm, protocol and channels, INIT lines the communicators. A section is one device of one
// process, which is one rank. Processes that write to one file may cut each other's lines. If the ranks no
// longer agree because of this, only the rank with the most calls is kept.
//
// The lines of one rank come in this order, and the importer joins choices with calls by their bytes:
//   AllReduce: opCount 1e sendbuff ... comm 0x3c85b900 [nranks=8] stream 0x3d187ce0
//   AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..7}
// NCCL may choose once for several similar calls of a group, so the bytes of a choice may be the sum of
// several calls.
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "src/base/counted.h"
#include "traces/format/trace_merge.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/log_line.h"
#include "traces/import/nccl_debug_hosts.h"
#include "traces/import/nccl_debug_lines.h"
#include "traces/import/rank_section.h"
#include "traces/import/system_names.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Nanoseconds between two lines: the log has no times, so calls get times in the order of their lines.
constexpr int64_t kLineNs = 1000;
// Maximum number of calls that wait for a choice. TUNING lines follow their group, so a call that waits
// longer has none.
constexpr size_t kMaxWaiting = 4096;

// A communicator that has calls.
struct LoggedCommunicator {
  std::string key;  // distinguishes it from earlier communicators with the same pointer
  CommunicatorInfo info;
  std::optional<size_t> last_group;
};

// A call and the fields by which it is joined with others.
struct LoggedCall {
  ImportedCall call;
  // The number opCount of the line. In older releases all calls of a group have the same number; in newer
  // ones each call has its own.
  uint64_t operation = 0;
  // The number of the call's block. A block consists of consecutive calls without a TUNING line between them.
  uint64_t block = 0;
  size_t communicator = 0;  // index of its LoggedCommunicator
  int32_t n_ranks = 1;
};

// A pointer to a communicator, and the information of INIT lines about it. NCCL reuses pointers.
struct KnownCommunicator {
  CommunicatorInfo info = {.n_ranks = 0};
  bool told = false;             // an INIT line stated its id
  int generation = 0;            // number of communicators that had this pointer before
  std::optional<size_t> logged;  // index of its LoggedCommunicator, after its first call
};

// Collects the lines of one device of one process and builds its section. LogParser owns one for each rank.
// No line makes it fail: choices that fit no call are counted.
class LoggedRank {
 public:
  LoggedRank(const DebugPiece& piece) {
    host_ = piece.host;
    process_id_ = piece.process_id;
  }

  // Adds an INIT line. A different id at a known pointer means a new communicator.
  void Take(const DebugCommunicator& line) {
    KnownCommunicator& known = Known(line.communicator);
    if (known.told && line.id != 0 && line.id != known.info.id)
      known = {.generation = known.generation + 1, .logged = std::nullopt};
    known.info.rank = line.rank;
    known.info.n_ranks = std::min<int32_t>(line.n_ranks, UINT16_MAX);
    if (line.id != 0) known.info.id = line.id;
    known.told |= line.id != 0;
    if (line.n_nodes > 0) known.info.n_nodes = std::min(line.n_nodes, known.info.n_ranks);
    nodes_told_ |= line.n_nodes > 0;
    if (line.n_ranks > world_) std::tie(world_, rank_) = std::pair(line.n_ranks, line.rank);
  }

  // Adds a call at the time `now_ns`.
  void Take(const DebugCall& line, int64_t now_ns) {
    LoggedCall logged;
    IssuedCall& issued = logged.call.issued;
    issued.issued_ns = now_ns;
    CollectiveCall& shape = issued.call;
    shape.collective = line.collective;
    const bool known_type = line.data_type >= 0 && line.data_type < kDataTypes;
    shape.data_type = known_type ? static_cast<DataType>(line.data_type) : DataType::kUint8;
    shape.op = line.op >= 0 && line.op < kReduceOps ? static_cast<ReduceOp>(line.op) : ReduceOp::kSum;
    shape.bytes = TotalBytes(line.collective, line.count, ElementBytes(shape.data_type), line.n_ranks);
    const bool rooted = line.collective == Collective::kBroadcast || line.collective == Collective::kReduce;
    issued.root_or_peer = rooted || IsOneSided(line.collective) ? line.root : -1;
    logged.call.stream = static_cast<uint32_t>(IdOfName(line.stream));
    logged.operation = line.operation;
    logged.block = chosen_before_ ? ++block_ : block_;
    chosen_before_ = false;
    logged.n_ranks = line.n_ranks;
    if (line.job_rank >= 0)
      std::tie(world_, rank_) = std::pair(std::max(world_, line.job_rank + 1), line.job_rank);
    logged.communicator = Named(line);  // without an INIT line its rank is the job's
    const size_t group = Group(logged);
    AppendTo(group, std::move(logged));
  }

  // Assigns a choice to its call, or to the run of calls that it covers.
  void Take(const DebugChoice& choice) {
    chosen_before_ = true;
    if (!ChooseOne(choice) && !ChooseRun(choice)) ++strayed_choices_;
  }

  // Counts a call of this rank whose line was cut in the log.
  void CountCut() { ++cut_calls_; }

  // Number of calls, of calls that were cut, and of choices that fit no call.
  uint64_t calls() const { return calls_.size(); }
  uint64_t cut_calls() const { return cut_calls_; }
  uint64_t strayed_choices() const { return strayed_choices_; }
  int32_t rank() const { return rank_; }

  // Builds the section, and counts the fields that the log does not contain.
  RankSection Build(const std::string& library) const {
    RankSection section("nccl-debug", kTraceMirrored);
    section.section().rank = rank_;
    section.section().world = world_;
    section.section().host = host_;
    section.section().process_id = process_id_;
    section.section().library = library;
    section.section().lost = cut_calls_;
    std::vector<ImportedCall> calls_of_group;
    for (const std::vector<size_t>& group : groups_) AppendGroup(section, group, calls_of_group);
    const uint64_t unchosen = Unchosen();
    section.Unfilled("algorithm", "unknown", unchosen);
    section.Unfilled("protocol", "unknown", unchosen);
    section.Unfilled("channels", "unknown", unchosen + without_channels_);
    section.Unfilled("duration", "none", calls());
    section.OrderOnly("the line's number, 1 us a line");
    section.Unfilled("role", "unknown", calls());
    section.Unfilled("stage", "unknown", calls());
    if (!nodes_told_) section.Unfilled("nodes", "1", section.communicators());
    return section;
  }

 private:
  // Returns the number of calls without a choice, among those for which NCCL chooses.
  uint64_t Unchosen() const {
    return static_cast<uint64_t>(std::count_if(calls_.begin(), calls_.end(), [](const LoggedCall& call) {
      return HasChoice(call) && call.call.chosen == kLeaveNcclAlone;
    }));
  }

  // Returns the group of the communicator's last call if both calls have the same opCount; else begins a new
  // group.
  size_t Group(const LoggedCall& logged) {
    std::optional<size_t>& last = logged_[logged.communicator].last_group;
    if (last && calls_[groups_[*last].front()].operation == logged.operation &&
        groups_[*last].size() < UINT16_MAX)
      return *last;
    groups_.emplace_back();
    last = groups_.size() - 1;
    return *last;
  }

  // True for a call for which NCCL chooses: a collective of at least two ranks.
  static bool HasChoice(const LoggedCall& logged) {
    return logged.n_ranks > 1 && logged.call.issued.call.collective < Collective::kSendRecv;
  }

  // Adds the call to its group. If NCCL chooses a config for such a call, the call then waits for its choice.
  void AppendTo(size_t group, LoggedCall logged) {
    groups_[group].push_back(calls_.size());
    if (HasChoice(logged)) waiting_.push_back(calls_.size());
    if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
    calls_.push_back(std::move(logged));
  }

  KnownCommunicator& Known(std::string_view pointer) {
    const auto place = communicators_.find(pointer);
    return place != communicators_.end() ? place->second : communicators_[std::string(pointer)];
  }

  // The communicator that has the call's pointer at this place in the log.
  size_t Named(const DebugCall& line) {
    KnownCommunicator& known = Known(line.communicator);
    if (known.logged) return *known.logged;
    const std::string key = fmt::format("{} {}", line.communicator, known.generation);
    logged_.push_back({key, InfoOf(known, key, line.n_ranks), std::nullopt});
    known.logged = logged_.size() - 1;
    return *known.logged;
  }

  // Returns the communicator as INIT lines describe it. Without an INIT line its id is computed from `key`.
  CommunicatorInfo InfoOf(const KnownCommunicator& known, const std::string& key,
                          int32_t logged_ranks) const {
    if (known.info.n_ranks == logged_ranks) return known.info;
    const int32_t n_ranks = std::min<int32_t>(logged_ranks, UINT16_MAX);
    return {IdOfName("nccl-debug " + key), std::clamp(rank_, 0, n_ranks - 1), n_ranks, 1};
  }

  // True if the choice may be about calls of `bytes` in total. For AllGather and ReduceScatter most releases
  // print one rank's bytes in TUNING, the others the total; both are accepted.
  bool Fits(const DebugChoice& choice, const LoggedCall& logged, uint64_t bytes) const {
    const Collective collective = logged.call.issued.call.collective;
    if (choice.collective && *choice.collective != collective) return false;
    const bool shares = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
    return choice.bytes == bytes || (shares && choice.bytes * static_cast<uint64_t>(logged.n_ranks) == bytes);
  }

  // Assigns the choice to the first waiting call of its size.
  bool ChooseOne(const DebugChoice& choice) {
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const LoggedCall& logged = calls_[waiting_[i]];
      if (!Fits(choice, logged, logged.call.issued.call.bytes)) continue;
      Choose(choice, {waiting_[i]});
      return true;
    }
    return false;
  }

  // Assigns the choice to a run of calls. NCCL decides once for similar calls of a group. In the order of
  // falling size, the bytes of some consecutive calls then add up to the bytes of the choice.
  bool ChooseRun(const DebugChoice& choice) {
    std::vector<size_t> sorted(waiting_.begin(), waiting_.end());
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
      if (calls_[a].operation != calls_[b].operation) return calls_[a].operation < calls_[b].operation;
      return calls_[a].call.issued.call.bytes > calls_[b].call.issued.call.bytes;
    });
    for (size_t first = 0; first + 1 < sorted.size(); ++first) {
      uint64_t sum = 0;
      for (size_t last = first; last < sorted.size() && SameKind(sorted[first], sorted[last]); ++last) {
        sum += calls_[sorted[last]].call.issued.call.bytes;
        if (last == first || !Fits(choice, calls_[sorted[first]], sum)) continue;
        Choose(choice, {sorted.begin() + static_cast<ptrdiff_t>(first),
                        sorted.begin() + static_cast<ptrdiff_t>(last) + 1});
        return true;
      }
    }
    return false;
  }

  // True for calls for which NCCL may decide together.
  bool SameKind(size_t a, size_t b) const {
    const auto kind = [&](size_t i) {
      const CollectiveCall& shape = calls_[i].call.issued.call;
      return std::tuple(calls_[i].operation, calls_[i].communicator, shape.collective, shape.data_type,
                        shape.op);
    };
    return kind(a) == kind(b);
  }

  // Sets the choice. NCCL prints a group's choices after logging all of its calls, largest call first. So
  // calls of earlier groups that were logged before the last choice have no TUNING line and stop waiting.
  void Choose(const DebugChoice& choice, const std::vector<size_t>& chosen) {
    for (const size_t call : chosen) calls_[call].call.chosen = choice.config;
    if (choice.config.channels == 0) without_channels_ += chosen.size();
    const size_t earliest = *std::min_element(chosen.begin(), chosen.end());
    std::erase_if(waiting_, [&](size_t call) {
      if (std::find(chosen.begin(), chosen.end(), call) != chosen.end()) return true;
      return call < earliest && calls_[call].operation != calls_[earliest].operation &&
             calls_[call].block != calls_[earliest].block;
    });
  }

  // Adds the communicator, unless it is there already, then appends the group's calls. `calls` is memory that
  // is used again for each group.
  void AppendGroup(RankSection& section, const std::vector<size_t>& group,
                   std::vector<ImportedCall>& calls) const {
    calls.clear();
    for (const size_t call : group) calls.push_back(calls_[call].call);
    const LoggedCommunicator& logged = logged_[calls_[group.front()].communicator];
    section.AppendGroup(section.Communicator(logged.key, logged.info, calls.front().issued.issued_ns), calls);
  }

  std::string host_;
  int64_t process_id_ = 0;
  int32_t rank_ = -1;
  int32_t world_ = 0;
  bool nodes_told_ = false;
  uint64_t cut_calls_ = 0;
  uint64_t strayed_choices_ = 0;
  uint64_t without_channels_ = 0;
  uint64_t block_ = 0;
  bool chosen_before_ = false;                                           // whether the last line was a choice
  std::map<std::string, KnownCommunicator, std::less<>> communicators_;  // by pointer
  std::vector<LoggedCommunicator> logged_;
  std::vector<LoggedCall> calls_;
  std::vector<std::vector<size_t>> groups_;
  std::deque<size_t> waiting_;  // indices of the latest collectives without a choice
};

// Distributes the lines of a log to its ranks. Import() makes one such object for each file. Lines of other
// programs are skipped, and a log without a single call is an error.
class LogParser {
 public:
  void Take(std::string_view text) {
    ++line_number_;
    CountOverwritten(text);
    const std::string_view line = PlainLogLine(text, changed_line_);
    const auto pieces = DebugPieces(line);
    for (size_t i = 0; i < pieces.size(); ++i) TakePiece(pieces[i], pieces.size() > 1);
    if (const auto library = LibraryIn(line)) TakeLibrary(*library);
  }

  Result<Imported> Finish() {
    std::vector<const LoggedRank*> ranks;
    uint64_t calls = 0;
    for (const auto& [key, rank] : ranks_) {
      if (rank.calls() > 0) ranks.push_back(&rank);
      calls += rank.calls();
    }
    if (calls == 0) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "line {}: no call in this log", line_number_),
                      "NCCL logs calls with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING");
    }
    const std::string first_library = second_library_.empty() ? "" : std::exchange(library_, "");
    std::vector<RankSection> sections;
    for (const LoggedRank* rank : ranks) sections.push_back(rank->Build(library_));
    Imported imported = TogetherOrAlone(ranks, sections);
    AddNotes(imported);
    if (!second_library_.empty())
      imported.notes.push_back(
          fmt::format("{} and {} in one log: the calls' library is left open; split the "
                      "log if it has several jobs",
                      first_library, second_library_));
    return imported;
  }

 private:
  // Notes the library's version. Of two versions in one log neither is known to be that of the calls.
  void TakeLibrary(const std::string& library) {
    if (library_.empty()) library_ = library;
    if (LibraryRelease(library) != LibraryRelease(library_)) second_library_ = library;
  }

  LoggedRank& RankOf(const DebugPiece& piece, bool cut) {
    const auto key = std::tuple(hosts_.Of(piece, cut), piece.process_id, piece.device);
    return ranks_.try_emplace(key, piece).first->second;
  }

  // Counts calls in the part of a line that other text overwrote.
  void CountOverwritten(std::string_view line) {
    for (const DebugPiece& piece : DebugPieces(line.substr(0, OverwrittenBytes(line)))) {
      if (BeginsDebugCall(piece.text)) RankOf(piece, true).CountCut();
    }
  }

  // Passes the piece to its rank. The first parser that accepts the piece decides what kind of line it is.
  void TakePiece(const DebugPiece& piece, bool cut) {
    LoggedRank& rank = RankOf(piece, cut);
    if (const auto call = ParseDebugCall(piece.text))
      rank.Take(*call, static_cast<int64_t>(line_number_) * kLineNs);
    else if (BeginsDebugCall(piece.text))
      rank.CountCut();
    else if (const auto choice = ParseDebugChoice(piece.text))
      rank.Take(*choice);
    else if (IsChoiceWithoutTuner(piece.text))
      ++without_tuner_;
    else if (const auto communicator = ParseDebugCommunicator(piece.text))
      rank.Take(*communicator);
    else
      TakeCostTable(piece.text);
  }

  // Reads a line of NCCL's cost table: "   AllReduce |    25.2/  16.6 |    48.5/ 124.8 | ..." in blocks of
  // three algorithms. The table is only reported in the notes.
  void TakeCostTable(std::string_view text) {
    const size_t bar = text.find('|');
    if (bar == std::string_view::npos || text.find('/') == std::string_view::npos) return;
    const auto collective = ParseCollective(Trimmed(text.substr(0, bar)));
    if (!collective || cost_cells_.size() > 1000) return;
    std::string_view rest = text.substr(bar + 1);
    for (size_t end; (end = rest.find('|')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      const size_t index = cells_of_[*collective]++;
      const std::string_view cell = rest.substr(0, end);
      const size_t slash = cell.find('/');
      if (slash == std::string_view::npos || index >= kAlgorithms * kProtocols) continue;
      const auto latency = NumberIn<double>(Trimmed(cell.substr(0, slash)));
      const auto bandwidth = NumberIn<double>(Trimmed(cell.substr(slash + 1)));
      if (!latency || !bandwidth || !(*bandwidth > 0)) continue;
      cost_cells_[*collective] +=
          fmt::format("{}{} {} {} us {} GB/s", cost_cells_[*collective].empty() ? "" : ", ",
                      Name(static_cast<Algorithm>(index / kProtocols)),
                      Name(static_cast<Protocol>(index % kProtocols)), *latency, *bandwidth);
    }
  }

  // Returns the trace of all ranks if they agree; else the trace of the one rank with the most calls.
  Imported TogetherOrAlone(const std::vector<const LoggedRank*>& ranks, std::vector<RankSection>& sections) {
    const auto place = std::max_element(ranks.begin(), ranks.end(),
                                        [](const auto* a, const auto* b) { return a->calls() < b->calls(); });
    const auto most = static_cast<size_t>(place - ranks.begin());
    Imported imported;
    imported.unfilled = sections[most].TakeUnfilled();
    std::vector<Trace> each(sections.size());
    for (size_t i = 0; i < sections.size(); ++i) each[i].sections.push_back(sections[i].Finish());
    auto merged = MergeTraces(std::move(each));
    const Status agree = merged ? CheckRanksAgree(*merged) : tl::unexpected<Error>(merged.error());
    if (agree) {
      imported.trace = std::move(*merged);
      return imported;
    }
    uint64_t left_out = 0;
    for (const LoggedRank* rank : ranks) left_out += rank->calls();
    imported.notes.push_back(fmt::format("{} of {}, which do not go with this one ({}): left out",
                                         Counted(left_out - ranks[most]->calls(), "call"),
                                         Counted(ranks.size() - 1, "other rank"), agree.error().message));
    imported.trace.emplace().sections.push_back(ranks[most]->Build(library_).Finish());
    return imported;
  }

  // Adds notes on what was left out, and on whether replay mirrors the trace.
  void AddNotes(Imported& imported) const {
    uint64_t cut = 0;
    uint64_t strayed = 0;
    for (const auto& [key, rank] : ranks_) {
      cut += rank.cut_calls();
      strayed += rank.strayed_choices();
    }
    if (cut > 0)
      imported.notes.push_back(fmt::format("{} in lines that are cut: left out", Counted(cut, "call")));
    if (strayed > 0)
      imported.notes.push_back(
          fmt::format("{} (TUNING) without a call (COLL): left out", Counted(strayed, "choice")));
    if (without_tuner_ > 0)
      imported.notes.push_back(
          fmt::format("{} by symmetric kernels or the copy engine, which have no algorithm or protocol",
                      Counted(without_tuner_, "call")));
    for (const auto& [collective, cells] : cost_cells_)
      imported.notes.push_back(fmt::format("the library's cost table, {}: {}", Name(collective), cells));
    if (std::any_of(imported.trace->sections.begin(), imported.trace->sections.end(),
                    [](const TraceSection& section) { return section.mirrored(); }))
      imported.notes.push_back("not all ranks: replay issues the calls of one rank on every rank");
  }

  size_t line_number_ = 0;
  uint64_t without_tuner_ = 0;
  std::string library_;
  std::string second_library_;  // a version that differs from library_
  std::string changed_line_;
  DebugHosts hosts_;
  std::map<std::tuple<std::string_view, int64_t, int32_t>, LoggedRank> ranks_;  // host, process, device
  std::map<Collective, size_t> cells_of_;
  std::map<Collective, std::string> cost_cells_;
};

// Recognises a log by the prefix that NCCL writes before a line.
class NcclDebug final : public TraceImporter {
 public:
  std::string_view name() const override { return "nccl-debug"; }
  std::string_view sentence() const override {
    return "log of NCCL or RCCL with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING, without times";
  }
  bool Recognises(std::string_view head) const override {
    return head.find(" NCCL INFO ") != std::string_view::npos ||
           head.find(kPluginMark) != std::string_view::npos;
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& /*options*/) const override {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    LogParser parser;
    DYNAMICCL_CHECK_OK(stream.EachLine([&](std::string_view line) -> Status {
      parser.Take(line);
      return {};
    }));
    auto imported = parser.Finish();
    if (!imported) return Wrap(imported.error(), path);
    return imported;
  }
};

}  // namespace

const TraceImporter& NcclDebugImporter() {
  static const NcclDebug importer;
  return importer;
}

}  // namespace dynamiccl
