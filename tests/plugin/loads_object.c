/* SPDX-License-Identifier: Apache-2.0
   Loads an object and looks up a symbol. tests/plugin/old_glibc.sh runs it with old C libraries.
     loads_object <object> <symbol> */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* object = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (object == NULL || dlsym(object, argv[2]) == NULL) {
    fprintf(stderr, "glibc %s: %s\n", gnu_get_libc_version(),
            argc == 3 ? dlerror() : "object and symbol are needed");
    return 1;
  }
  printf("glibc %s loads %s\n", gnu_get_libc_version(), argv[1]);
  return 0;
}
