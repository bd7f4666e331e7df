// SPDX-License-Identifier: Apache-2.0
// How a file that a command was given and that is not there comes to be.
#pragma once

#include <string>
#include <vector>

namespace dynamiccl {

// What to do about the first of `words` that `message` names, that is one of our kinds of file by its end,
// and that does not exist. Empty without one.
std::string HowToMakeMissing(const std::vector<std::string>& words, const std::string& message);

}  // namespace dynamiccl
