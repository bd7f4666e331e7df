# SPDX-License-Identifier: Apache-2.0
"""Tests the Dockerfile and the Spack recipe, which cannot be run everywhere.

Everything that they name must exist: scripts, build options and files that a build makes. They must name every library
that CMake asks for."""
import ast
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECIPE = (ROOT / "packaging/spack/packages/dynamiccl/package.py").read_text()
DOCKER = (ROOT / "packaging/docker/Dockerfile").read_text()
CMAKE = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cmake/cuda_toolkit.cmake").read_text()


class Recipes(unittest.TestCase):
    def test_recipe_is_python_and_gives_options_that_exist(self):
        ast.parse(RECIPE)
        options = set(re.findall(r"DYNAMICCL_[A-Z_]+", RECIPE))
        self.assertGreaterEqual(len(options), 4)
        for option in options:
            self.assertIn(option, CMAKE)

    def test_recipe_asks_for_every_library_that_is_linked(self):
        named = {"tl-expected": "tl-expected", "zlib": "zlib-api", "CLI11": "cli11"}
        for library in json.loads((ROOT / "packaging/linked_libraries.json").read_text()):
            if "debian" not in library or library["name"] == "libstdc++":
                continue  # the compiler has its own
            name = named.get(library["name"], library["name"])
            self.assertRegex(RECIPE, rf'depends_on\("{re.escape(name)}[@" ]', library["name"])

    def test_every_library_of_cmake_is_in_the_list(self):
        text = (ROOT / "cmake/dependencies.cmake").read_text()
        asked = set(re.findall(r"find_package\((\w+) REQUIRED\)", text)) - {"Threads", "PkgConfig", "GTest"}
        asked |= set(re.findall(r"find_path\((\w+)_INCLUDE_DIR", text)) | set(re.findall(r"pkg_check_modules\((\w+) ", text))
        plain = lambda name: re.sub(r"[^a-z0-9]", "", name.lower())
        listed = {plain(library["name"]) for library in json.loads((ROOT / "packaging/linked_libraries.json").read_text())}
        self.assertEqual({plain(name) for name in asked} - listed, set())
        self.assertGreaterEqual(len(asked), 8)

    def test_dockerfile_names_scripts_and_files_that_exist(self):
        scripts = set(re.findall(r"tools/setup/\w+\.sh", DOCKER))
        self.assertGreaterEqual(len(scripts), 3)
        for script in scripts:
            self.assertTrue((ROOT / script).is_file(), script)
        made = (ROOT / "tools/setup/build_packages.sh").read_text()
        self.assertIn('"$folder/packages"', made)
        self.assertIn('"$folder/wheel"', made)
        stages = re.findall(r"^FROM \S+ AS (\w+)", DOCKER, re.MULTILINE)
        for stage in re.findall(r"(?:--from|from)=(\w+)", DOCKER):
            self.assertIn(stage, stages + ["dynamiccl"])


if __name__ == "__main__":
    unittest.main()
