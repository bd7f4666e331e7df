// SPDX-License-Identifier: Apache-2.0
// Builds the command line of a sibling program and executes it.
#include "tools/sibling_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tools/launch/installation.h"
#include "tools/launch/shell_quote.h"

namespace dynamiccl {
namespace {

bool AsksForHelp(const CommandLine& line) {
  const std::vector<std::string>& words = line.arguments();
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "-h" || word == "--help"; });
}

// Standard output of a command; empty when it cannot be started or fails.
std::string OutputOf(const std::vector<std::string>& command) {
  std::FILE* const pipe = ::popen((ShellQuote(command) + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  std::array<char, 4096> part;
  while (const size_t read = std::fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), read);
  return ::pclose(pipe) == 0 ? output : "";
}

// The options in a help text of CLI11, without --help.
std::string OptionsIn(const std::string& help) {
  constexpr std::string_view kTitle = "Options:\n";
  const size_t title = help.find(kTitle);
  if (title == help.npos) return "";
  const std::string options = help.substr(title + kTitle.size());
  return options.starts_with("  -h,--help") ? options.substr(options.find('\n') + 1) : options;
}

}  // namespace

void SetSiblingHelp(CommandLine& line, const std::string& command, const std::string& footer,
                    std::function<std::string()> path) {
  line.SetMoreOptions([=]() -> std::string {
    const std::string program = path();
    return program.empty() ? "" : OptionsIn(OutputOf({program, command, "--help"}));
  });
  if (!AsksForHelp(line)) {
    line.app().footer(footer);
    return;
  }
  line.app().footer([=, &line]() -> std::string {
    const std::string options = line.MoreOptions();
    if (options.empty()) return footer;
    return fmt::format("{}\n\nOptions of {}:\n{}", footer, std::filesystem::path(path()).filename().string(),
                       options);
  });
}

Result<std::vector<std::string>> SiblingCommand(const std::string& path, const std::string& name,
                                                CommandLine& line) {
  if (path.empty()) {
    return WithHint(
        MakeError(ErrorKind::kUnsupported, "this build has no {}: it was made without LibTorch", name),
        HowToGetTorchPrograms());
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

std::vector<std::string> NameInputs(const std::vector<std::string>& words, const std::string& policy) {
  std::vector<std::string> named;
  for (const std::string& word : words) {
    // A lone "-" means standard output. It is the value of an option before it and takes no value itself.
    const bool is_value = !named.empty() && named.back().starts_with("-") && named.back() != "-";
    if (!is_value && (word.ends_with(".ctrace") || word.ends_with(".ctracez"))) named.push_back("--trace");
    if (!is_value && word.ends_with(".measurements")) named.push_back("--measurements");
    if (!is_value && !policy.empty() && word.ends_with(".dcpolicy")) named.push_back(policy);
    named.push_back(word);
  }
  return named;
}

Status BecomeSibling(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  return MakeError(ErrorKind::kUnavailable, "cannot start '{}': {}", command.front(), ErrnoText(errno));
}

}  // namespace dynamiccl
