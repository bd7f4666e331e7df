// SPDX-License-Identifier: Apache-2.0
// One command's options over CLI11: examples first in the help, and wrong options answered in the project's
// error style.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// What the help of a command says beside its options.
struct CommandText {
  const char* name;      // "run"
  const char* sentence;  // one sentence, no full stop
  const char* examples;  // one a line
  const char* program = "dynamiccl";
};

// Each line of `text` two spaces to the right.
std::string IndentLines(const std::string& text);

// A command registers its options with app(), then calls Parse(). Everything after a "--" of its own is kept
// apart as the program to start, so that options of that program are never taken for options of ours.
class CommandLine {
 public:
  CommandLine(const CommandText& text, std::vector<std::string> arguments);

  CLI::App& app() { return app_; }
  // Parse() gives the app to `visitor` and ends the command, whatever the arguments.
  void OnlyDescribe(std::function<void(const CLI::App&)> visitor) { visitor_ = std::move(visitor); }
  // An exit code when the command must end here (help was printed, or the usage was wrong), nothing to go on.
  std::optional<int> Parse();
  // The words after "--"; empty without them.
  const std::vector<std::string>& program() const { return program_; }
  // The words before it, as given.
  const std::vector<std::string>& arguments() const { return arguments_; }
  // The whole command line, quoted for a shell: for provenance.
  std::string Quoted() const;

 private:
  int ReportUsage(const CLI::ParseError& error);

  CLI::App app_;
  std::vector<std::string> arguments_;
  std::vector<std::string> program_;
  std::function<void(const CLI::App&)> visitor_;
};

// How a file that a command was given and that is not there comes to be.

// What to do about the first of `words` that `message` names, that is one of our kinds of file by its end,
// and that does not exist. Empty without one.
std::string HowToMakeMissing(const std::vector<std::string>& words, const std::string& message);

}  // namespace dynamiccl
