// SPDX-License-Identifier: Apache-2.0
// Writes and checks settings files. The checksum covers the text with 64 zeros in the checksum's place, so
// that it does not depend on how a JSON library writes numbers.
#include "tools/tune/framework_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "src/base/sha256.h"
#include "src/collective/size_class.h"
#include "tools/tune/deepspeed_settings.h"

namespace dynamiccl {
namespace {

constexpr const char* kSettingsFormat = "dynamiccl-settings";
constexpr int kSettingsVersion = 1;
constexpr size_t kChecksumDigits = 64;
constexpr std::string_view kChecksumKey = "\"checksum\"";
// The largest prefetch depth that is accepted. With a larger one FSDP2 would hold the parameters of more
// modules than most models have, so it is most likely a typo.
constexpr int kMostPrefetch = 8;

enum class Kind { kPositive, kFlag, kDepth, kCount, kElements, kBucket };

// Every setting that the hook knows (plugin/startup/dynamiccl_settings/settings_file.py), and those of the
// trainer and of Megatron-LM.
const std::map<std::string, Kind>& KnownSettings() {
  static const std::map<std::string, Kind> known = {
      {"ddp.bucket_cap_mb", Kind::kPositive},
      {"ddp.first_bucket_mb", Kind::kPositive},
      {"ddp.gradient_as_bucket_view", Kind::kFlag},
      {"ddp.static_graph", Kind::kFlag},
      {"fsdp2.reshard_after_forward", Kind::kFlag},
      {"fsdp2.forward_prefetch", Kind::kDepth},
      {"fsdp2.backward_prefetch", Kind::kDepth},
      {"fsdp2.modules_per_unit", Kind::kCount},
      {"fsdp2.shard_ranks", Kind::kCount},
      {"deepspeed.reduce_bucket_size", Kind::kCount},
      {"deepspeed.allgather_bucket_size", Kind::kCount},
      {"deepspeed.overlap_comm", Kind::kFlag},
      {"deepspeed.stage3_prefetch_bucket_size", Kind::kElements},
      {"deepspeed.stage3_param_persistence_threshold", Kind::kElements},
      {"megatron.ddp_bucket_size", Kind::kCount},
      {"megatron.overlap_grad_reduce", Kind::kFlag},
      {"megatron.overlap_param_gather", Kind::kFlag},
      {"zero.bucket_bytes", Kind::kBucket},
      {"zero.overlap", Kind::kFlag},
      {"zero.prefetch", Kind::kFlag}};
  return known;
}

bool Fits(Kind kind, const Json& value) {
  switch (kind) {
    case Kind::kPositive:
      return value.is_number() && value.get<double>() > 0;
    case Kind::kFlag:
      return value.is_boolean();
    case Kind::kDepth:
      return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kMostPrefetch;
    case Kind::kCount:
      return value.is_number_integer() && value.get<int64_t>() > 0;
    case Kind::kElements:
      return value.is_number_integer() && value.get<int64_t>() >= 0;
    case Kind::kBucket:
      return value == "all" || (value.is_number_integer() && value.get<int64_t>() > 0);
  }
  return false;
}

const char* Describe(Kind kind) {
  switch (kind) {
    case Kind::kPositive:
      return "a number above 0";
    case Kind::kFlag:
      return "true or false";
    case Kind::kDepth:
      return "a whole number from 0 to 8";
    case Kind::kCount:
      return "a whole number above 0";
    case Kind::kElements:
      return "a whole number of elements, 0 or more";
    case Kind::kBucket:
      return "a number of bytes, or all";
  }
  return "";
}

// Returns the place of the checksum's digits in the text; nothing if it has no checksum.
std::optional<size_t> ChecksumPlace(std::string_view text) {
  const size_t key = text.find(kChecksumKey);
  if (key == std::string_view::npos) return std::nullopt;
  const size_t colon = text.find_first_not_of(" \t\r\n", key + kChecksumKey.size());
  if (colon == std::string_view::npos || text[colon] != ':') return std::nullopt;
  const size_t quote = text.find_first_not_of(" \t\r\n", colon + 1);
  if (quote == std::string_view::npos || text[quote] != '"') return std::nullopt;
  return quote + 1;
}

std::string ChecksumOf(std::string text, size_t place) {
  text.replace(place, kChecksumDigits, kChecksumDigits, '0');
  return HexDigestOf(text);
}

Status CheckChecksum(std::string_view text, const std::string& path) {
  const auto place = ChecksumPlace(text);
  if (!place) return {};
  const size_t end = text.find('"', *place);
  if (end == *place + kChecksumDigits &&
      ChecksumOf(std::string(text), *place) == text.substr(*place, kChecksumDigits))
    return {};
  return WithHint(
      MakeError(ErrorKind::kCorrupt, "{}: the checksum does not fit the content", path),
      "the file is damaged or was edited: make it again with `dynamiccl tune`, or remove the line "
      "\"checksum\" where the edit is meant");
}

// Reads the group of one framework.
Status ReadGroup(const Json& group, const std::string& name, const std::string& path,
                 FrameworkValues& values) {
  if (!group.is_object()) return MakeError(ErrorKind::kInvalidArgument, "{}: {} is no object", path, name);
  for (const auto& [member, value] : group.items()) {
    const std::string setting = name + "." + member;
    const auto known = KnownSettings().find(setting);
    if (known == KnownSettings().end())
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: there is no setting {}", path, setting),
                      "docs/formats/settings.md lists the settings");
    if (!Fits(known->second, value))
      return MakeError(ErrorKind::kInvalidArgument, "{}: {} is {}, not {}", path, setting, value.dump(),
                       Describe(known->second));
    values[setting] = value;
  }
  return {};
}

Status CheckHeader(const Json& json, const std::string& path) {
  if (!json.is_object() || json.value("format", Json()) != kSettingsFormat)
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: no settings file", path),
                    "`dynamiccl tune` writes one; its \"format\" is \"dynamiccl-settings\"");
  const Json version = json.value("version", Json());
  if (version == kSettingsVersion) return {};
  return WithHint(MakeError(ErrorKind::kCorrupt, "{}: version {}, this build reads {}", path, version.dump(),
                            kSettingsVersion),
                  "use the dynamiccl that wrote it, or make it again with `dynamiccl tune`");
}

Status ReadMembers(const Json& json, const std::string& path, FrameworkSettings& settings) {
  for (const auto& [key, value] : json.items()) {
    if (key == "format" || key == "version" || key == "checksum") continue;
    if (key == "ddp" || key == "fsdp2" || key == "deepspeed" || key == "megatron" || key == "zero") {
      DYNAMICCL_CHECK_OK(ReadGroup(value, key, path, settings.values));
    } else if (key == "rules" && value.is_string()) {
      settings.rules = value;
    } else if (key == "origin") {
      settings.origin = value;
    } else {
      return MakeError(ErrorKind::kInvalidArgument, "{}: \"{}\" is not known, or of the wrong kind", path,
                       key);
    }
  }
  return {};
}

// Reads a value as a user types it; sizes may be "4M" or "all". A text that is no value becomes a discarded
// Json.
Json ValueOf(const std::string& text, Kind kind) {
  if (kind != Kind::kBucket || text == "all")
    return kind == Kind::kBucket ? Json(text) : Json::parse(text, nullptr, false);
  const auto bytes = ParseBytes(text);
  return bytes ? Json(*bytes) : Json(Json::value_t::discarded);
}

// The shortest text that the trainer reads as this size.
std::string BucketText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto bytes = value.get<uint64_t>();
  const std::string text = FormatBytes(bytes);
  const auto back = ParseBytes(text);
  return back && *back == bytes ? text : std::to_string(bytes);
}

std::string TextOf(const std::string& setting, const Json& value) {
  return setting == "zero.bucket_bytes" ? BucketText(value) : value.dump();
}

// "True" and "False" as Python writes them.
std::string PythonText(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.dump();
}

}  // namespace

std::string FrameworkSettingsText(const FrameworkSettings& settings) {
  Json json{{"format", kSettingsFormat}, {"version", kSettingsVersion}};
  for (const auto& [setting, value] : settings.values) {
    const size_t dot = setting.find('.');
    json[setting.substr(0, dot)][setting.substr(dot + 1)] = value;
  }
  if (!settings.rules.empty()) json["rules"] = settings.rules;
  if (!settings.origin.is_null()) json["origin"] = settings.origin;
  json["checksum"] = std::string(kChecksumDigits, '0');
  std::string text = json.dump(2) + "\n";
  const size_t place = text.rfind(std::string(kChecksumDigits, '0'));
  return text.replace(place, kChecksumDigits, ChecksumOf(text, place));
}

Result<FrameworkSettings> ParseFrameworkSettings(std::string_view text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return WithHint(MakeError(ErrorKind::kCorrupt, "{}: no JSON, or cut", path),
                    "make it again with `dynamiccl tune`");
  DYNAMICCL_CHECK_OK(CheckHeader(json, path));
  DYNAMICCL_CHECK_OK(CheckChecksum(text, path));
  FrameworkSettings settings;
  DYNAMICCL_CHECK_OK(ReadMembers(json, path, settings));
  return settings;
}

Result<FrameworkSettings> ReadFrameworkSettings(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  DYNAMICCL_TRY(FrameworkSettings settings, ParseFrameworkSettings(text, path));
  if (!settings.rules.empty())
    settings.rules = (std::filesystem::absolute(path).parent_path() / settings.rules).lexically_normal();
  return settings;
}

Status AddValue(const std::string& text, FrameworkValues& values) {
  const size_t sign = text.find('=');
  std::string names;
  for (const auto& [setting, kind] : KnownSettings()) {
    const std::string name = setting.substr(setting.find('.') + 1);
    names += (names.empty() ? "" : ", ") + name;
    if (name != text.substr(0, sign)) continue;
    const Json value = sign == std::string::npos ? Json() : ValueOf(text.substr(sign + 1), kind);
    if (!Fits(kind, value))
      return MakeError(ErrorKind::kInvalidArgument, "'{}': {} is {}", text, name, Describe(kind));
    values[setting] = value;
    return {};
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}' names no setting", text),
                  "there are " + names);
}

std::string DescribeValues(const FrameworkValues& values) {
  std::string text;
  for (const auto& [setting, value] : values)
    text += (text.empty() ? "" : " ") + setting.substr(setting.find('.') + 1) + "=" + TextOf(setting, value);
  return text.empty() ? "default" : text;
}

int64_t BucketBytesOf(const Json& value) {
  return value.is_string() ? kBytesOfOneBucket : value.get<int64_t>();
}

std::vector<std::string> TrainerOptionsOf(const FrameworkValues& values) {
  std::vector<std::string> options;
  for (const auto& [setting, value] : values) {
    if (setting == "zero.bucket_bytes")
      options.insert(options.end(), {"--bucket-bytes", BucketText(value)});
    else if (setting.starts_with("zero."))
      options.push_back(fmt::format("--{}{}", value.get<bool>() ? "" : "no-", setting.substr(5)));
  }
  return options;
}

std::vector<std::string> MegatronFlagsOf(const FrameworkValues& values) {
  std::vector<std::string> flags;
  for (const auto& [setting, value] : values) {
    if (!setting.starts_with("megatron.")) continue;
    std::string flag = "--" + setting.substr(setting.find('.') + 1);
    std::ranges::replace(flag, '_', '-');
    if (value.is_boolean() && !value.get<bool>()) continue;
    flags.push_back(flag);
    if (!value.is_boolean()) flags.push_back(value.dump());
  }
  return flags;
}

// Lines for Megatron-LM: the flags, and those to remove.
std::string MegatronLines(const FrameworkValues& values) {
  std::string text;
  const std::vector<std::string> flags = MegatronFlagsOf(values);
  if (!flags.empty()) text += fmt::format("pretrain_gpt.py ... {}\n", fmt::join(flags, " "));
  for (const char* const name : {"overlap_grad_reduce", "overlap_param_gather"}) {
    const auto found = values.find(std::string("megatron.") + name);
    if (found == values.end() || found->second.get<bool>()) continue;
    std::string flag = name;
    std::ranges::replace(flag, '_', '-');
    text += "without --" + flag + "\n";
  }
  return text;
}

std::string LinesForScript(const FrameworkValues& values) {
  const std::vector<std::string> trainer = TrainerOptionsOf(values);
  if (!trainer.empty()) return fmt::format("dynamiccl-zero train ... {}\n", fmt::join(trainer, " "));
  std::string ddp, fsdp2, others;
  for (const auto& [setting, value] : values) {
    const std::string name = setting.substr(setting.find('.') + 1);
    if (setting.starts_with("deepspeed.") || setting.starts_with("megatron.")) continue;
    if (setting == "ddp.first_bucket_mb") {
      ddp += ", bucket_cap_mb_list=[" + PythonText(value) + ", the size of further buckets]";
    } else if (setting.starts_with("ddp.")) {
      ddp += ", " + name + "=" + PythonText(value);
    } else if (setting == "fsdp2.reshard_after_forward") {
      fsdp2 += ", " + name + "=" + PythonText(value);
    } else if (setting == "fsdp2.shard_ranks") {
      fsdp2 += fmt::format(
          ", mesh=init_device_mesh(device, (ranks // {0}, {0}), mesh_dim_names=(\"replicate\", \"shard\"))",
          value.dump());
    } else if (setting == "fsdp2.modules_per_unit") {
      others += fmt::format("fully_shard([{} modules that run one after the other], ...)\n", value.dump());
    } else {
      others += fmt::format("module.set_modules_to_{}(the {} modules that run next)\n", name, value.dump());
    }
  }
  return (ddp.empty() ? "" : "DistributedDataParallel(..." + ddp + ")\n") +
         (fsdp2.empty() ? "" : "fully_shard(..." + fsdp2 + ")\n") + others + DeepSpeedLines(values) +
         MegatronLines(values);
}

}  // namespace dynamiccl
