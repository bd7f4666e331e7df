// SPDX-License-Identifier: Apache-2.0
// Wording of errors. See status.h.
#include "src/base/status.h"

#include <cstring>

namespace dynamiccl {

tl::unexpected<Error> WithHint(tl::unexpected<Error> error, std::string hint) {
  error.value().hint = std::move(hint);
  return error;
}

tl::unexpected<Error> Wrap(const Error& error, const std::string& context) {
  return tl::unexpected<Error>(Error{error.kind, context + ": " + error.message, error.hint});
}

std::string Describe(const Error& error) {
  std::string text = "error: " + error.message + "\n";
  if (!error.hint.empty()) text += "  hint: " + error.hint + "\n";
  return text;
}

std::string ErrnoText(int code) {
  char buffer[128] = {};
  // The GNU variant may return a static string instead of filling the buffer, so its return value is used.
  return strerror_r(code, buffer, sizeof(buffer));
}

}  // namespace dynamiccl
