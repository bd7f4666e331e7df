// SPDX-License-Identifier: Apache-2.0
// Parses the options of one command with CLI11. The help starts with examples. The answer to a wrong option
// says what is wrong, then what to do.
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

// Texts in the help of a command, apart from its options: literals of tools/command_table.def.
struct CommandText {
  // Name of the command, for example "run".
  const char* name;
  // One sentence without its full stop.
  const char* sentence;
  // Example commands, one on each line.
  const char* examples;
  const char* program = "dynamiccl";
};

// Indents each line of `text` by two spaces.
std::string IndentLines(const std::string& text);

// Checks that an option's value is a number above 0.
CLI::Validator AboveZero();

// The command line of one command. RunDynamiccl owns it; the command's function registers options with app(),
// then calls Parse() once.
//
// Words after the first "--" are the program to start. They are separated before CLI11 sees the line, so that
// an option of that program is never taken for one of ours.
//
//     CLI::App& app = line.app();
//     app.add_option("-o,--output", output, "Trace to write");
//     if (const auto end = line.Parse()) return *end;
class CommandLine {
 public:
  // `arguments` are the words after the command's name.
  CommandLine(const CommandText& text, std::vector<std::string> arguments);

  // The parser, for registering options and asking what was given.
  CLI::App& app() { return app_; }
  // Makes Parse() pass the registered options to `visitor` and then end the command, whatever its arguments
  // are. The manual pages and the shell completion read every command's options in this way.
  void OnlyDescribe(std::function<void(const CLI::App&)> visitor) { visitor_ = std::move(visitor); }
  // Sets a function that returns the help text of further options, which another program takes in this
  // command's name. The function is called only when a user reads the help, because it starts that program.
  void SetMoreOptions(std::function<std::string()> help) { more_options_ = std::move(help); }
  // Returns the help text that SetMoreOptions set, as CLI11 prints options. Empty if no function was set, or
  // if the other program is not installed.
  std::string MoreOptions() const { return more_options_ ? more_options_() : std::string(); }
  // Parses the line into the registered variables. Returns an exit code if the command must end now, because
  // help was printed or the usage was wrong. Returns nothing if the command may continue.
  std::optional<int> Parse();
  // The words after "--"; empty when there is no "--".
  const std::vector<std::string>& program() const { return program_; }
  // The words before "--", as given.
  const std::vector<std::string>& arguments() const { return arguments_; }
  // The whole command line, quoted for a shell. Files that a command writes record it as their origin.
  std::string Quoted() const;

 private:
  // The hint for a program that was named without "--". Empty if that was not the mistake.
  std::string HintForProgram() const;
  // The hint for a command without its input files or words: the first example. Empty if that was not the
  // mistake.
  std::string HintForInputs(const CLI::ParseError& error, const std::string& message) const;
  // Prints what is wrong and a hint on standard error; returns kExitUsage.
  int ReportUsage(const CLI::ParseError& error);

  CLI::App app_;
  std::string example_;  // the first of the command's examples
  std::vector<std::string> arguments_;
  std::vector<std::string> program_;
  std::function<void(const CLI::App&)> visitor_;
  std::function<std::string()> more_options_;
};

// Returns a hint for an error about a missing input file: which command creates such a file. The hint is
// about the first of `words` that occurs in `message`, names no existing file, and ends like a file of
// DynamICCL (for example .dcpolicy). Empty if there is no such word.
std::string HowToMakeMissing(const std::vector<std::string>& words, const std::string& message);

}  // namespace dynamiccl
