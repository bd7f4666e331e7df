// SPDX-License-Identifier: Apache-2.0
// What went wrong, where, and what to do: the error type of fallible functions outside LibTorch code.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace dynamiccl {

// Kinds of failure; programs map them to exit codes (tools/exit_code.h), C borders to ncclResult_t.
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

// `message` says what and where ("p.dcpolicy: byte 8: version 4, this build reads 1"), `hint` what to do
// next.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string hint;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <typename... Args>
tl::unexpected<Error> MakeError(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<Args>(args)...), {}});
}

// The same error with a next step for the user.
tl::unexpected<Error> WithHint(tl::unexpected<Error> error, std::string hint);

// Puts `context` before the message: how a caller says which file or rank the failure belongs to.
tl::unexpected<Error> Wrap(const Error& error, const std::string& context);

const char* ErrorKindName(ErrorKind kind);

// "error: <message>\n  hint: <hint>\n" as the programs print it.
std::string Describe(const Error& error);

// Text of errno `code`, thread-safe.
std::string ErrnoText(int code);

}  // namespace dynamiccl

#define DYNAMICCL_CONCAT_INNER(a, b) a##b
#define DYNAMICCL_CONCAT(a, b) DYNAMICCL_CONCAT_INNER(a, b)

// DYNAMICCL_TRY(auto value, F()) binds the value or returns the error; DYNAMICCL_CHECK_OK(F()) is for Status.
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
