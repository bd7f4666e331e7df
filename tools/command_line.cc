// SPDX-License-Identifier: Apache-2.0
// Help, parsing and usage errors of one command.
#include "tools/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "src/base/nearest_name.h"
#include "tools/exit_code.h"
#include "tools/launch/shell_quote.h"

namespace dynamiccl {
namespace {

// Finds the first word of `arguments` that looks like an option but is not one, and returns the long option
// of `app` that is similar to it; empty if none is.
std::string SuggestOption(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& word : arguments) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const std::string similar = SimilarName(name, known); !similar.empty()) return similar;
  }
  return {};
}

constexpr struct {
  std::string_view end;
  const char* how;
} kKinds[] = {
    {".ctrace",
     "`dynamiccl record -o run.ctrace -- PROGRAM` writes traces, `dynamiccl trace import` makes them of "
     "other tools' files"},
    {".ctracez", "`dynamiccl trace archive run.ctrace -o run.ctracez` writes archives"},
    {".measurements", "`dynamiccl sweep -o run.measurements` writes measurements"},
    {".dcpolicy",
     "`dynamiccl train run.ctrace run.measurements -o run.dcpolicy` writes policies, and so does `dynamiccl "
     "demo`"},
    {".dcsite",
     "adaptive jobs write it: DYNAMICCL_MODE=adaptive with a policy and DYNAMICCL_SITE_STORE=PATH"},
    {".prom", "jobs write it: DYNAMICCL_METRICS=m.%r.prom"},
};

// Returns the names of the subcommands: "import, export".
std::string ActionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const action : app.get_subcommands({})) names.push_back(action->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

// Says in one line what was wrong. CLI11 lists unexpected words in reverse order.
std::string MessageOf(const CLI::ParseError& error, const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  std::string message = error.what();
  if (message.find("subcommand is required") != message.npos)
    return words.empty() || words.front().starts_with('-')
               ? "one of these must follow: " + ActionsOf(app)
               : fmt::format("no action '{}'; there are: {}", words.front(), ActionsOf(app));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return fmt::format("not expected: {}", fmt::join(words, " "));
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

}  // namespace

std::string IndentLines(const std::string& text) {
  std::istringstream lines(text);
  std::string indented;
  for (std::string line; std::getline(lines, line);) indented += "  " + line + "\n";
  return indented;
}

CLI::Validator AboveZero() {
  return {[](const std::string& value) {
            return std::strtod(value.c_str(), nullptr) > 0 ? "" : value + " is not above 0";
          },
          "POSITIVE"};
}

CommandLine::CommandLine(const CommandText& text, std::vector<std::string> arguments)
    : app_(fmt::format("{}.\n\nExamples:\n{}", text.sentence, IndentLines(text.examples)),
           fmt::format("{} {}", text.program, text.name)),
      example_(std::string_view(text.examples).substr(0, std::string_view(text.examples).find('\n'))),
      arguments_(std::move(arguments)) {
  const auto separator = std::find(arguments_.begin(), arguments_.end(), "--");
  if (separator != arguments_.end()) program_.assign(separator + 1, arguments_.end());
  arguments_.erase(separator, arguments_.end());
}

std::optional<int> CommandLine::Parse() {
  if (visitor_) {
    visitor_(app_);
    return kExitOk;
  }
  try {
    // CLI11 takes the words from the back of the vector.
    std::vector<std::string> reversed(arguments_.rbegin(), arguments_.rend());
    app_.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app_.help());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return ReportUsage(error);
  }
  return std::nullopt;
}

std::string CommandLine::HintForProgram() const {
  const std::vector<std::string> words = app_.remaining();
  const bool starts_program = app_.get_description().find(" -- ") != std::string::npos;
  if (!starts_program || !program_.empty() || words.empty() || words.front().starts_with('-')) return {};
  return fmt::format("put the program after `--`: {} [OPTIONS] -- {}", app_.get_name(), ShellQuote(words));
}

std::string CommandLine::HintForInputs(const CLI::ParseError& error, const std::string& message) const {
  const bool too_few = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                       dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  if (!too_few || message.starts_with("-") || !app_.get_subcommands({}).empty()) return {};
  return fmt::format("such as: {}; see `{} --help`", example_, app_.get_name());
}

int CommandLine::ReportUsage(const CLI::ParseError& error) {
  const std::string message = MessageOf(error, app_);
  std::string name = app_.get_name();
  for (const CLI::App* const action : app_.get_subcommands()) name += " " + action->get_name();
  std::string hint = HintForProgram();
  if (hint.empty()) hint = HowToMakeMissing(arguments_, message);
  if (hint.empty()) hint = HintForInputs(error, message);
  if (hint.empty()) {
    const std::string nearest = SuggestOption(app_, arguments_);
    if (!nearest.empty()) hint = fmt::format("did you mean {}? ", nearest);
    hint += fmt::format("see `{} --help`", name);
  }
  const Error described{ErrorKind::kInvalidArgument, fmt::format("{}: {}", name, message), hint};
  fmt::print(stderr, "{}", Describe(described));
  return kExitUsage;
}

std::string CommandLine::Quoted() const {
  std::string text = app_.get_name();
  if (!arguments_.empty()) text += " " + ShellQuote(arguments_);
  if (!program_.empty()) text += " -- " + ShellQuote(program_);
  return text;
}

std::string HowToMakeMissing(const std::vector<std::string>& words, const std::string& message) {
  for (const std::string& word : words) {
    std::error_code failed;
    if (message.find(word) == message.npos || std::filesystem::exists(word, failed)) continue;
    for (const auto& kind : kKinds) {
      if (word.ends_with(kind.end)) return std::string("check the path; ") + kind.how;
    }
    if (message.ends_with("does not exist: " + word)) return "check the path";
  }
  return {};
}

}  // namespace dynamiccl
