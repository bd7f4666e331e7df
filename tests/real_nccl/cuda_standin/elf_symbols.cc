// SPDX-License-Identifier: Apache-2.0
// Reads function symbols by walking the section headers of an ELF file. Each offset is checked against the
// file's size before it is used.
#include "tests/real_nccl/cuda_standin/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>

namespace cuda_standin {
namespace {

// Maps a file for reading and unmaps it in the destructor. The kernel loads only the pages that are read,
// mainly those of the symbol table.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (file >= 0 && fstat(file, &info) == 0 && info.st_size > 0) {
      size_ = static_cast<size_t>(info.st_size);
      start_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
  }
  ~MappedFile() {
    if (valid()) munmap(start_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  bool valid() const { return start_ != MAP_FAILED; }

  // Returns `count` values of T at `offset`. The result is empty when the values do not lie in the file or
  // are not aligned.
  template <typename T>
  std::span<const T> Values(uint64_t offset, uint64_t count) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(T) || offset % alignof(T) != 0) return {};
    return {reinterpret_cast<const T*>(static_cast<const char*>(start_) + offset),
            static_cast<size_t>(count)};
  }

 private:
  void* start_ = MAP_FAILED;
  size_t size_ = 0;
};

void AppendFunctions(std::span<const Elf64_Sym> symbols, std::span<const char> names,
                     std::vector<FunctionSymbol>* out) {
  for (const Elf64_Sym& symbol : symbols) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0 || symbol.st_name >= names.size())
      continue;
    const char* name = names.data() + symbol.st_name;
    out->push_back({std::string(name, strnlen(name, names.size() - symbol.st_name)), symbol.st_value});
  }
}

}  // namespace

std::optional<std::vector<FunctionSymbol>> ReadFunctionSymbols(const std::string& path, std::string* error) {
  const MappedFile file(path);
  if (!file.valid()) {
    *error = "cannot read " + path;
    return std::nullopt;
  }
  const auto header = file.Values<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64) {
    *error = path + " is no ELF file of 64 bits";
    return std::nullopt;
  }
  if (header[0].e_machine != EM_X86_64) {
    *error = path + " is for another architecture than x86-64 (machine " +
             std::to_string(header[0].e_machine) + " of ELF)";
    return std::nullopt;
  }
  const auto sections = file.Values<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  if (sections.size() < header[0].e_shnum) {
    *error = path + " is cut: its table of sections is not in the file";
    return std::nullopt;
  }
  std::vector<FunctionSymbol> functions;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    AppendFunctions(file.Values<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym)),
                    file.Values<char>(strings.sh_offset, strings.sh_size), &functions);
  }
  return functions;
}

}  // namespace cuda_standin
