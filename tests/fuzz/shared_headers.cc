// SPDX-License-Identifier: Apache-2.0
// This file has no code: the precompiled header must belong to a source file.
#include "tests/fuzz/shared_headers.h"
