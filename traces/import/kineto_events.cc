// SPDX-License-Identifier: Apache-2.0
// The file is read as a stream of pieces. An event's first members show whether it matters, because Kineto
// writes category and name first. The rest of most events is never examined.
#include "traces/import/kineto_events.h"
#include "traces/import/nccl_kernel_name.h"

#include <algorithm>

#include "traces/import/gzip_stream.h"
#include "traces/import/json_document.h"
#include "traces/import/json_members.h"
#include "traces/import/json_pieces.h"
#include "traces/import/pytorch_calls.h"

namespace dynamiccl {
namespace {

// An argument of an event, and the member that it fills.
struct NumberArgument {
  std::string_view key;
  int64_t KinetoEvent::*member;
};
constexpr NumberArgument kNumberArguments[] = {{"stream", &KinetoEvent::stream},
                                               {"grid", &KinetoEvent::grid},
                                               {"In msg nelems", &KinetoEvent::in_elements},
                                               {"Out msg nelems", &KinetoEvent::out_elements},
                                               {"Group size", &KinetoEvent::group_size},
                                               {"Src Rank", &KinetoEvent::source_rank},
                                               {"Dst Rank", &KinetoEvent::destination_rank},
                                               {"Global rank start", &KinetoEvent::rank_start},
                                               {"Global rank stride", &KinetoEvent::rank_stride}};

struct TextArgument {
  std::string_view key;
  std::string KinetoEvent::*member;
};
constexpr TextArgument kTextArguments[] = {{"Collective name", &KinetoEvent::collective_name},
                                           {"dtype", &KinetoEvent::data_type},
                                           {"Process Group Name", &KinetoEvent::group_name},
                                           {"Process Group ID", &KinetoEvent::group_name},
                                           {"Input type", &KinetoEvent::input_type}};

// The role of an event in this reader.
enum class EventUse { kNone, kComm, kAnnotation, kOther, kKernel, kComputing, kStep, kLaunch };

// Decides by category and name. "Launch" in the name is a runtime call that launches kernels.
EventUse UseOf(std::string_view category, std::string_view name) {
  const bool on_gpu = category == "kernel" || category == "Kernel";
  if (name == "record_param_comms") return EventUse::kComm;
  if (on_gpu) return name.starts_with("nccl") ? EventUse::kKernel : EventUse::kComputing;
  if (category == "gpu_memcpy" || category == "gpu_memset") return EventUse::kComputing;
  if (category == "user_annotation") {
    if (IsOfNcclBackend(name)) return EventUse::kAnnotation;
    if (name.starts_with("ProfilerStep#")) return EventUse::kStep;
    if (std::ranges::count(kOtherBackends, name.substr(0, name.find(':'))) > 0) return EventUse::kOther;
  }
  return name.find("Launch") != std::string_view::npos ? EventUse::kLaunch : EventUse::kNone;
}

// The members of an event as the file has them; empty: absent.
struct RawEvent {
  std::string_view category;
  std::string_view name;
  std::string_view begin;
  std::string_view duration;
  std::string_view process;  // for a kernel: its device
  std::string_view thread;
  std::string_view arguments;
};

struct RawMember {
  std::string_view key;
  std::string_view RawEvent::*member;
};
constexpr RawMember kRawMembers[] = {{"cat", &RawEvent::category},  {"name", &RawEvent::name},
                                     {"ts", &RawEvent::begin},      {"dur", &RawEvent::duration},
                                     {"pid", &RawEvent::process},   {"tid", &RawEvent::thread},
                                     {"args", &RawEvent::arguments}};

std::string_view Unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

// Reads one file. The path must outlive the object. Events that do not concern NCCL are skipped unread, so
// damage inside them may go unnoticed.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<KinetoFile> Read() {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path_));
    JsonPieces pieces(stream, path_);
    DYNAMICCL_CHECK_OK(pieces.ReadObject(
        [this](std::string_view key) { return UseOfMember(key); },
        [this](std::string_view key, std::string_view text, uint64_t offset) {
          return key == "traceEvents" ? TakeEvent(text, offset) : TakeMember(key, text, offset);
        }));
    if (!saw_events_)
      return MakeError(ErrorKind::kInvalidArgument, "{}: byte {}: no \"traceEvents\": not a Kineto trace",
                       path_, pieces.position());
    std::sort(file_.launches.begin(), file_.launches.end());
    file_.bytes = pieces.position();
    return std::move(file_);
  }

 private:
  JsonMemberUse UseOfMember(std::string_view key) {
    saw_events_ |= key == "traceEvents";
    if (key == "traceEvents") return JsonMemberUse::kElements;
    const bool wanted = key == "distributedInfo" || key == "baseTimeNanoseconds";
    return wanted ? JsonMemberUse::kWhole : JsonMemberUse::kSkip;
  }

  Status Fail(uint64_t offset, const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "{}: byte {}: {}", path_, offset, what);
  }

  // Reads the head's members about the job.
  Status TakeMember(std::string_view key, std::string_view text, uint64_t offset) {
    if (key == "baseTimeNanoseconds") file_.base_ns = JsonInteger(text).value_or(0);
    if (key != "distributedInfo") return {};
    JsonDocument document;
    const JsonValue info = document.Parse(text).value_or(JsonValue());
    if (!info.is_object()) return Fail(offset, "\"distributedInfo\" is not an object of JSON");
    file_.rank = IntegerOf(info, "rank", -1);
    file_.world = IntegerOf(info, "world_size", -1);
    file_.nccl_version = info["nccl_version"].Text();
    info["pg_config"].EachElement([this](JsonValue group) { TakeGroup(group); });
    return {};
  }

  void TakeGroup(JsonValue json) {
    KinetoProcessGroup group;
    group.name = json["pg_name"].Text();
    group.size = IntegerOf(json, "pg_size", 0);
    file_.frameworks.NoteGroup(json["pg_desc"].Text());
    json["ranks"].EachElement([&](JsonValue rank) { group.ranks.push_back(rank.Integer().value_or(-1)); });
    file_.groups.push_back(std::move(group));
  }

  // Classifies an event as soon as its category and name are known.
  Status TakeEvent(std::string_view text, uint64_t offset) {
    RawEvent raw;
    EventUse use = EventUse::kNone;
    bool judged = false;
    JsonMembers members(text);
    while (const auto member = members.Next()) {
      for (const RawMember& row : kRawMembers) {
        if (row.key == member->key) raw.*row.member = member->value;
      }
      if (judged || raw.category.empty() || raw.name.empty()) continue;
      judged = true;
      use = Judge(raw);
      if (use == EventUse::kNone) return {};
    }
    if (members.broken()) return Fail(offset + members.position(), "an event was expected");
    if (!judged) use = Judge(raw);
    return use == EventUse::kNone ? Status() : Keep(use, raw, offset);
  }

  // Returns the event's role. Events without one may still show the framework.
  EventUse Judge(const RawEvent& raw) {
    const EventUse use = UseOf(Unquoted(raw.category), Unquoted(raw.name));
    if (use == EventUse::kNone) file_.frameworks.NoteName(Unquoted(raw.name));
    return use;
  }

  // Reads an event that matters and puts it into its list.
  Status Keep(EventUse use, const RawEvent& raw, uint64_t offset) {
    KinetoEvent event;
    const auto begin = JsonMicroseconds(raw.begin.empty() ? "0" : raw.begin);
    const auto duration = JsonMicroseconds(raw.duration.empty() ? "0" : raw.duration);
    if (!begin || !duration) return Fail(offset, "an event whose time is no number");
    if (use == EventUse::kComputing || use == EventUse::kKernel) NoteDevice(raw.process);
    if (use == EventUse::kComm || use == EventUse::kAnnotation || use == EventUse::kOther)
      DYNAMICCL_CHECK_OK(CheckProcess(raw.process, offset));
    if (use == EventUse::kComputing) {
      file_.computing.push_back({*begin, *begin + *duration});
      return {};
    }
    event.begin_ns = *begin;
    event.duration_ns = *duration;
    event.thread = JsonInteger(raw.thread).value_or(-1);
    if (!raw.arguments.empty()) DYNAMICCL_CHECK_OK(TakeArguments(use, raw.arguments, offset, event));
    if (use == EventUse::kLaunch) {
      if (event.correlation >= 0) file_.launches.push_back({event.correlation, event.begin_ns, event.thread});
      return {};
    }
    if (use != EventUse::kComm && use != EventUse::kKernel) event.name = JsonText(raw.name);
    if (use == EventUse::kKernel) {
      const std::string name = JsonText(raw.name);
      event.symmetric = IsSymmetricKernel(name);
      ++file_.kernel_names[name];
    }
    List(use).push_back(std::move(event));
    return {};
  }

  // Refuses calls of a second process: the file joins profiles of several ranks, whose calls would be counted
  // as those of one.
  Status CheckProcess(std::string_view process, uint64_t offset) {
    if (process_.empty()) process_ = process;
    if (process.empty() || process == process_) return {};
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{}: byte {}: a call of process {} after calls of process {}: profiles of "
                              "several ranks in one file",
                              path_, offset, process, process_),
                    "give each rank's profile as a file of its own");
  }

  void NoteDevice(std::string_view device) {
    if (device_.empty()) device_ = device;
    file_.several_devices |= device_ != device;
  }

  std::vector<KinetoEvent>& List(EventUse use) {
    if (use == EventUse::kComm) return file_.comms;
    if (use == EventUse::kKernel) return file_.kernels;
    if (use == EventUse::kOther) return file_.others;
    return use == EventUse::kStep ? file_.steps : file_.annotations;
  }

  // Reads the arguments of an event. Of a launch only the correlation is read.
  Status TakeArguments(EventUse use, std::string_view arguments, uint64_t offset, KinetoEvent& event) {
    JsonMembers members(arguments);
    while (const auto member = members.Next()) {
      if (member->key == "correlation")
        event.correlation = JsonInteger(member->value).value_or(-1);
      else if (use != EventUse::kLaunch)
        TakeArgument(*member, event);
    }
    if (members.broken()) return Fail(offset, "an event with broken arguments");
    return {};
  }

  // Takes the first value of an array; for "Input Dims" the product of the first tensor's dimensions.
  void TakeArgument(const JsonMember& member, KinetoEvent& event) {
    if (member.key == "Process Group Description") file_.frameworks.NoteGroup(Unquoted(member.value));
    if (member.key == "Input Dims") {
      event.input_elements = ElementsOfFirstTensor(member.value);
      return;
    }
    for (const NumberArgument& argument : kNumberArguments) {
      if (argument.key == member.key)
        event.*argument.member = JsonInteger(FirstScalar(member.value)).value_or(-1);
    }
    for (const TextArgument& argument : kTextArguments) {
      if (argument.key == member.key && (event.*argument.member).empty())
        event.*argument.member = JsonText(FirstScalar(member.value));
    }
  }

  // Returns the value itself, or the first value inside its arrays. All opening brackets are skipped at once,
  // so that the time does not grow with the square of their number.
  static std::string_view FirstScalar(std::string_view value) {
    if (!value.starts_with('[')) return value;
    const size_t first = value.find_first_not_of("[ \t\r\n");
    size_t at = 0;
    return NextJsonElement(value.substr(value.rfind('[', first)), at).value_or("");
  }

  // Returns 12 for [[3,4],[5]], whose first tensor has 3 x 4 elements. A value without dimensions counts as
  // absent. So does a product beyond 64 bits, which cannot be a tensor's size.
  static int64_t ElementsOfFirstTensor(std::string_view dimensions) {
    size_t first = 0;
    const auto tensor = NextJsonElement(dimensions, first);
    if (!tensor) return -1;
    int64_t elements = -1;
    size_t at = 0;
    while (const auto dimension = NextJsonElement(*tensor, at)) {
      const int64_t size = JsonInteger(*dimension).value_or(-1);
      if (size < 0 || __builtin_mul_overflow(std::max<int64_t>(elements, 1), size, &elements)) return -1;
    }
    return elements;
  }

  const std::string& path_;
  KinetoFile file_;
  std::string device_;   // device of the first kernel
  std::string process_;  // process of the first call
  bool saw_events_ = false;
};

}  // namespace

Result<KinetoFile> ReadKinetoFile(const std::string& path) {
  return Reader(path).Read();
}

}  // namespace dynamiccl
