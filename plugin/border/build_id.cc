// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

// Input and result of the walk by dl_iterate_phdr.
struct Search {
  uintptr_t address_inside;
  std::string build_id;
};

// Returns the GNU build id among the notes of one segment; empty if there is none.
std::string BuildIdIn(const uint8_t* note, size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof(header));
    const size_t name = (header.n_namesz + 3u) & ~3u;
    const size_t total = sizeof(header) + name + ((header.n_descsz + 3u) & ~3u);
    if (total > bytes) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4) {
      return ToHex({note + sizeof(header) + name, header.n_descsz});
    }
    note += total;
    bytes -= total;
  }
  return {};
}

// Examines one loaded object, and ends the walk at the object that contains this code.
int Visit(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  bool ours = false;
  for (const auto& header : headers) {
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    ours = ours || (header.p_type == PT_LOAD && search.address_inside - begin < header.p_memsz);
  }
  if (!ours) return 0;
  for (const auto& header : headers) {
    if (header.p_type != PT_NOTE || !search.build_id.empty()) continue;
    search.build_id =
        BuildIdIn(reinterpret_cast<const uint8_t*>(info->dlpi_addr + header.p_vaddr), header.p_memsz);
  }
  return 1;
}

}  // namespace

std::string BuildId() {
  Search search{reinterpret_cast<uintptr_t>(&BuildId), {}};
  ::dl_iterate_phdr(Visit, &search);
  return fmt::format("{} {}", DYNAMICCL_VERSION, search.build_id.substr(0, 16));
}

}  // namespace dynamiccl
