#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaves one GPU architecture's code in an NCCL library, so that the compressed library is small enough to upload.

  one_architecture.py libnccl.so.2 SMALLER_COPY 90      90 for H100, 80 for A100, 100 for B200

The copy is as long as the library, and every byte that is not GPU code is the same. The machine code of other
architectures, the PTX and the code from before linking become zeros. Their headers stay, so that the CUDA runtime finds
the architecture that is left. `xz` then compresses NCCL 2.32.3 from 452 MiB to 23 MiB.

A fat binary has a header of 16 bytes and then entries. The header of an entry has its kind, lengths and architecture.
No page of NVIDIA's describes this layout. The fields used here are those of the wheels of NCCL 2.18 to 2.32, and the
script refuses anything else.
"""
import struct
import sys

FAT_BINARY_MAGIC = 0xBA55ED50
ELF_KIND = 2  # the kind of an entry with machine code; 1 is PTX


class NotUnderstood(Exception):
    pass


def sections(elf):
    """Returns {name: (offset, bytes)} of a 64-bit ELF file."""
    if elf[:5] != b"\x7fELF\x02":
        raise NotUnderstood("not a 64-bit ELF file")
    table, = struct.unpack_from("<Q", elf, 40)
    entry_bytes, count, names_at = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", elf, table + index * entry_bytes) for index in range(count)]
    names = rows[names_at][4]
    name_of = lambda row: bytes(elf[names + row[0]:elf.index(0, names + row[0])]).decode()
    return {name_of(row): (row[4], row[5]) for row in rows}


def entries(elf, offset, length):
    """Yields (kind, architecture, offset and bytes of the code) of each entry of the fat binaries of one section."""
    end = offset + length
    while offset < end:
        magic, version, header_bytes, size = struct.unpack_from("<IHHQ", elf, offset)
        if magic == 0:  # a gap between fat binaries, which begin at multiples of 8
            offset += 8
            continue
        if magic != FAT_BINARY_MAGIC or version != 1:
            raise NotUnderstood(f"no fat binary at byte {offset}")
        entry, offset = offset + header_bytes, offset + header_bytes + size
        while entry < offset:
            kind, _, entry_header_bytes, code_bytes = struct.unpack_from("<HHIQ", elf, entry)
            architecture, = struct.unpack_from("<I", elf, entry + 28)
            yield kind, architecture, entry + entry_header_bytes, code_bytes
            entry += entry_header_bytes + code_bytes


def leave(elf, wanted):
    """Clears the code in `elf` that `wanted` does not need, and returns how many bytes of code are left."""
    found = sections(elf)
    if ".nv_fatbin" not in found:
        raise NotUnderstood("no GPU code: there is no section .nv_fatbin")
    left = 0
    for section in (".nv_fatbin", "__nv_relfatbin"):
        for kind, architecture, at, size in entries(elf, *found.get(section, (0, 0))):
            if section == ".nv_fatbin" and kind == ELF_KIND and architecture == wanted:
                left += size
            else:
                elf[at:at + size] = bytes(size)
    if left == 0:
        raise NotUnderstood(f"no code for architecture {wanted}")
    return left


def main():
    if len(sys.argv) != 4 or not sys.argv[3].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], "rb") as file:
            elf = bytearray(file.read())
        left = leave(elf, int(sys.argv[3]))
    except (OSError, NotUnderstood, struct.error, ValueError, IndexError) as error:
        print(f"error: {sys.argv[1]}: {error}", file=sys.stderr)
        return 1
    with open(sys.argv[2], "wb") as file:
        file.write(elf)
    print(f"{sys.argv[2]}: {left / 2**20:.1f} MiB of code for architecture {sys.argv[3]} are left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
