// SPDX-License-Identifier: Apache-2.0
// Formats descriptions as roff. A page begins like this (`dynamiccl man run`):
//
//   .TH DYNAMICCL\-RUN 1 "" "dynamiccl 0.1.0" "DynamICCL"
//   .SH NAME
//   dynamiccl\-run \- Run a program with DynamICCL loaded, as n ranks or under your own launcher
//
// The date in .TH stays empty: the same commands give the same bytes on every day.
#include "tools/manual/described_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "src/base/settings.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

using Text = std::back_insert_iterator<std::string>;

// Escapes text: groff takes a leading dot or quote for a request, "-" for a hyphen, and "\" for itself.
std::string Roff(const std::string& text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    line_begins = c == '\n';
  }
  return escaped;
}

// Returns the name of a command's page without its section: "dynamiccl-run".
std::string PageName(const std::string& command) {
  return "dynamiccl-" + command;
}

// Adds the title line and the section NAME, from which `whatis` and `apropos` take their entry.
void AddTitle(Text out, const std::string& name, const std::string& sentence) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  fmt::format_to(out, ".TH {} 1 \"\" \"dynamiccl {}\" \"DynamICCL\"\n.SH NAME\n{} \\- {}\n", Roff(upper),
                 kVersion, Roff(name), Roff(sentence));
}

// Adds one option: its names in bold, the placeholder in italics, then the sentence and what limits the
// value.
void AddOption(Text out, const DescribedOption& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + Roff(name) + "\\fR");
  fmt::format_to(out, ".TP\n{}", fmt::join(names, ", "));
  if (!option.value.empty()) fmt::format_to(out, " \\fI{}\\fR", Roff(option.value));
  fmt::format_to(out, "\n{}", Roff(option.sentence));
  if (!option.choices.empty())
    fmt::format_to(out, "\nOne of: {}.", Roff(fmt::format("{}", fmt::join(option.choices, ", "))));
  if (!option.default_value.empty()) fmt::format_to(out, "\nDefault: {}.", Roff(option.default_value));
  if (option.required) fmt::format_to(out, "\nMust be given.");
  fmt::format_to(out, "\n");
}

void AddOptions(Text out, const DescribedCommand& command) {
  for (const DescribedOption& option : command.options) AddOption(out, option);
  if (!command.footer.empty()) fmt::format_to(out, ".PP\n{}\n", Roff(command.footer));
}

// Writes one line of the synopsis. Options are summed up as [options]; positional arguments stand in order,
// those in brackets may be left out.
std::string Synopsis(const DescribedCommand& command) {
  std::string text = fmt::format(".B dynamiccl {}\n[\\fIoptions\\fR]", Roff(command.name));
  for (const DescribedOption& option : command.options) {
    if (!option.positional()) continue;
    const std::string name = "\\fI" + Roff(option.names.front()) + "\\fR";
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

void AddSynopses(Text out, const DescribedCommand& command) {
  fmt::format_to(out, ".SH SYNOPSIS\n{}", Synopsis(command));
  for (const DescribedCommand& action : command.actions) fmt::format_to(out, ".br\n{}", Synopsis(action));
}

// Adds the codes of tools/exit_code.h, in the manual's words.
void AddExitCodes(Text out) {
  fmt::format_to(out,
                 ".SH EXIT STATUS\n"
                 ".TP\n0\ndone\n"
                 ".TP\n1\na check ran, and the answer is no\n"
                 ".TP\n2\na wrong option, setting or file\n"
                 ".TP\n3\nthis build or machine lacks something\n"
                 ".TP\n4\nthe job's own failure; its code is in the message\n"
                 ".TP\n128+N\nended by signal N\n");
}

}  // namespace

std::string ManPageOfProgram(const std::vector<DescribedCommand>& commands) {
  std::string page;
  const Text out(page);
  AddTitle(out, "dynamiccl",
           "chooses NCCL's algorithm, protocol and channels from what a training job is doing");
  fmt::format_to(out, ".SH SYNOPSIS\n.B dynamiccl\n\\fIcommand\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n");
  for (const DescribedCommand& command : commands)
    fmt::format_to(out, ".TP\n\\fB{}\\fR(1)\n{}\n", Roff(PageName(command.name)), Roff(command.sentence));
  AddExitCodes(out);
  fmt::format_to(out, ".SH ENVIRONMENT\n");
  for (const SettingRow& row : AllSettings())
    fmt::format_to(out, ".TP\n.B {}\n{}\n", row.name, Roff(row.sentence));
  return page;
}

std::string ManPageOf(const DescribedCommand& command) {
  std::string page;
  const Text out(page);
  AddTitle(out, PageName(command.name), command.sentence);
  AddSynopses(out, command);
  fmt::format_to(out, ".SH OPTIONS\n");
  AddOptions(out, command);
  for (const DescribedCommand& action : command.actions) {
    fmt::format_to(out, ".SS dynamiccl {}\n{}.\n", Roff(action.name), Roff(action.sentence));
    AddOptions(out, action);
  }
  fmt::format_to(out, ".SH EXAMPLES\n");
  for (const std::string& example : command.examples)
    fmt::format_to(out, ".PP\n.nf\n{}\n.fi\n", Roff(example));
  AddExitCodes(out);
  fmt::format_to(out, ".SH SEE ALSO\n.BR dynamiccl (1)\n");
  return page;
}

}  // namespace dynamiccl
