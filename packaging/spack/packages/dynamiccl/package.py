# SPDX-License-Identifier: Apache-2.0
"""Recipe for Spack: `spack repo add packaging/spack`, then `spack install dynamiccl`, or `spack dev-build dynamiccl@main`
in a clone. The environment of a loaded package is not changed beyond PATH and MANPATH: LD_PRELOAD is the job's to set."""
import os

from spack.package import *


class Dynamiccl(CMakePackage, CudaPackage):
    """Chooses NCCL's algorithm, protocol and channels from what a training job is doing."""

    license("Apache-2.0")

    version("main")

    variant("torch", default=False, description="The trainer and the agents, which need LibTorch")
    variant("tests", default=False, description="Build the tests")

    generator("ninja")
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("spdlog@1.10: fmt_external=True")
    depends_on("cli11@2.1:")
    depends_on("tomlplusplus@3:")
    depends_on("tl-expected@1:")
    depends_on("xxhash@0.8:")
    depends_on("zlib-api")
    depends_on("zstd@1.5:")
    depends_on("py-torch@2.5: ~cuda", when="+torch")
    depends_on("googletest@1.12: +gmock", when="+tests")
    depends_on("rapidcheck", when="+tests")
    depends_on("libsodium", when="+tests")

    conflicts("%gcc@:11", msg="C++20 as in GCC 12")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    def cmake_args(self):
        """What CMake is told; sources lie where `spack dev-build` says."""
        args = [
            self.define_from_variant("DYNAMICCL_BUILD_TORCH", "torch"),
            self.define_from_variant("DYNAMICCL_BUILD_TESTS", "tests"),
            self.define("DYNAMICCL_BUILD_BENCH", False),
            self.define("DYNAMICCL_BUILD_STUDIES", False),
            self.define("DYNAMICCL_BUILD_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
        if self.spec.satisfies("+torch"):
            torch = self.spec["py-torch"].package
            args.append(self.define("CMAKE_PREFIX_PATH", os.path.join(torch.cmake_prefix_paths[0])))
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        """Two ranks over hostccl with the object preloaded."""
        program = Executable(join_path(self.prefix.bin, "dynamiccl"))
        program("record", "-o", join_path(self.stage.path, "run.ctrace"), "-n", "2", "--",
                join_path(self.prefix.bin, "dynamiccl"), "bench", "all_reduce", "-b", "1K", "-e", "64K", "-f", "8", "-n", "3")
