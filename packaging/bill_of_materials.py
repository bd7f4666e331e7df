#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of other projects is inside the package: a bill of materials (SPDX 2.3, JSON) and the licences' texts.

  bill_of_materials.py --version 0.1.0 --objects-by g++|zig --out FOLDER [--compiler 12] [--ziglang FOLDER]

Reads packaging/linked_libraries.json; takes each library's release and licence from the Debian package or the ziglang package
that was built with, and fails where one of them is missing: a package without its licences may not be given away.
SOURCE_DATE_EPOCH, where set, is the date that is written.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid


def fail(what, hint):
    sys.exit(f"error: {what}\n  hint: {hint}")


def is_inside(library, objects_by):
    return any(part in ("objects", "programs") or part == f"objects of {objects_by}" for part in library["in"])


def debian_release(package):
    asked = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    if asked.returncode != 0:
        fail(f"the release of {package} is not known", "tools/setup/install.sh installs it (packages are made on Debian)")
    return asked.stdout


def from_debian(package):
    """(release of the library, bytes of its licence); Debian's epoch and revision are not the library's."""
    release = re.sub(r"^\d+:|(\.dfsg)?[-+~].*$", "", debian_release(package))
    licence = pathlib.Path("/usr/share/doc") / package / "copyright"
    if not licence.is_file():
        fail(f"{licence} is missing", f"apt-get install --reinstall {package}, without excluding /usr/share/doc")
    return release, licence.read_bytes()


def from_ziglang(folder, licence):
    if folder is None:
        fail("objects of zig, and no --ziglang", "name the folder of the Python package ziglang")
    version = subprocess.run([str(folder / "zig"), "version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"of zig {version}", (folder / licence).read_bytes()


def release_and_licence(library, options):
    if "debian" in library:
        return from_debian(library["debian"].replace("DEV", f"{options.compiler}-dev"))
    return from_ziglang(options.ziglang, library["ziglang"])


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def spdx_package(name, release, licence, home, comment):
    return {
        "SPDXID": spdx_id(name),
        "name": name,
        "versionInfo": release,
        "downloadLocation": "NOASSERTION",
        "homepage": home,
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "comment": comment,
    }


def creation_time():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now(datetime.timezone.utc)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def document(version, packages):
    own = spdx_package("dynamiccl", version, "Apache-2.0", "NOASSERTION", "this package")
    del own["homepage"]
    text = json.dumps(packages, sort_keys=True)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"dynamiccl-{version}",
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'dynamiccl-{version}-{text}')}",
        "creationInfo": {"created": creation_time(), "creators": ["Tool: packaging/bill_of_materials.py"]},
        "packages": [own] + packages,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": own["SPDXID"]}]
        + [{"spdxElementId": own["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": package["SPDXID"]}
           for package in packages],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--objects-by", choices=["g++", "zig"], required=True)
    parser.add_argument("--compiler", default="12", help="g++'s major release")
    parser.add_argument("--ziglang", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    table = json.loads((pathlib.Path(__file__).parent / "linked_libraries.json").read_text())
    licences = options.out / "licences"
    licences.mkdir(parents=True, exist_ok=True)
    packages = []
    for library in table:
        if not is_inside(library, options.objects_by):
            continue
        release, text = release_and_licence(library, options)
        (licences / f"{library['name']}.txt").write_bytes(text)
        inside = ", ".join(part for part in library["in"] if part in ("objects", "programs") or options.objects_by in part)
        packages.append(spdx_package(library["name"], release, library["spdx"], library["home"], f"compiled into: {inside}"))
    (options.out / "dynamiccl.spdx.json").write_text(json.dumps(document(options.version, packages), indent=1) + "\n")


if __name__ == "__main__":
    main()
