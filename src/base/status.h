// SPDX-License-Identifier: Apache-2.0
// The error type of fallible functions: what went wrong, where, and what to do next. Code without LibTorch
// throws no exceptions across a public header; it returns a Status or a Result.
//
//   Result<int> Port(const std::string& text) {
//     DYNAMICCL_TRY(const int64_t port, ParseInteger(text));  // returns the error if there is one
//     if (port > 65535) return MakeError(ErrorKind::kInvalidArgument, "port {} is above 65535", port);
//     return static_cast<int>(port);
//   }
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace dynamiccl {

// Kinds of failure. Programs map them to exit codes (tools/exit_code.h), the C interfaces to ncclResult_t.
enum class ErrorKind {
  kInvalidArgument,  // the caller's or the user's mistake: option, setting, file content
  kNotFound,         // a file, library or peer that should exist does not
  kCorrupt,          // a file of ours that is truncated, damaged or of another version
  kUnsupported,      // valid, but this build, release or machine cannot do it
  kUnavailable,      // the environment is missing something (memory, descriptors, permission)
  kTimeout,          // a peer did not answer in the stated time
  kPeerFailed,       // a peer process ended or closed its connection
  kInternal,         // a broken invariant of ours
};

// `message` says what happened and where ("p.dcpolicy: byte 8: version 4, this build reads 1"); `hint` says
// what to do next and may be empty.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string hint;
};

// A value or an Error. Status has no value: `return {};` means success.
template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// Returns an error with a message formatted by fmt and without a hint.
template <typename... Args>
tl::unexpected<Error> MakeError(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<Args>(args)...), {}});
}

// Returns the error with its hint replaced by `hint`, a next step for the user.
tl::unexpected<Error> WithHint(tl::unexpected<Error> error, std::string hint);

// Returns the same error with "`context`: " before its message. A caller uses it to add the file or rank.
tl::unexpected<Error> Wrap(const Error& error, const std::string& context);

// Returns "error: <message>\n  hint: <hint>\n", as the programs print it; the second line is left out without
// a hint.
std::string Describe(const Error& error);

// Returns the system's text for an errno value. Unlike strerror it is thread-safe.
std::string ErrnoText(int code);

}  // namespace dynamiccl

#define DYNAMICCL_CONCAT_INNER(a, b) a##b
#define DYNAMICCL_CONCAT(a, b) DYNAMICCL_CONCAT_INNER(a, b)

// DYNAMICCL_TRY(auto value, F()) declares `value` with the result of F(), or returns its error from the
// enclosing function. DYNAMICCL_CHECK_OK(F()) does the same for a Status.
#define DYNAMICCL_TRY(declaration, expression) \
  DYNAMICCL_TRY_NAMED(DYNAMICCL_CONCAT(dynamiccl_result_, __COUNTER__), declaration, expression)
#define DYNAMICCL_TRY_NAMED(result, declaration, expression)              \
  auto result = (expression);                                             \
  if (!result) return tl::unexpected<::dynamiccl::Error>(result.error()); \
  declaration = std::move(*result)
#define DYNAMICCL_CHECK_OK(expression)                                                          \
  do {                                                                                          \
    auto dynamiccl_status = (expression);                                                       \
    if (!dynamiccl_status) return tl::unexpected<::dynamiccl::Error>(dynamiccl_status.error()); \
  } while (false)
