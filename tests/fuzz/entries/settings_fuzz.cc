// SPDX-License-Identifier: Apache-2.0
// Reads environment variables of DynamICCL. Input, repeated: {u8 which, text, 0}. Each variable is then read
// with the type that it has, and its text is expanded as a path.
#include <cstdlib>

#include "src/base/settings.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  ByteReader input(fuzz::BytesOf(data, size));
  while (input.ok() && input.remaining() > 0) {
    const SettingRow& row = AllSettings()[input.Get<uint8_t>() % AllSettings().size()];
    const std::string text = fuzz::NextText(input, 300);
    ::setenv(row.name, text.c_str(), 1);
    (void)TextSetting(row.id);
    if (row.type == SettingType::Integer) (void)IntegerSetting(row.id);
    if (row.type == SettingType::Bool) (void)BoolSetting(row.id);
    (void)ExpandPath(text, 3, 4);
    const std::string unknown = "DYNAMICCL_" + text + "=1";
    const char* const environment[] = {text.c_str(), unknown.c_str(), nullptr};
    (void)UnknownSettings(environment);
    ::unsetenv(row.name);
  }
  return 0;
}
