/* SPDX-License-Identifier: Apache-2.0
   A plugin with one version of one interface, DYNAMICCL_SYMBOL, which it takes from the libdynamiccl.so at
   TEST_DYNAMICCL. A release of NCCL that knows no newer version sees the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include DYNAMICCL_HEADER

#define TEXT_OF(symbol) #symbol
#define TEXT(symbol) TEXT_OF(symbol)

__attribute__((visibility("default"))) DYNAMICCL_TYPE DYNAMICCL_SYMBOL;

__attribute__((constructor)) static void Fill(void) {
  const char* path = getenv("TEST_DYNAMICCL");
  void* object = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const void* version = object == NULL ? NULL : dlsym(object, TEXT(DYNAMICCL_SYMBOL));
  if (version == NULL) {
    fprintf(stderr, "one_version: no %s in %s\n", TEXT(DYNAMICCL_SYMBOL),
            path == NULL ? "TEST_DYNAMICCL" : path);
    abort();
  }
  memcpy(&DYNAMICCL_SYMBOL, version, sizeof(DYNAMICCL_SYMBOL));
}
