# SPDX-License-Identifier: Apache-2.0
"""Checks a bill of materials against the requirements of SPDX 2.3 and against the licences beside it.

  check_bill.py FOLDER VERSION
"""
import json
import pathlib
import re
import sys

folder, version = pathlib.Path(sys.argv[1]), sys.argv[2]
bill = json.loads((folder / "dynamiccl.spdx.json").read_text())
assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0" and bill["SPDXID"] == "SPDXRef-DOCUMENT", bill
assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["documentNamespace"])
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"])
packages = {package["SPDXID"]: package for package in bill["packages"]}
assert len(packages) == len(bill["packages"]), "an SPDXID is used twice"
assert packages["SPDXRef-dynamiccl"]["versionInfo"] == version
for identifier, package in packages.items():
    assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", identifier), identifier
    assert package["downloadLocation"] and package["filesAnalyzed"] is False and package["versionInfo"], package
    assert re.fullmatch(r"[A-Za-z0-9.-]+( WITH [A-Za-z0-9.-]+)?", package["licenseDeclared"]), package
named = {entry["relatedSpdxElement"] for entry in bill["relationships"]}
assert named == set(packages), "a package without a relationship, or the reverse"
texts = {path.stem for path in (folder / "licences").glob("*.txt") if path.stat().st_size > 100}
libraries = {package["name"] for package in bill["packages"]} - {"dynamiccl"}
assert texts == libraries, f"licences {sorted(texts)}, libraries {sorted(libraries)}"
assert {"fmt", "zstd", "zlib", "spdlog", "CLI11", "nlohmann-json", "xxhash", "libstdc++"} <= libraries, libraries
print(f"{len(libraries)} libraries, each with its licence")
