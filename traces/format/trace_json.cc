// SPDX-License-Identifier: Apache-2.0
// A section is one line, followed by a line for each of its records. Enumerations are written by name. A
// value for which this build has no name is written as a number, so no information is lost.
#include "traces/format/trace_json.h"

#include <algorithm>
#include <iterator>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/coverage.h"
#include "src/collective/data_type.h"
#include "src/collective/protocol.h"
#include "src/collective/reduce_op.h"
#include "src/collective/role.h"
#include "traces/format/json_lines.h"
#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

constexpr const char* kMagic = "dynamiccl-trace";
constexpr int kVersion = 1;

// Names of the record kinds by number, from 0.
constexpr const char* kKindNames[] = {"None",
#define DYNAMICCL_RECORD_KIND(name, number) #name,
                                      DYNAMICCL_RECORD_KINDS(DYNAMICCL_RECORD_KIND)
#undef DYNAMICCL_RECORD_KIND
};
constexpr const char* kDurationSourceNames[] = {"none",          "imported",   "stream",
                                                "kernel_stamps", "event_pair", "kernel_arrival"};

// Names of an enumeration, for reading and writing alike. `base` is the number of names[0].
struct NameList {
  std::vector<std::string> names;
  int base = 0;
};

// The names of `count` values from `base` on.
template <typename Enum>
NameList NamesOf(int base, int count) {
  NameList list{{}, base};
  for (int i = 0; i < count; ++i) list.names.emplace_back(Name(static_cast<Enum>(base + i)));
  return list;
}

// The names of all enumerations of a record.
struct Vocabulary {
  NameList kinds{{std::begin(kKindNames), std::end(kKindNames)}};
  NameList collectives = NamesOf<Collective>(0, kCollectives);
  NameList data_types = NamesOf<DataType>(0, kDataTypes);
  NameList ops = NamesOf<ReduceOp>(0, kReduceOps + 1);
  NameList algorithms = NamesOf<Algorithm>(0, kAlgorithms);
  NameList protocols = NamesOf<Protocol>(0, kProtocols);
  NameList phases = NamesOf<Phase>(0, kPhases);
  NameList roles = NamesOf<Role>(0, kRoles);
  NameList stages = NamesOf<ZeroStage>(0, kZeroStages);
  NameList decided_by = NamesOf<DecidedBy>(0, kDeciders);
  NameList coverages = NamesOf<Coverage>(0, kCoverages);
  NameList duration_sources{{std::begin(kDurationSourceNames), std::end(kDurationSourceNames)}};
};

// The vocabulary; created at the first use.
const Vocabulary& Words() {
  static const Vocabulary vocabulary;
  return vocabulary;
}

// The name of a number, or the number itself where it has none.
Json NameOrNumber(const NameList& list, int number) {
  const int index = number - list.base;
  if (index < 0 || index >= static_cast<int>(list.names.size())) return number;
  return list.names[static_cast<size_t>(index)];
}

// The number that belongs to a name. A number is accepted as it is if it fits the field.
template <typename T>
T NumberOf(const NameList& list, const Json& json, const char* field) {
  const Json& value = json.at(field);
  if (value.is_number_integer()) {
    return static_cast<T>(
        IntegerField(json, field, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  const auto name = value.get<std::string>();
  for (size_t i = 0; i < list.names.size(); ++i) {
    if (list.names[i] == name) return static_cast<T>(list.base + static_cast<int>(i));
  }
  throw LineError{fmt::format("'{}' is \"{}\", which is no {}", field, name, field)};
}

// The fields of a record with their JSON names: X(member, default, name list or nullptr). Kind, time and
// labels are missing here, because they have forms of their own.
#define DYNAMICCL_RECORD_FIELDS(X)                 \
  X(call_number, 0, nullptr)                       \
  X(bytes, 0, nullptr)                             \
  X(communicator, 0, nullptr)                      \
  X(stream, 0, nullptr)                            \
  X(root_or_peer, -1, nullptr)                     \
  X(index_in_group, 0, nullptr)                    \
  X(group_size, 0, nullptr)                        \
  X(collective, 0, &Words().collectives)           \
  X(data_type, 0, &Words().data_types)             \
  X(op, 0, &Words().ops)                           \
  X(algorithm, -1, &Words().algorithms)            \
  X(protocol, -1, &Words().protocols)              \
  X(channels, 0, nullptr)                          \
  X(decided_by, 0, &Words().decided_by)            \
  X(table_version, 0, nullptr)                     \
  X(labelled_stage, 4, &Words().stages)            \
  X(duration_source, 0, &Words().duration_sources) \
  X(coverage, 0, &Words().coverages)               \
  X(duration_ns, 0, nullptr)

// Writes a field unless it has its empty value. Example of a record:
//     {"kind":"Collective","issued_ns":1000,"bytes":4096,"collective":"AllReduce","data_type":"float32"}
template <typename T>
void PutField(Json& json, const char* name, T value, T absent, const NameList* list) {
  if (value == absent) return;
  json[name] = list == nullptr ? Json(value) : NameOrNumber(*list, value);
}

// Reads a field; a missing one has its empty value.
template <typename T>
void TakeField(const Json& json, const char* name, T& value, T absent, const NameList* list) {
  value = absent;
  const auto found = json.find(name);
  if (found == json.end()) return;
  if (list != nullptr) {
    value = NumberOf<T>(*list, json, name);
  } else if constexpr (sizeof(T) == 8) {
    value = UnsignedField(json, name);
  } else {
    value = static_cast<T>(
        IntegerField(json, name, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
}

Json RecordToJson(const TraceRecord& record) {
  Json json = {{"kind", NameOrNumber(Words().kinds, record.kind)}, {"issued_ns", record.issued_ns}};
#define DYNAMICCL_PUT_FIELD(member, absent, list) \
  PutField(json, #member, record.member, static_cast<decltype(record.member)>(absent), list);
  DYNAMICCL_RECORD_FIELDS(DYNAMICCL_PUT_FIELD)
#undef DYNAMICCL_PUT_FIELD
  PutField(json, "phase", record.labels & 7, 0, &Words().phases);
  PutField(json, "role", record.labels >> 3, 0, &Words().roles);
  return json;
}

// A record in text has no checksum and no `commit`, the mark of a complete record. Seal() adds both.
TraceRecord RecordFromJson(const Json& json) {
  TraceRecord record{};
  record.kind = NumberOf<uint16_t>(Words().kinds, json, "kind");
  record.issued_ns = IntegerField(json, "issued_ns", INT64_MIN, INT64_MAX);
#define DYNAMICCL_TAKE_FIELD(member, absent, list) \
  TakeField(json, #member, record.member, static_cast<decltype(record.member)>(absent), list);
  DYNAMICCL_RECORD_FIELDS(DYNAMICCL_TAKE_FIELD)
#undef DYNAMICCL_TAKE_FIELD
  int phase = 0;
  int role = 0;
  TakeField(json, "phase", phase, 0, &Words().phases);
  TakeField(json, "role", role, 0, &Words().roles);
  if (phase < 0 || phase > 7 || role < 0 || role > 31) throw LineError{"'phase' or 'role' is out of range"};
  record.labels = static_cast<uint8_t>(phase | (role << 3));
  Seal(record);
  return record;
}

// An anchor is [monotonic ns, realtime ns].
Json AnchorToJson(const ClockAnchor& anchor) {
  return {anchor.monotonic_ns, anchor.realtime_ns};
}

ClockAnchor AnchorField(const Json& json, const char* name) {
  const Json& anchor = json.at(name);
  if (!anchor.is_array() || anchor.size() != 2 || !anchor[0].is_number_integer() ||
      !anchor[1].is_number_integer()) {
    throw LineError{fmt::format("'{}' is not [monotonic ns, realtime ns]", name)};
  }
  return {anchor[0].get<int64_t>(), anchor[1].get<int64_t>()};
}

// Writes for example {"exit_code":3} or {"signal":9,"by_launcher":true}.
Json EndToJson(const ProcessEnd& end) {
  Json json{{end.how == ProcessEnd::How::kKilled ? "signal" : "exit_code", end.number}};
  if (end.by_launcher) json["by_launcher"] = true;
  return json;
}

ProcessEnd EndFromJson(const Json& json) {
  const bool killed = json.contains("signal");
  return {killed ? ProcessEnd::How::kKilled : ProcessEnd::How::kExited, json.value("by_launcher", false),
          static_cast<uint8_t>(IntegerField(json, killed ? "signal" : "exit_code", 0, UINT8_MAX))};
}

// The line of a section: its description without records.
Json SectionToJson(const TraceSection& section) {
  Json json{{"kind", "section"},
            {"rank", section.rank},
            {"world", section.world},
            {"process_id", section.process_id},
            {"mirrored", section.mirrored()},
            {"imported", (section.flags & kTraceImported) != 0},
            {"host", section.host},
            {"library", section.library},
            {"writer", section.writer},
            {"opened", AnchorToJson(section.opened)},
            {"closed_at", AnchorToJson(section.closed_at)},
            {"closed", section.closed},
            {"lost", section.lost}};
  if (section.replaced > 0) json["replaced"] = section.replaced;
  if (section.order_only()) json["order_only"] = true;
  if (section.groups_unknown()) json["groups_unknown"] = true;
  if (section.end().how != ProcessEnd::How::kNotKnown) json["ended"] = EndToJson(section.end());
  return json;
}

TraceSection SectionFromJson(const Json& json) {
  TraceSection section;
  section.rank = static_cast<int32_t>(IntegerField(json, "rank", -1, INT32_MAX));
  section.world = static_cast<int32_t>(IntegerField(json, "world", 0, INT32_MAX));
  section.process_id = IntegerField(json, "process_id", 0, INT64_MAX);
  section.flags = (json.at("mirrored").get<bool>() ? kTraceMirrored : 0u) |
                  (json.at("imported").get<bool>() ? kTraceImported : 0u) |
                  (json.value("order_only", false) ? kTraceOrderOnly : 0u) |
                  (json.value("groups_unknown", false) ? kTraceGroupsUnknown : 0u);
  if (json.contains("ended")) section.set_end(EndFromJson(json.at("ended")));
  section.host = json.at("host").get<std::string>();
  section.library = json.at("library").get<std::string>();
  section.writer = json.at("writer").get<std::string>();
  section.opened = AnchorField(json, "opened");
  section.closed_at = AnchorField(json, "closed_at");
  section.closed = json.at("closed").get<bool>();
  section.lost = UnsignedField(json, "lost");
  if (json.contains("replaced")) section.replaced = std::min(UnsignedField(json, "replaced"), section.lost);
  return section;
}

}  // namespace

Result<std::string> FormatTraceJson(const Trace& trace) {
  std::string text;
  size_t records = 0;
  DYNAMICCL_CHECK_OK(AppendJsonLine(text, {{"magic", kMagic}, {"version", kVersion}}));
  for (const TraceSection& section : trace.sections) {
    DYNAMICCL_CHECK_OK(AppendJsonLine(text, SectionToJson(section)));
    for (const TraceRecord& record : section.records)
      DYNAMICCL_CHECK_OK(AppendJsonLine(text, RecordToJson(record)));
    records += section.records.size();
  }
  DYNAMICCL_CHECK_OK(AppendEndLine(text, "records", records));
  return text;
}

Result<Trace> ParseTraceJson(std::string_view text, const std::string& name) {
  Trace trace;
  size_t records = 0;
  const auto take = [&](const Json& json) {
    if (json.at("kind") == "section") {
      trace.sections.push_back(SectionFromJson(json));
      return;
    }
    if (trace.sections.empty()) throw LineError{"a record before the first section"};
    trace.sections.back().records.push_back(RecordFromJson(json));
    ++records;
  };
  DYNAMICCL_CHECK_OK(ReadJsonLines(
      text, name,
      {.header = [](const Json& json) { CheckMagic(json, kMagic, kVersion, "trace in JSON lines"); },
       .line = take,
       .counted = "records",
       .count = [&] { return records; }}));
  return trace;
}

}  // namespace dynamiccl
