// SPDX-License-Identifier: Apache-2.0
// Lets each command register its options with CLI11 and reads them back before it would parse.
#include "tools/manual/described_command.h"

#include <algorithm>
#include <sstream>

#include "tools/command_table.h"

namespace dynamiccl {
namespace {

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Returns "a" and "b" for the type "TEXT:{a,b}", which is how CLI11 shows a list of allowed values.
std::vector<std::string> ChoicesOf(const std::string& type) {
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return SplitAt(type.substr(open + 1, close - open - 1), ',');
}

DescribedOption DescriptionOf(const CLI::Option& option) {
  DescribedOption described;
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (described.names.empty()) described.names.push_back(option.get_name(true));
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0) described.value = type.substr(0, type.find(':'));
  described.choices = ChoicesOf(type);
  described.sentence = option.get_description();
  described.default_value = option.get_default_str();
  described.required = option.get_required();
  return described;
}

// Reads the left column of an option in CLI11's help: "-o,--output TEXT REQUIRED", "--seed UINT=1".
DescribedOption OptionOfHelp(const std::string& column) {
  DescribedOption option;
  const size_t blank = std::min(column.find(' '), column.size());
  option.names = SplitAt(column.substr(0, blank), ',');
  std::string type = blank < column.size() ? column.substr(blank + 1) : "";
  type = type.substr(0, std::min(type.find(" Excludes:"), type.find(" Needs:")));
  option.required = type.ends_with(" REQUIRED");
  option.choices = ChoicesOf(type);
  if (const size_t equals = type.rfind('='); equals != type.npos)
    option.default_value = type.substr(equals + 1);
  option.value = type.substr(0, type.find_first_of(":= "));
  return option;
}

// Reads the options in a help text of CLI11. An option begins a line that is indented by two blanks. Its
// sentence is in the right column, after at least two blanks or on the next line.
std::vector<DescribedOption> OptionsOfHelp(const std::string& help) {
  std::vector<DescribedOption> options;
  for (const std::string& line : SplitAt(help, '\n')) {
    const bool begins = line.starts_with("  -");
    const size_t gap = begins ? std::min(line.find("  ", 2), line.size()) : 0;
    if (begins) options.push_back(OptionOfHelp(line.substr(2, gap - 2)));
    const size_t text = line.find_first_not_of(' ', gap);
    if (text == line.npos || options.empty()) continue;
    std::string& sentence = options.back().sentence;
    sentence += (sentence.empty() ? "" : " ") + line.substr(text);
  }
  return options;
}

// Adds the options that another program takes in this command's name. Options that the command has itself are
// left out.
void AddMoreOptions(const CommandLine& line, DescribedCommand& described) {
  for (DescribedOption& option : OptionsOfHelp(line.MoreOptions())) {
    const auto is_same = [&](const DescribedOption& one) { return one.names.back() == option.names.back(); };
    if (std::ranges::none_of(described.options, is_same)) described.options.push_back(std::move(option));
  }
}

DescribedCommand DescriptionOf(const CLI::App& app, std::string name) {
  DescribedCommand described{.name = std::move(name), .footer = app.get_footer()};
  described.sentence = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    const bool hidden = option->get_group().empty();
    if (!hidden) described.options.push_back(DescriptionOf(*option));
  }
  for (const CLI::App* action : app.get_subcommands([](const CLI::App*) { return true; }))
    described.actions.push_back(DescriptionOf(*action, described.name + " " + action->get_name()));
  return described;
}

// Describes one command by letting it register its options.
DescribedCommand Describe(const CommandRow& row) {
  DescribedCommand described;
  CommandLine line(row.text, {});
  line.OnlyDescribe([&](const CLI::App& app) {
    described = DescriptionOf(app, row.text.name);
    AddMoreOptions(line, described);
  });
  // The visitor runs inside Parse(), which then ends the command.
  (void)row.function(line);
  described.sentence = row.text.sentence;
  described.examples = SplitAt(row.text.examples, '\n');
  return described;
}

}  // namespace

std::vector<DescribedCommand> DescribeCommands() {
  std::vector<DescribedCommand> commands;
  for (const CommandRow& row : AllCommands()) commands.push_back(Describe(row));
  return commands;
}

}  // namespace dynamiccl
