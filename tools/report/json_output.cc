// SPDX-License-Identifier: Apache-2.0
// Writes a file under a temporary name and renames it, which is atomic within one file system.
#include "tools/report/json_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "src/base/file_kind.h"

namespace dynamiccl {

namespace {

// Replaces bytes that are not UTF-8, such as those in a program's own text or in a file's name; dump would
// throw otherwise.
std::string TextOf(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void PrintJson(const Json& json) {
  fmt::print("{}", TextOf(json, 2));
}

Status WriteJsonFile(const std::string& path, const Json& json) {
  return WriteTextFile(path, TextOf(json, 1));
}

Status WriteTextFile(const std::string& path, const std::string& text) {
  DYNAMICCL_CHECK_OK(CheckReplaceable(path));
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file.good() && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string reason = ErrnoText(errno);
  ::unlink(temporary.c_str());
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "cannot write '{}': {}", path, reason),
                  "check that the folder exists and may be written");
}

Result<std::string> ReadTextFile(const std::string& path) {
  DYNAMICCL_CHECK_OK(CheckIsFile(path));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    return MakeError(ErrorKind::kNotFound, "cannot read '{}': {}", path, ErrnoText(errno));
  }
  return text;
}

Result<Json> ReadJsonFile(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", path, error.what());
  }
}

}  // namespace dynamiccl
