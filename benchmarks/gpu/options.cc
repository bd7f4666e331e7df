// SPDX-License-Identifier: Apache-2.0
// Parses the command line of rank_program.
#include <cstdlib>
#include <cstring>

#include "rank_program.h"

namespace first_hour {
namespace {

// Stores the value of an option. Returns false for an unknown name.
bool TakeValue(const char* name, const char* value, Options* options) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("--id"))
    options->id_file = value;
  else if (is("--ranks"))
    options->ranks = std::atoi(value);
  else if (is("--first"))
    options->first = std::atoi(value);
  else if (is("--here"))
    options->here = std::atoi(value);
  else if (is("--bytes"))
    options->bytes = std::strtoull(value, nullptr, 10);
  else if (is("--iterations"))
    options->iterations = std::atoi(value);
  else if (is("--selection"))
    options->selection = value;
  else
    return false;
  return true;
}

}  // namespace

bool ParseOptions(int count, char** words, Options* options) {
  for (int word = 1; word < count; ++word) {
    if (std::strcmp(words[word], "--graph") == 0) {
      options->graph = true;
    } else if (word + 1 >= count || !TakeValue(words[word], words[word + 1], options)) {
      return false;
    } else {
      ++word;
    }
  }
  return !options->id_file.empty() && options->ranks > 0 && options->first >= 0 && options->here > 0 &&
         options->first + options->here <= options->ranks && options->bytes > 0 && options->iterations > 0;
}

}  // namespace first_hour
