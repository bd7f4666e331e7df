# SPDX-License-Identifier: Apache-2.0
"""The command `dynamiccl` of the wheel: becomes the program that lies in it."""
import os
import sys

import dynamiccl


def main():
    program = dynamiccl.program()
    os.execv(program, ["dynamiccl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
