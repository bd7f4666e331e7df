// SPDX-License-Identifier: Apache-2.0
// Builds the command line of a sibling program and executes it.
#include "tools/sibling_program.h"

#include <unistd.h>

#include <cerrno>

namespace dynamiccl {

Result<std::vector<std::string>> SiblingCommand(const std::string& path, const std::string& name,
                                                CommandLine& line) {
  if (path.empty()) {
    return WithHint(
        MakeError(ErrorKind::kUnsupported, "this build has no {}: it was made without LibTorch", name),
        "configure with -DDYNAMICCL_BUILD_TORCH=ON (tools/setup/install.sh installs LibTorch) and build "
        "again");
  }
  std::vector<std::string> command{path};
  for (const std::string& word : line.app().remaining()) command.push_back(word);
  command.insert(command.end(), line.program().begin(), line.program().end());
  return command;
}

Status NamePolicies(const Installation& installation, const std::string& option,
                    std::vector<std::string>& words) {
  bool is_value = false;
  for (std::string& word : words) {
    const bool joined = word.starts_with(option + "=");
    if (joined || (is_value && !word.starts_with("-"))) {
      const size_t begin = joined ? option.size() + 1 : 0;
      DYNAMICCL_TRY(const std::string path, PolicyFileOf(installation, word.substr(begin)));
      word.replace(begin, word.npos, path);
    }
    if (word.starts_with("-")) is_value = word == option;
  }
  return {};
}

Status BecomeSibling(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  return MakeError(ErrorKind::kUnavailable, "cannot start '{}': {}", command.front(), ErrnoText(errno));
}

}  // namespace dynamiccl
