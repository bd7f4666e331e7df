// SPDX-License-Identifier: Apache-2.0
// No code: the precompiled header needs a file to belong to.
#include "tests/fuzz/shared_headers.h"
