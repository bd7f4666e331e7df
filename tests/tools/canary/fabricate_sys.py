#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the /sys, /proc and nvidia-smi of a machine from NCCL's topology file of it, for collect_machine.sh.

    fabricate_sys.py TOPOLOGY.xml FOLDER [--no-driver] [--switches]

It writes sys/, proc/ and bin/nvidia-smi into FOLDER. This nvidia-smi answers the two queries of the collector in the
form that NVIDIA documents. NCCL's topology leaves out PCIe ports, so each PCI device gets a port above it.
--no-driver: writes no nvidia-smi.
--switches: adds an NVSwitch as a PCI device, as on DGX and HGX A100 and H100.
"""
import argparse
import pathlib
import xml.etree.ElementTree as tree

SWITCH = "0000:fe:00.0"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


class Fabricator:
    def __init__(self, folder):
        self.sys = folder / "sys"
        self.folder = folder
        self.ports = 0
        self.gpus = []  # (dev, busid, sm, {target: count}, class of targets)
        (self.sys / "bus/pci/devices").mkdir(parents=True)

    def device(self, path, numa, **attributes):
        for name, value in {**attributes, "numa_node": numa}.items():
            write(path / name, value)
        link = self.sys / "bus/pci/devices" / path.name
        link.symlink_to(path)

    def port(self, parent, numa, element):
        """Makes a root port or a bridge's port, with the speed of the device below it. Returns its path."""
        self.ports += 1
        path = parent / f"0001:{self.ports // 8:02x}:{self.ports % 8 + 1:02x}.0"
        self.device(path, numa, **{"class": "0x060400"}, vendor="0x8086", device="0x347a", subsystem_vendor="0x8086",
                    subsystem_device="0x0000", max_link_speed=element.get("link_speed"), max_link_width=element.get("link_width"))
        return path

    def pci(self, element, parent, numa):
        path = self.port(parent, numa, element) / element.get("busid")
        self.device(path, numa, max_link_speed=element.get("link_speed"), max_link_width=element.get("link_width"),
                    **{name: element.get(name) for name in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device")})
        for child in element:
            if child.tag == "pci":
                self.pci(child, path, numa)
            elif child.tag == "gpu":
                links = {one.get("target"): int(one.get("count")) for one in child.iter("nvlink")}
                classes = {one.get("tclass") for one in child.iter("nvlink")}
                self.gpus.append((int(child.get("dev")), element.get("busid"), child.get("sm"), links, classes))
            elif child.tag == "nic":
                for net in child.iter("net"):
                    self.adapter(net, path)

    def adapter(self, net, path):
        name = self.sys / "class/infiniband" / net.get("name")
        name.mkdir(parents=True)
        (name / "device").symlink_to(path)
        write(name / "sys_image_guid", "0000:0000:0000:%04x" % int(net.get("guid", "0x1"), 16))
        write(name / "ports/1/rate", f"{int(net.get('speed')) // 1000} Gb/sec (4X HDR)")
        write(name / "ports/1/state", "4: ACTIVE")

    def cpus(self, root):
        cpu = root.find("cpu")
        family = int(cpu.get("familyid"))
        # NCCL and Linux add the processor's extended family to its family in different ways.
        family = family if family < 15 or family % 16 != 15 else 15 + family // 16
        write(self.folder / "proc/cpuinfo", f"processor\t: 0\nvendor_id\t: {cpu.get('vendor')}\ncpu family\t: {family}\n"
              f"model\t\t: {cpu.get('modelid')}\nmodel name\t: a processor\n\nprocessor\t: 1\n")

    def between(self, one, other):
        if one[0] == other[0]:
            return " X "
        if other[1] in one[3]:
            return f"NV{one[3][other[1]]}"
        through = one[3] and all(kind.startswith("0x0680") for kind in one[4])
        return f"NV{sum(one[3].values())}" if through else "SYS"

    def driver(self):
        self.gpus.sort()
        head = "\t".join(f"GPU{gpu[0]}" for gpu in self.gpus)
        topo = f"\t\033[4m{head}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
        for gpu in self.gpus:
            cells = "\t".join(self.between(gpu, other) for other in self.gpus)
            topo += f"GPU{gpu[0]}\t{cells}\t0-31\t0\t\tN/A\n"
        topo += "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
        query = "".join(f"{dev}, 0000{bus.upper()}, {sm[:-1]}.{sm[-1]}, NVIDIA GPU\n" for dev, bus, sm, _, _ in self.gpus)
        program = self.folder / "bin/nvidia-smi"
        write(self.folder / "query", query.rstrip("\n"))
        write(self.folder / "topo", topo)
        write(program, f'#!/bin/sh\nif [ "$1" = topo ]; then cat "{self.folder}/topo"; else cat "{self.folder}/query"; fi')
        program.chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topology", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--no-driver", action="store_true")
    parser.add_argument("--switches", action="store_true")
    options = parser.parse_args()
    root = tree.parse(options.topology).getroot()
    made = Fabricator(options.folder.absolute())
    for number, cpu in enumerate(root.findall("cpu")):
        for element in cpu:
            made.pci(element, made.sys / f"devices/pci0000:{number * 64:02x}", cpu.get("numaid"))
    if options.switches:
        path = made.sys / "devices/pci0000:fe" / SWITCH
        made.device(path, "0", **{"class": "0x068000"}, vendor="0x10de", device="0x1af1", subsystem_vendor="0x10de",
                    subsystem_device="0x0000", max_link_speed="16.0 GT/s PCIe", max_link_width="2")
    made.cpus(root)
    if not options.no_driver:
        made.driver()


if __name__ == "__main__":
    main()
