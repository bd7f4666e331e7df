// SPDX-License-Identifier: Apache-2.0
// Writing stops at the first value that JSON cannot represent. Reading goes line by line. A text without a
// final newline is refused directly after its header, so that a long incomplete file is not read in vain.
#include "traces/format/json_lines.h"

#define XXH_INLINE_ALL
#include <fmt/ranges.h>
#include <xxhash.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "src/base/file_kind.h"

namespace dynamiccl {
namespace {

// nlohmann would print null for NaN and infinity, which reads back as another value.
bool AllFinite(const Json& json) {
  if (json.is_number_float()) return std::isfinite(json.get<double>());
  return !json.is_structured() || std::all_of(json.begin(), json.end(), AllFinite);
}

// Compares count and hash of the end line with what was read before it.
void CheckEndLine(const Json& json, std::string_view before, const JsonLineCallbacks& callbacks) {
  const size_t found = callbacks.count();
  const uint64_t wanted = UnsignedField(json, callbacks.counted);
  if (wanted != found)
    throw LineError{fmt::format("{} {}, but the end line says {}", found, callbacks.counted, wanted)};
  const std::string hash = TextHashOf(before);
  const auto wanted_hash = json.at("xxh3").get<std::string>();
  if (wanted_hash != hash)
    throw LineError{fmt::format("damaged: hash is {}, the end line says {}", hash, wanted_hash)};
}

// Passes a line to its callback. Returns true for the end line.
bool TakeLine(std::string_view line, std::string_view before, const JsonLineCallbacks& callbacks) {
  const Json json = Json::parse(line);
  if (!json.is_object()) throw LineError{"not a JSON object"};
  if (before.empty()) {
    callbacks.header(json);
  } else if (json.at("kind") == "end") {
    CheckEndLine(json, before, callbacks);
    return true;
  } else {
    callbacks.line(json);
  }
  return false;
}

}  // namespace

std::string TextHashOf(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

Status AppendJsonLine(std::string& text, const Json& json) {
  if (!AllFinite(json))
    return MakeError(ErrorKind::kInvalidArgument, "not a finite number in {}", json.dump());
  try {
    text += json.dump();
  } catch (const Json::exception& error) {  // text that is not UTF-8 cannot be written as JSON
    return MakeError(ErrorKind::kInvalidArgument, "cannot be written as JSON: {}", error.what());
  }
  text += '\n';
  return {};
}

Status AppendEndLine(std::string& text, const char* counted, size_t count) {
  return AppendJsonLine(text, {{"kind", "end"}, {counted, count}, {"xxh3", TextHashOf(text)}});
}

Status ReadJsonLines(std::string_view text, const std::string& name, const JsonLineCallbacks& callbacks) {
  size_t offset = 0;
  bool ended = false;
  int line = 0;
  const auto fail = [&](const std::string& what) -> Status {
    return MakeError(ErrorKind::kCorrupt, "{}:{}: {}", name, line, what);
  };
  while (offset < text.size() && !ended) {
    ++line;
    const size_t newline = text.find('\n', offset);
    // The line number of the error is that of the last line, which has no end.
    if (newline == std::string_view::npos || (line == 2 && text.back() != '\n')) {
      line +=
          static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(offset), text.end(), '\n'));
      return fail("the line has no end: the file is truncated");
    }
    try {
      ended = TakeLine(text.substr(offset, newline - offset), text.substr(0, offset), callbacks);
    } catch (const LineError& error) {
      return fail(error.what);
    } catch (const Json::exception& error) {
      return fail(error.what());
    }
    offset = newline + 1;
  }
  if (!ended) return fail("no end line: the file is truncated");
  if (offset != text.size()) return fail("text after the end line");
  return {};
}

int64_t IntegerField(const Json& json, const char* name, int64_t minimum, int64_t maximum) {
  const Json& value = json.at(name);
  if (!value.is_number_integer()) throw LineError{fmt::format("'{}' is not a whole number", name)};
  const bool beyond = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (beyond || value.get<int64_t>() < minimum || value.get<int64_t>() > maximum) {
    throw LineError{fmt::format("'{}' is {}, outside {} to {}", name, value.dump(), minimum, maximum)};
  }
  return value.get<int64_t>();
}

uint64_t UnsignedField(const Json& json, const char* name) {
  const Json& value = json.at(name);
  // A negative number is a number_integer that is not number_unsigned.
  if (!value.is_number_unsigned())
    throw LineError{fmt::format("'{}' is {}, not a count", name, value.dump())};
  return value.get<uint64_t>();
}

double NumberField(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number()) throw LineError{fmt::format("'{}' is not a number", name)};
  return value.get<double>();
}

void CheckMagic(const Json& json, const std::string& magic, int version, const char* what) {
  CheckMagic(json, magic, {version}, what);
}

int CheckMagic(const Json& json, const std::string& magic, std::initializer_list<int> versions,
               const char* what) {
  if (json.value("magic", "") != magic) throw LineError{fmt::format("not a {}", what)};
  const int64_t found = IntegerField(json, "version", 0, INT32_MAX);
  for (const int version : versions)
    if (found == version) return version;
  throw LineError{fmt::format("version {}, this build reads {}", found, fmt::join(versions, " and "))};
}

Result<std::string> ReadWholeFile(const std::string& path) {
  DYNAMICCL_CHECK_OK(CheckIsFile(path));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return MakeError(ErrorKind::kNotFound, "cannot open '{}': {}", path, ErrnoText(errno));
  // The text has the length that the file had when it was opened. A text that grew while it was read would
  // take up to three times its memory.
  std::error_code failed;
  const uintmax_t bytes = std::filesystem::file_size(path, failed);
  std::string text(failed ? 0 : bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (failed || stream.bad())
    return MakeError(ErrorKind::kUnavailable, "cannot read '{}': {}", path, ErrnoText(errno));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

Status WriteWholeFile(const std::string& path, std::string_view content) {
  DYNAMICCL_TRY(const UniqueFd reader, HoldReader(path));
  std::error_code ignored;
  const bool is_renamed = CheckReplaceable(path) && !std::filesystem::is_symlink(path, ignored);
  const std::string written = is_renamed ? fmt::format("{}.{}.tmp", path, ::getpid()) : path;
  std::ofstream stream(written, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (stream && (!is_renamed || std::rename(written.c_str(), path.c_str()) == 0)) return {};
  const int reason = errno;
  if (is_renamed) ::unlink(written.c_str());
  const auto error = MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(reason));
  if (reason != ENOSPC) return error;
  return WithHint(error, "make room on that disk, or name a file on another one");
}

}  // namespace dynamiccl
