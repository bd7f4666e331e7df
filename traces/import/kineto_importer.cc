// SPDX-License-Identifier: Apache-2.0
// PyTorch profiler traces as single-rank traces. Three generations of PyTorch differ in what they record:
//   up to torch 2.0   sizes in the shapes of the nccl:* annotations, one process group assumed
//   2.1 and 2.2       sizes and groups in record_param_comms
//   2.3 and later     sizes and groups in record_param_comms and in the kernels
// Calls come from record_param_comms if these events carry names, else from the annotations. If a profile has
// no calls of NCCL, calls of another backend, such as gloo, are used with the host's times. A kernel belongs
// to the call during which it was launched (correlation -> launch -> innermost call on that thread).
// Algorithm and protocol are never derived from a kernel's name: NCCL runs all protocols through one kernel
// for each collective and type, whatever its name says (generate.py, best_kernel).
#include <algorithm>
#include <map>

#include "src/base/counted.h"
#include "src/collective/data_type.h"
#include "traces/format/record_views.h"
#include "traces/import/kineto_events.h"
#include "traces/import/pytorch_calls.h"
#include "traces/import/rank_section.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

// Computes how long the device computed, communicated without computing, and did neither, by a sweep over the
// beginnings and ends of its events.
// Returns nothing where the file shows no computing, or several devices.
std::optional<DeviceTime> DeviceTimeOf(const KinetoFile& file) {
  if (file.computing.empty() || file.several_devices) return std::nullopt;
  struct Edge {
    int64_t at_ns;
    int computing, communicating;  // change of the number of running events: 1, 0 or -1
  };
  std::vector<Edge> edges;
  edges.reserve(2 * (file.computing.size() + file.kernels.size()));
  for (const KinetoInterval& interval : file.computing) {
    edges.push_back({interval.begin_ns, 1, 0});
    edges.push_back({interval.end_ns, -1, 0});
  }
  for (const KinetoEvent& kernel : file.kernels) {
    edges.push_back({kernel.begin_ns, 0, 1});
    edges.push_back({kernel.end_ns(), 0, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at_ns < b.at_ns; });
  DeviceTime time;
  int computing = 0, communicating = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const int64_t since_ns = i == 0 ? 0 : edges[i].at_ns - edges[i - 1].at_ns;
    if (computing > 0) time.computing_ns += since_ns;
    if (computing > 0 && communicating > 0) time.hidden_ns += since_ns;
    if (computing == 0) (communicating > 0 ? time.exposed_ns : time.idle_ns) += since_ns;
    computing += edges[i].computing;
    communicating += edges[i].communicating;
  }
  return time;
}

// Builds the section from the events of one file, which must outlive it. It cannot fail: an event with a
// missing field is imported with a substitute value, and counted.
class Conversion {
 public:
  Conversion(const KinetoFile& file, const ImportOptions& options)
      : file_(file), stated_size_(options.group_size), section_("kineto", kTraceMirrored, stated_size_) {}

  // Finds the calls, then their kernels, and then writes the records.
  Imported Run() {
    ChooseCalls();
    AssignKernels();
    for (const Call& call : calls_) AppendCall(call);
    AppendSteps();
    return Result();
  }

 private:
  // A call and the kernels that it launched.
  struct Call {
    const KinetoEvent* event;
    Collective collective;
    std::vector<const KinetoEvent*> kernels;
  };

  // Chooses the kind of event that describes the calls better, and orders the calls by time.
  void ChooseCalls() {
    const bool named = std::any_of(file_.comms.begin(), file_.comms.end(),
                                   [](const KinetoEvent& event) { return !event.collective_name.empty(); });
    foreign_ = !named && file_.annotations.empty() && !file_.others.empty();
    const std::vector<KinetoEvent>& source = named      ? file_.comms
                                             : foreign_ ? file_.others
                                                        : file_.annotations;
    for (const KinetoEvent& event : source) {
      const std::string& name = named ? event.collective_name : event.name;
      const size_t operation = foreign_ ? name.find(':') + 1 : 0;
      if (const auto collective = CollectiveOfPyTorch(std::string_view(name).substr(operation)))
        calls_.push_back({&event, *collective, {}});
      else
        ++skipped_[name];
    }
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const Call& a, const Call& b) { return a.event->begin_ns < b.event->begin_ns; });
    DropBarriersAroundCalls();
  }

  // In some releases a barrier contains its AllReduce as a call of its own. Such a barrier is dropped, so
  // that the call is counted once.
  void DropBarriersAroundCalls() {
    std::erase_if(calls_, [&](const Call& outer) {
      if (outer.event->collective_name != "barrier") return false;
      return std::any_of(calls_.begin(), calls_.end(), [&](const Call& inner) {
        return inner.event != outer.event && inner.event->thread == outer.event->thread &&
               inner.event->begin_ns >= outer.event->begin_ns &&
               inner.event->end_ns() <= outer.event->end_ns();
      });
    });
  }

  // Assigns each kernel to its call; kernels without a call are counted.
  void AssignKernels() {
    std::map<int64_t, std::vector<size_t>> by_thread;  // indices into calls_, in order of begin
    for (size_t i = 0; i < calls_.size(); ++i) by_thread[calls_[i].event->thread].push_back(i);
    for (const KinetoEvent& kernel : file_.kernels) {
      const KinetoLaunch* const launch = LaunchOf(kernel);
      Call* call = launch == nullptr ? nullptr : CallAt(by_thread, *launch);
      if (call != nullptr)
        call->kernels.push_back(&kernel);
      else
        ++stray_kernels_;
    }
  }

  // The launch with the kernel's correlation; null if the file has none.
  const KinetoLaunch* LaunchOf(const KinetoEvent& kernel) const {
    const auto launch = std::lower_bound(file_.launches.begin(), file_.launches.end(),
                                         KinetoLaunch{kernel.correlation, 0, 0});
    const bool found = launch != file_.launches.end() && launch->correlation == kernel.correlation;
    return found ? &*launch : nullptr;
  }

  // The last call on the launch's thread that began before the launch and had not ended; null if there is
  // none.
  Call* CallAt(const std::map<int64_t, std::vector<size_t>>& by_thread, const KinetoLaunch& launch) {
    const auto thread = by_thread.find(launch.thread);
    if (thread == by_thread.end()) return nullptr;
    const auto after =
        std::upper_bound(thread->second.begin(), thread->second.end(), launch.begin_ns,
                         [&](int64_t time, size_t i) { return time < calls_[i].event->begin_ns; });
    if (after == thread->second.begin()) return nullptr;
    Call& call = calls_[*std::prev(after)];
    return call.event->end_ns() >= launch.begin_ns ? &call : nullptr;
  }

  // ---- communicators ----

  // A communicator and its number in the section.
  struct Communicator {
    uint32_t number = 0;
    int32_t n_ranks = 1;
  };

  // The communicator of the event's process group.
  const Communicator& CommunicatorOf(const KinetoEvent& event) {
    const auto [place, inserted] = communicators_.try_emplace(event.group_name);
    if (inserted) {
      const CommunicatorInfo info = GroupInfo(event);
      place->second = {section_.Communicator(event.group_name, info, event.begin_ns), info.n_ranks};
      section_.Unfilled("nodes", "1");
    }
    return place->second;
  }

  // Size and rank of a group: from the event, else from the file's list of groups, else those of the job.
  CommunicatorInfo GroupInfo(const KinetoEvent& event) {
    std::vector<int64_t> ranks;
    int64_t size = event.group_size;
    for (const KinetoProcessGroup& group : file_.groups) {
      if (group.name != event.group_name) continue;
      ranks = group.ranks;
      if (size <= 0) size = group.size;
    }
    const bool stated = size <= 0 && section_.SizeIsStated();
    if (size <= 0) size = UntoldSize();
    // If the user stated a size, a rank beyond it is kept: ImportFile then refuses the size as too small.
    const int64_t last = stated ? INT16_MAX : size - 1;
    const int64_t rank = std::clamp<int64_t>(RankInGroup(event, ranks), 0, last);
    return {IdOfProcessGroup(event.group_name, ranks), static_cast<int32_t>(rank),
            static_cast<int32_t>(std::min<int64_t>(size, UINT16_MAX)), 1};
  }

  // The size of a group that the file does not state: what the user stated, else the job's.
  int64_t UntoldSize() {
    if (stated_size_ > 0 || file_.world <= 0) {
      section_.CountUntoldSize();
      return section_.UntoldSize();
    }
    Unfilled("group size", "the job's world size");
    return file_.world;
  }

  // Returns this rank's number in the group: its place among the members, else computed from start and
  // stride, else the rank in the job.
  int64_t RankInGroup(const KinetoEvent& event, const std::vector<int64_t>& ranks) const {
    const auto place = std::find(ranks.begin(), ranks.end(), file_.rank);
    if (place != ranks.end()) return place - ranks.begin();
    if (event.rank_start >= 0 && event.rank_stride > 0)
      return (file_.rank - event.rank_start) / event.rank_stride;
    return file_.rank;
  }

  // ---- records ----

  // Appends a call with the information of its events and kernels.
  void AppendCall(const Call& call) {
    const KinetoEvent& event = *call.event;
    const Communicator& communicator = CommunicatorOf(event);
    ImportedCall imported;
    IssuedCall& issued = imported.issued;
    issued.call.collective = call.collective;
    issued.call.data_type = TypeOf(event);
    issued.call.bytes = BytesOf(call, communicator.n_ranks, issued.call.data_type);
    issued.root_or_peer = PeerOf(call);
    issued.issued_ns = event.begin_ns;
    FillFromKernels(call, imported);
    section_.Append(communicator.number, imported);
  }

  // The element type from the arguments; float where they have none.
  DataType TypeOf(const KinetoEvent& event) {
    if (const auto type = DataTypeOfPyTorch(event.data_type.empty() ? event.input_type : event.data_type))
      return *type;
    Unfilled("data type", "float");
    return DataType::kFloat32;
  }

  // NCCL's total: from the number of elements in the arguments where it is given, else from the first tensor.
  // Of a gather the larger number is the total: "nccl2" states the list of outputs as the call's input.
  uint64_t BytesOf(const Call& call, int32_t n_ranks, DataType type) {
    const KinetoEvent& event = *call.event;
    const bool gathers = call.collective == Collective::kAllGather;
    int64_t elements = gathers && event.out_elements >= 0 ? std::max(event.in_elements, event.out_elements)
                                                          : event.in_elements;
    if (elements < 0 && event.input_elements >= 0) elements = event.input_elements * (gathers ? n_ranks : 1);
    if (elements < 0) {
      Unfilled("bytes", "0");
      return 0;
    }
    return static_cast<uint64_t>(elements) * ElementBytes(type);
  }

  // Peer of a send or receive. The trace does not contain roots, so a root becomes 0.
  int32_t PeerOf(const Call& call) {
    if (call.collective == Collective::kSend) return static_cast<int32_t>(call.event->destination_rank);
    if (call.collective == Collective::kRecv) return static_cast<int32_t>(call.event->source_rank);
    if (call.collective != Collective::kBroadcast && call.collective != Collective::kReduce) return -1;
    Unfilled("root", "0");
    return 0;
  }

  // Fills in the time span of the call's kernels, their stream and, for collectives, the number of channels:
  // the grid has one block for each.
  void FillFromKernels(const Call& call, ImportedCall& imported) {
    if (foreign_) imported.issued.duration_ns = call.event->duration_ns;
    if (foreign_) return;
    if (call.kernels.empty()) {
      Unfilled("duration", "none");
      return;
    }
    int64_t begin = INT64_MAX;
    int64_t end = INT64_MIN;
    for (const KinetoEvent* kernel : call.kernels) {
      begin = std::min(begin, kernel->begin_ns);
      end = std::max(end, kernel->end_ns());
    }
    imported.issued.duration_ns = end - begin;
    const KinetoEvent& kernel = *call.kernels.front();
    if (kernel.symmetric) imported.issued.coverage = Coverage::kSymmetricKernel;
    imported.stream = static_cast<uint32_t>(std::max<int64_t>(kernel.stream, 0));
    if (call.collective < Collective::kSendRecv)
      imported.chosen.channels = static_cast<uint8_t>(std::clamp<int64_t>(kernel.grid, 0, 64));
  }

  // Marks the training steps. A step's event has a name such as "ProfilerStep#12".
  void AppendSteps() {
    for (const KinetoEvent& step : file_.steps) {
      const uint64_t number = std::strtoull(step.name.c_str() + step.name.find('#') + 1, nullptr, 10);
      section_.AppendStep({.marked_ns = step.begin_ns, .step = number});
    }
  }

  void Unfilled(const std::string& field, const std::string& instead) { section_.Unfilled(field, instead); }

  // The events' times count from the file's base, which is real time.
  TraceSection Section() {
    TraceSection section = section_.Finish();
    section.rank = static_cast<int32_t>(file_.rank);
    section.world = static_cast<int32_t>(std::max<int64_t>(file_.world, 0));
    section.library = file_.nccl_version.empty() ? "" : "NCCL " + file_.nccl_version;
    if (foreign_) section.library = Backend();
    if (calls_.empty()) return section;
    const int64_t first = calls_.front().event->begin_ns;
    const int64_t last = calls_.back().event->end_ns();
    section.opened = {first, first + file_.base_ns};
    section.closed_at = {last, last + file_.base_ns};
    return section;
  }

  // The backend of the first call that is not one of NCCL.
  std::string Backend() const {
    const std::string& name = file_.others.front().name;
    return name.substr(0, name.find(':'));
  }

  void NoteOtherBackends(std::vector<std::string>& notes) const {
    if (foreign_)
      notes.push_back(
          fmt::format("calls of the backend {}, not of NCCL; their times are the host's", Backend()));
    else if (!file_.others.empty())
      notes.push_back(fmt::format("{} of the backend {} beside NCCL: left out",
                                  Counted(file_.others.size(), "call"), Backend()));
  }

  // Builds the trace and lists the fields that the file does not contain.
  Imported Result() {
    Imported imported;
    const uint64_t calls = calls_.size();
    for (const char* field : {"algorithm", "protocol", "role", "stage"})
      section_.Unfilled(field, "unknown", calls);
    section_.Unfilled("reduction operator", "sum", calls);
    imported.unfilled = section_.TakeUnfilled();
    imported.frameworks = file_.frameworks.marks();
    for (const auto& [name, count] : skipped_)
      imported.notes.push_back(fmt::format("{} '{}' without data: left out", Counted(count, "event"), name));
    if (stray_kernels_ > 0)
      imported.notes.push_back(fmt::format("{} without a call", Counted(stray_kernels_, "NCCL kernel")));
    NoteOtherBackends(imported.notes);
    imported.notes.push_back("one rank only: replay issues its calls on every rank");
    imported.trace = TraceOfOne(Section());
    const bool communicates = foreign_ || !file_.kernels.empty();
    if (communicates) imported.device = DeviceTimeOf(file_);
    return imported;
  }

  const KinetoFile& file_;
  int32_t stated_size_;  // ImportOptions::group_size
  std::vector<Call> calls_;
  bool foreign_ = false;  // true: the calls are those of another backend
  RankSection section_;
  std::map<std::string, Communicator> communicators_;
  std::map<std::string, uint64_t> skipped_;
  uint64_t stray_kernels_ = 0;
};

// Recognises a file by the keys of a Chrome trace.
class Kineto final : public TraceImporter {
 public:
  std::string_view name() const override { return "kineto"; }
  std::string_view sentence() const override {
    return "PyTorch profiler trace (Chrome JSON, plain or gzipped)";
  }
  bool Recognises(std::string_view head) const override {
    const size_t first = head.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && head[first] == '{' &&
           (head.find("\"traceEvents\"") != std::string_view::npos ||
            head.find("\"schemaVersion\"") != std::string_view::npos);
  }
  Result<Imported> Import(const std::string& path, const ImportOptions& options) const override {
    DYNAMICCL_TRY(const KinetoFile file, ReadKinetoFile(path));
    if (!file.comms.empty() || !file.annotations.empty() || !file.others.empty())
      return Conversion(file, options).Run();
    // A profile of the device's activities alone has NCCL's kernels, but not the calls that launched them.
    const bool kernels_alone = !file.kernels.empty();
    if (options.needs_calls)
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: no collectives in this trace{}",
                                path, file.bytes, kernels_alone ? ", only NCCL's kernels" : ""),
                      kernels_alone ? "record with torch.profiler and activities of the CPU and of CUDA"
                                    : "record with torch.profiler in a process that uses the nccl backend");
    Imported alone;
    alone.device = DeviceTimeOf(file);
    alone.frameworks = file.frameworks.marks();
    alone.notes.push_back("no collectives in this profile");
    if (kernels_alone) alone.unfilled.push_back({"calls", file.kernels.size(), "none"});
    return alone;
  }
};

}  // namespace

const TraceImporter& KinetoImporter() {
  static const Kineto importer;
  return importer;
}

}  // namespace dynamiccl
