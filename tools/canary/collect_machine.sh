#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Describes this node for `dynamiccl canary --machine FILE`. It is for nodes without NCCL, which could write a
# description itself (NCCL_TOPO_DUMP_FILE):
#
#   sh collect_machine.sh >node.inventory               # on the node; needs no installation, no root, no GPU call
#   ssh NODE sh -s <collect_machine.sh >node.inventory
#
# The script reads /sys and /proc, and runs nvidia-smi and lspci if they are installed. It writes only to standard
# output. The argument gdr=1 or gdr=0 says whether GPUs can reach adapters by GPUDirect RDMA; give it if the kernel does
# not show this. docs/formats/machine_inventory.md describes the format. Tests set SYSFS and PROCFS to replace /sys and
# /proc.
set -u
LC_ALL=C
export LC_ALL
SYSFS="${SYSFS:-/sys}"
PROCFS="${PROCFS:-/proc}"
tab="$(printf '\t')"

gdr=unknown
for word in "$@"; do
  case "$word" in
  gdr=0 | gdr=1) gdr="${word#gdr=}" ;;
  *)
    echo "collect_machine.sh: '$word' is neither gdr=0 nor gdr=1" >&2
    exit 2
    ;;
  esac
done
if [ ! -d "$SYSFS/bus/pci/devices" ]; then
  echo "collect_machine.sh: no $SYSFS/bus/pci/devices: run it on the node itself, or in a container that sees its /sys" >&2
  exit 1
fi
if [ "$gdr" = unknown ] && { [ -d "$SYSFS/module/nvidia_peermem" ] || [ -d "$SYSFS/module/nv_peer_mem" ]; }; then
  gdr=1
fi

# Prints the content of a file in one line, or - for an empty or missing file.
value() {
  text="$(tr '\t\n' '  ' 2>/dev/null <"$1")"
  text="${text% }"
  printf '%s' "${text:--}"
}

# Prints the path of a device below /sys/devices: pci0000:00/0000:00:01.0/0000:01:00.0
place() {
  real="$(cd -P "$1" 2>/dev/null && pwd)" || real=
  printf '%s' "${real##*/devices/}"
}

cpu() {
  [ -r "$PROCFS/cpuinfo" ] || return 0
  awk -F'[ \t]*:[ \t]*' -v OFS="$tab" '
    $1 == "vendor_id" { vendor = $2 } $1 == "cpu family" { family = $2 } $1 == "model" { model = $2 }
    $1 == "" && NR > 1 { exit }
    END { print "cpu", vendor == "" ? "-" : vendor, family == "" ? "-" : family, model == "" ? "-" : model }' "$PROCFS/cpuinfo"
}

pci_devices() {
  for device in "$SYSFS"/bus/pci/devices/*; do
    [ -d "$device" ] || continue
    printf 'pci\t%s' "$(place "$device")"
    for file in class vendor device subsystem_vendor subsystem_device max_link_speed max_link_width numa_node; do
      printf '\t%s' "$(value "$device/$file")"
    done
    printf '\n'
  done
}

adapters() {
  for adapter in "$SYSFS"/class/infiniband/*; do
    [ -d "$adapter/device" ] || continue
    for port in "$adapter"/ports/*; do
      printf 'ib\t%s\t%s\t%s\t%s\t%s\t%s\n' "${adapter##*/}" "$(place "$adapter/device")" "${port##*/}" \
        "$(value "$port/rate")" "$(value "$port/state")" "$(value "$adapter/sys_image_guid")"
    done
  done
  for interface in "$SYSFS"/class/net/*; do
    [ -d "$interface/device" ] || continue
    printf 'eth\t%s\t%s\t%s\t%s\n' "${interface##*/}" "$(place "$interface/device")" "$(value "$interface/speed")" \
      "$(value "$interface/operstate")"
  done
}

# Runs a command and prints its lines, each with a word and a tab in front. Prints nothing if the command does not exist.
lines_of() {
  word="$1"
  shift
  command -v "$1" >/dev/null 2>&1 || return 0
  "$@" 2>/dev/null </dev/null | while IFS= read -r line; do printf '%s\t%s\n' "$word" "$line"; done
}

body="$(
  printf 'dynamiccl-machine-inventory\t1\n'
  printf 'host\t%s\nkernel\t%s\narch\t%s\ngdr\t%s\n' "$(uname -n)" "$(uname -r)" "${ARCH:-$(uname -m)}" "$gdr"
  cpu
  pci_devices
  adapters
  lines_of gpu nvidia-smi --query-gpu=index,pci.bus_id,compute_cap,name --format=csv,noheader
  lines_of topo nvidia-smi topo -m
  lines_of lspci lspci -D -nn
)"
# The last line has the checksum (POSIX cksum) and the number of all bytes before it.
printf '%s\n' "$body"
printf '%s\n' "$body" | cksum | awk '{ printf "end\t%s\t%s\n", $1, $2 }'
