// SPDX-License-Identifier: Apache-2.0
// Writes the completion of each shell from the described commands. The scripts contain all words, so
// completing starts no process. Each shell gets its own form:
//
// - bash: one function with a table of words and one of values, keyed by the command so far:
//
//       "trace import") echo "--output --format" ;;
//
// - zsh: a `#compdef` function that branches on the command and calls _arguments with the options:
//
//       '*--output[File to write]:PATH:_files'
//
// - fish: one `complete` line for each option, with the condition under which it applies:
//
//       complete -c dynamiccl -n '__fish_seen_subcommand_from run' -l mode -x -a 'off observe'
#include "tools/manual/described_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace dynamiccl {
namespace {

using Text = std::back_insert_iterator<std::string>;

// Characters of a description that fit beside an option.
constexpr size_t kLongestSentence = 70;

// The first clause of a description, made safe inside single quotes of a shell and in zsh's specifications,
// in which brackets and colons have a meaning.
std::string Plain(const std::string& text) {
  std::string plain;
  for (const char c : text.substr(0, text.find('\n'))) plain += c == '\'' || c == '\\' ? '`' : c;
  for (const char* end : {". ", "; ", " ("}) plain.resize(std::min(plain.size(), plain.find(end)));
  if (plain.size() > kLongestSentence) plain.resize(plain.rfind(' ', kLongestSentence));
  for (char& c : plain) c = c == '[' || c == ']' ? '|' : c == ':' ? ',' : c;
  while (plain.ends_with(' ')) plain.pop_back();
  return plain;
}

// All commands, each followed by its actions.
std::vector<const DescribedCommand*> Flat(const std::vector<DescribedCommand>& commands) {
  std::vector<const DescribedCommand*> all;
  for (const DescribedCommand& command : commands) {
    all.push_back(&command);
    for (const DescribedCommand& action : command.actions) all.push_back(&action);
  }
  return all;
}

std::string LastWord(const std::string& name) {
  return name.substr(name.rfind(' ') + 1);
}

// Words that may follow a command: its actions and options.
std::vector<std::string> WordsAfter(const DescribedCommand& command) {
  std::vector<std::string> words;
  for (const DescribedCommand& action : command.actions) words.push_back(LastWord(action.name));
  for (const DescribedOption& option : command.options) {
    if (!option.positional()) words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

// ---- bash ----

// Finds the command in the line so far, then offers the values of the option before the cursor, else the
// command's words. After "--" it completes the program to start.
constexpr const char* kBashBegin = R"bash(# bash completion of dynamiccl: eval "$(dynamiccl completion bash)"
_dynamiccl() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}" command="" words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ "${COMP_WORDS[i]}" == -- ]]; then
      COMPREPLY=()
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else compopt -o default; fi
      return
    fi
    [[ "${COMP_WORDS[i]}" != -* && " $(_dynamiccl_words "$command") " == *" ${COMP_WORDS[i]} "* ]] &&
      command="${command:+$command }${COMP_WORDS[i]}"
  done
  words="$(_dynamiccl_values "$command $previous")"
  if [[ "$words" == files ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ -n "$words" ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$(_dynamiccl_words "$command")" -- "$current"))
    [[ ${#COMPREPLY[@]} -gt 0 || -z "$command" ]] || COMPREPLY=($(compgen -f -- "$current"))
  fi
}
)bash";

// Writes the shell function that lists the words after a command. Its argument is the command's name, ""
// before any command was typed.
void AddBashWords(Text out, const std::vector<DescribedCommand>& commands) {
  fmt::format_to(out, "_dynamiccl_words() {{\n  case \"$1\" in\n    \"\") echo \"");
  for (const DescribedCommand& command : commands) fmt::format_to(out, "{} ", command.name);
  fmt::format_to(out, "--help --version\" ;;\n");
  for (const DescribedCommand* command : Flat(commands))
    fmt::format_to(out, "    \"{}\") echo \"{}\" ;;\n", command->name, fmt::join(WordsAfter(*command), " "));
  fmt::format_to(out, "  esac\n}}\n");
}

// Writes the function that lists the values of an option; "files" stands for file names.
void AddBashValues(Text out, const std::vector<DescribedCommand>& commands) {
  fmt::format_to(out, "_dynamiccl_values() {{\n  case \"$1\" in\n");
  for (const DescribedCommand* command : Flat(commands)) {
    for (const DescribedOption& option : command->options) {
      if (option.positional() || option.value.empty()) continue;
      std::string pattern;
      for (const std::string& name : option.names)
        pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : " | ", command->name, name);
      const std::string values =
          option.choices.empty() ? "files" : fmt::format("{}", fmt::join(option.choices, " "));
      fmt::format_to(out, "    {}) echo \"{}\" ;;\n", pattern, values);
    }
  }
  fmt::format_to(out, "  esac\n}}\n");
}

std::string BashScript(const std::vector<DescribedCommand>& commands) {
  std::string script = kBashBegin;
  const Text out(script);
  AddBashWords(out, commands);
  AddBashValues(out, commands);
  return script + "complete -F _dynamiccl -o filenames dynamiccl\n";
}

// ---- zsh ----

// Returns what zsh's specification of an option has for the option's value.
std::string ZshAction(const DescribedOption& option) {
  if (option.value.empty()) return "";
  const std::string values =
      option.choices.empty() ? "_files" : fmt::format("({})", fmt::join(option.choices, " "));
  return fmt::format(":{}:{}", option.value, values);
}

// Calls _arguments for a command. `*` in front of an option lets it be offered again after it was given; -S
// ends the options at "--".
void AddZshArguments(Text out, const DescribedCommand& command, const char* indent) {
  fmt::format_to(out, "{}_arguments -S", indent);
  for (const DescribedOption& option : command.options) {
    if (option.positional()) continue;
    for (const std::string& name : option.names)
      fmt::format_to(out, " \\\n{}  '*{}[{}]{}'", indent, name, Plain(option.sentence), ZshAction(option));
  }
  fmt::format_to(out, " \\\n{}  '*:file:_files'\n", indent);
}

// Assigns an array of `name:description` entries, the form that zsh's _describe takes.
void AddZshList(Text out, const char* variable, const std::vector<DescribedCommand>& commands,
                const char* indent) {
  fmt::format_to(out, "{}{}=(\n", indent, variable);
  for (const DescribedCommand& command : commands)
    fmt::format_to(out, "{}  '{}:{}'\n", indent, LastWord(command.name), Plain(command.sentence));
  fmt::format_to(out, "{})\n", indent);
}

// Completes a command that has actions. The third word of the line is the action; the options of the action
// come after it.
void AddZshActions(Text out, const DescribedCommand& command) {
  AddZshList(out, "actions", command.actions, "      ");
  fmt::format_to(out,
                 "      if (( CURRENT == 3 )); then _describe action actions; fi\n"
                 "      case $words[3] in\n");
  for (const DescribedCommand& action : command.actions) {
    fmt::format_to(out, "        {})\n", LastWord(action.name));
    AddZshArguments(out, action, "          ");
    fmt::format_to(out, "          return ;;\n");
  }
  fmt::format_to(out, "      esac\n");
}

std::string ZshScript(const std::vector<DescribedCommand>& commands) {
  std::string script =
      "#compdef dynamiccl\n# zsh completion of dynamiccl: a file _dynamiccl in $fpath\n_dynamiccl() {\n"
      "  local -a commands actions\n";
  const Text out(script);
  AddZshList(out, "commands", commands, "  ");
  fmt::format_to(
      out, "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case $words[2] in\n");
  for (const DescribedCommand& command : commands) {
    fmt::format_to(out, "    {})\n", command.name);
    if (!command.actions.empty()) AddZshActions(out, command);
    AddZshArguments(out, command, "      ");
    fmt::format_to(out, "      ;;\n");
  }
  return script +
         "  esac\n}\nif [[ $funcstack[1] == _dynamiccl ]]; then _dynamiccl; else compdef _dynamiccl "
         "dynamiccl; fi\n";
}

// ---- fish ----

// One option; `condition` restricts it to its command.
void AddFishOption(Text out, const std::string& condition, const DescribedOption& option) {
  fmt::format_to(out, "complete -c dynamiccl -n '{}'", condition);
  for (const std::string& name : option.names) {
    if (name.starts_with("--"))
      fmt::format_to(out, " -l {}", name.substr(2));
    else
      fmt::format_to(out, " -s {}", name.substr(1));
  }
  if (!option.value.empty()) {
    if (option.choices.empty())
      fmt::format_to(out, " -r -F");
    else
      fmt::format_to(out, " -x -a '{}'", fmt::join(option.choices, " "));
  }
  fmt::format_to(out, " -d '{}'\n", Plain(option.sentence));
}

// Adds a command's options and, with a narrower condition, those of its actions.
void AddFishCommand(Text out, const DescribedCommand& command, const std::string& condition) {
  for (const DescribedOption& option : command.options) {
    if (!option.positional()) AddFishOption(out, condition, option);
  }
  for (const DescribedCommand& action : command.actions) {
    const std::string name = LastWord(action.name);
    fmt::format_to(out, "complete -c dynamiccl -n '{}' -a {} -d '{}'\n", condition, name,
                   Plain(action.sentence));
    AddFishCommand(out, action, fmt::format("{}; and __fish_seen_subcommand_from {}", condition, name));
  }
}

std::string FishScript(const std::vector<DescribedCommand>& commands) {
  std::string script = "# fish completion of dynamiccl: dynamiccl completion fish | source\n";
  const Text out(script);
  for (const DescribedCommand& command : commands) {
    fmt::format_to(out, "complete -c dynamiccl -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                   Plain(command.sentence));
    AddFishCommand(out, command, fmt::format("__fish_seen_subcommand_from {}", command.name));
  }
  return script;
}

}  // namespace

Result<std::string> CompletionScript(const std::string& shell,
                                     const std::vector<DescribedCommand>& commands) {
  if (shell == "bash") return BashScript(commands);
  if (shell == "zsh") return ZshScript(commands);
  if (shell == "fish") return FishScript(commands);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "completion: no shell '{}'", shell),
                  "bash, zsh or fish");
}

}  // namespace dynamiccl
