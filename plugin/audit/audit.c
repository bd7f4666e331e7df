/* SPDX-License-Identifier: Apache-2.0
   The audit library for LD_AUDIT=libdynamiccl-audit.so beside LD_PRELOAD=libdynamiccl.so. Programs that ask
   for NCCL's functions by address (dlopen and dlsym, RTLD_DEEPBIND) get the functions of libdynamiccl.so,
   which forward to the copy of NCCL that the program meant. The dynamic linker calls this library for each
   binding to an object called libnccl.so*; all other bindings stay unchanged. This is a separate object
   because the linker loads it into a separate namespace, with a C library of its own. The linker holds its
   lock while it calls these functions. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

/* The kinds of a loaded object, which the linker keeps as its cookie. 1 to MOST_COPIES - 1: the copy of NCCL
   with this number. */
enum { OTHER = 0, MOST_COPIES = 4, OURS = MOST_COPIES };

/* The type of dynamicclAuditedDoor in libdynamiccl.so. It returns the function that a program gets for
   `symbol`, which is at `real` in this copy of NCCL; null: the program gets `real`. A null symbol means that
   the copy was unloaded. */
typedef void* (*audited_door)(int copy, const char* symbol, void* real);

static struct link_map* our_object;
static int in_use[MOST_COPIES];

/* Returns the address of a function that the object exports. Reads the object's GNU hash table, because dlsym
   would call this audit library again and crash. The linker has made the table's addresses absolute. */
static void* ShownBy(const struct link_map* map, const char* name) {
  const Elf64_Sym* symbols = NULL;
  const char* names = NULL;
  const uint32_t* table = NULL;
  for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) names = (const char*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) table = (const uint32_t*)entry->d_un.d_ptr;
  }
  if (symbols == NULL || names == NULL || table == NULL) return NULL;
  const uint32_t buckets = table[0], first = table[1], filter_words = table[2];
  const uint32_t* bucket = table + 4 + 2 * filter_words;
  const uint32_t* chain = bucket + buckets;
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + (unsigned char)*c;
  uint32_t at = bucket[hash % buckets];
  if (at < first) return NULL;
  for (;; ++at) {
    if (strcmp(names + symbols[at].st_name, name) == 0) return (void*)(map->l_addr + symbols[at].st_value);
    if (chain[at - first] & 1) return NULL; /* the last symbol of this bucket */
  }
}

static audited_door Door(void) {
  static audited_door door;
  static int said;
  if (door == NULL && our_object != NULL) door = (audited_door)ShownBy(our_object, "dynamicclAuditedDoor");
  if (door == NULL && !said) {
    static const char line[] =
        "dynamiccl: LD_AUDIT=libdynamiccl-audit.so does nothing without LD_PRELOAD=libdynamiccl.so\n";
    said = 1;
    if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0) return NULL;
  }
  return door;
}

static int IsCopy(uintptr_t cookie) {
  return cookie > OTHER && cookie < MOST_COPIES;
}

/* Accepts every version of the audit interface: nothing in which the versions differ is used here. */
SHOWN unsigned int la_version(unsigned int version) {
  return version;
}

SHOWN unsigned int la_objopen(struct link_map* map, Lmid_t namespace_id, uintptr_t* cookie) {
  const char* slash = strrchr(map->l_name, '/');
  const char* name = slash == NULL ? map->l_name : slash + 1;
  *cookie = OTHER;
  if (namespace_id != LM_ID_BASE) return 0;
  if (strcmp(name, "libdynamiccl.so") == 0) {
    our_object = map;
    *cookie = OURS;
    return 0;
  }
  if (strncmp(name, "libnccl.so", strlen("libnccl.so")) != 0) return LA_FLG_BINDFROM;
  for (int copy = 1; copy < MOST_COPIES; ++copy) {
    if (in_use[copy]) continue;
    in_use[copy] = 1;
    *cookie = (uintptr_t)copy;
    return LA_FLG_BINDTO;
  }
  return 0; /* a fourth copy: its calls are not seen */
}

SHOWN unsigned int la_objclose(uintptr_t* cookie) {
  if (IsCopy(*cookie)) {
    in_use[*cookie] = 0;
    if (our_object != NULL && Door() != NULL) Door()((int)*cookie, NULL, NULL);
  }
  if (*cookie == OURS) our_object = NULL;
  return 0;
}

SHOWN uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned int index, uintptr_t* from, uintptr_t* to,
                             unsigned int* flags, const char* name) {
  (void)index;
  /* Only the binding is audited, once; the calls themselves are not. */
  *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
  if (!IsCopy(*to) || IsCopy(*from) || *from == OURS || strncmp(name, "nccl", 4) != 0)
    return symbol->st_value;
  audited_door door = Door();
  void* seen = door == NULL ? NULL : door((int)*to, name, (void*)symbol->st_value);
  return seen == NULL ? symbol->st_value : (uintptr_t)seen;
}
