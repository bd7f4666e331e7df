// SPDX-License-Identifier: Apache-2.0
// A SAX parse of the whole file. A stack of keys says where a value stands; only values under "traceEvents",
// "distributedInfo" and a few top-level keys are kept, and an event only when its name matters.
#include "traces/import/kineto_events.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "traces/import/gzip_stream.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

// "1234.5678" microseconds as nanoseconds, without rounding through a double (epoch times have 16 digits
// before the point).
int64_t MicrosecondsToNanoseconds(std::string_view text) {
  const size_t point = text.find('.');
  int64_t whole = 0;
  std::from_chars(text.data(), text.data() + std::min(point, text.size()), whole);
  if (text.find_first_of("eE") != std::string_view::npos)
    return static_cast<int64_t>(std::stod(std::string(text)) * 1000);
  int64_t fraction = 0;
  int64_t unit = 100;
  for (size_t i = point == std::string_view::npos ? text.size() : point + 1; i < text.size() && unit > 0;
       ++i, unit /= 10) {
    fraction += (text[i] - '0') * unit;
  }
  const int64_t limit = INT64_MAX / 2000;
  return std::clamp(whole, -limit, limit) * 1000 + (text.starts_with('-') ? -fraction : fraction);
}

// A scalar as the file has it: text for strings and numbers alike (old releases write some numbers as
// strings).
int64_t ToInteger(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct NumberArgument {
  std::string_view key;
  int64_t KinetoEvent::*member;
};
constexpr NumberArgument kNumberArguments[] = {{"correlation", &KinetoEvent::correlation},
                                               {"stream", &KinetoEvent::stream},
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

class Handler : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t value) override { return Scalar(fmt::format_int(value).str()); }
  bool number_unsigned(uint64_t value) override { return Scalar(fmt::format_int(value).str()); }
  bool number_float(double, const std::string& text) override { return Scalar(text); }
  bool string(std::string& value) override { return Scalar(value); }
  bool binary(binary_t&) override { return true; }

  bool key(std::string& name) override {
    keys_.back() = std::move(name);
    return true;
  }
  bool start_object(size_t) override {
    if (InEvents() && keys_.size() == 2) event_ = {};
    if (InGroups() && keys_.size() == 3) group_ = {};
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    if (InEvents() && keys_.size() == 2) TakeEvent();
    if (InGroups() && keys_.size() == 3) file_.groups.push_back(group_);
    return true;
  }
  // An array has an empty key, so that depth alone tells where a value stands.
  bool start_array(size_t) override {
    keys_.emplace_back();
    if (InEvents() && keys_.size() == 6 && keys_[3] == "Input Dims") ++tensor_;
    return true;
  }
  bool end_array() override {
    keys_.pop_back();
    if (InEvents() && keys_.size() == 4 && keys_[3] == "Input Dims") tensor_ = -1;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    error_position_ = position;
    error_ = error.what();
    return false;
  }

  KinetoFile& file() { return file_; }
  const std::optional<std::string>& error() const { return error_; }
  size_t error_position() const { return error_position_; }
  bool saw_events() const { return saw_events_; }

 private:
  // keys_[0] is the key in the root object, once the root has begun: {"traceEvents": [ {event} ]} has keys
  // "traceEvents", "", then the event's own key.
  bool InEvents() {
    const bool inside = keys_.size() >= 2 && keys_[0] == "traceEvents";
    saw_events_ |= inside;
    return inside;
  }
  bool InGroups() const {
    return keys_.size() >= 3 && keys_[0] == "distributedInfo" && keys_[1] == "pg_config";
  }

  bool Scalar(const std::string& text) {
    if (InEvents()) {
      if (keys_.size() == 3)
        EventField(text);
      else if (keys_.size() >= 4 && keys_[2] == "args")
        Argument(text);
    } else if (InGroups()) {
      GroupField(text);
    } else if (keys_.size() == 1 && keys_[0] == "baseTimeNanoseconds") {
      file_.base_ns = ToInteger(text);
    } else if (keys_.size() == 2 && keys_[0] == "distributedInfo") {
      if (keys_[1] == "rank") file_.rank = ToInteger(text);
      if (keys_[1] == "world_size") file_.world = ToInteger(text);
      if (keys_[1] == "nccl_version") file_.nccl_version = text;
    }
    return true;
  }

  void EventField(const std::string& text) {
    const std::string& key = keys_[2];
    if (key == "name")
      event_.name = text;
    else if (key == "cat")
      event_.category = text;
    else if (key == "ts")
      event_.begin_ns = MicrosecondsToNanoseconds(text);
    else if (key == "dur")
      event_.duration_ns = MicrosecondsToNanoseconds(text);
    else if (key == "tid")
      event_.thread = ToInteger(text);
  }

  // Of an array, the first value counts; of "Input Dims", the product of the first tensor's dimensions.
  void Argument(const std::string& text) {
    const std::string& key = keys_[3];
    if (key == "Input Dims") {
      int64_t& elements = event_.input_elements;
      // A product beyond 64 bits is no tensor: it counts as absent.
      if (tensor_ == 0 && __builtin_mul_overflow(std::max<int64_t>(elements, 1), ToInteger(text), &elements))
        elements = -1;
      return;
    }
    for (const NumberArgument& argument : kNumberArguments) {
      if (argument.key == key && event_.*argument.member < 0) event_.*argument.member = ToInteger(text);
    }
    for (const TextArgument& argument : kTextArguments) {
      if (argument.key == key && (event_.*argument.member).empty()) event_.*argument.member = text;
    }
  }

  void GroupField(const std::string& text) {
    if (keys_.size() < 4) return;
    const std::string& key = keys_[3];
    if (key == "pg_name")
      group_.name = text;
    else if (key == "pg_size")
      group_.size = ToInteger(text);
    else if (key == "ranks")
      group_.ranks.push_back(ToInteger(text));
  }

  void TakeEvent() {
    const std::string& name = event_.name;
    const bool on_gpu = event_.category == "kernel" || event_.category == "Kernel";
    if (name == "record_param_comms")
      file_.comms.push_back(std::move(event_));
    else if (name.starts_with("nccl:") && event_.category == "user_annotation")
      file_.annotations.push_back(std::move(event_));
    else if (on_gpu && name.starts_with("nccl"))
      file_.kernels.push_back(std::move(event_));
    else if (name.starts_with("ProfilerStep#") && event_.category == "user_annotation")
      file_.steps.push_back(std::move(event_));
    else if (event_.correlation >= 0 && !on_gpu && name.find("Launch") != std::string::npos) {
      file_.launches[event_.correlation] = {event_.begin_ns, event_.thread};
    }
  }

  KinetoFile file_;
  std::vector<std::string> keys_;
  KinetoEvent event_;
  KinetoProcessGroup group_;
  int tensor_ = -1;  // index of the tensor inside "Input Dims"
  bool saw_events_ = false;
  std::optional<std::string> error_;
  size_t error_position_ = 0;
};

}  // namespace

Result<KinetoFile> ReadKinetoFile(const std::string& path) {
  DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
  Handler handler;
  const bool parsed = Json::sax_parse(stream.stream(), &handler);
  DYNAMICCL_CHECK_OK(stream.status());
  if (!parsed) {
    return MakeError(ErrorKind::kCorrupt, "{}: byte {}: {}", path, handler.error_position(),
                     handler.error().value_or("not JSON"));
  }
  if (!handler.saw_events())
    return MakeError(ErrorKind::kInvalidArgument, "{}: no \"traceEvents\": not a Kineto trace", path);
  return std::move(handler.file());
}

}  // namespace dynamiccl
