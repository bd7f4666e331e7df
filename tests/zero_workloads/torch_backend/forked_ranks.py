# SPDX-License-Identifier: Apache-2.0
"""Starts the tests' programs as forks of one process that has imported torch.

The import takes longer than most of the trainings. The arguments that python() returns take the place of `python` in
the command of a job. They run this file as a client. The client sends its arguments, environment, folder and standard
streams to the server, and ends as the forked program ends. Like an ordinary start, the forked program loads the objects
of LD_PRELOAD and runs sitecustomize before the script. One thing differs: an ordinary start installs the settings hook
before torch is imported, a fork afterwards. So some cases start Python itself.
"""
import functools
import json
import os
import socket
import struct
import sys

_LENGTH = struct.Struct("i")


def _run_client(path, arguments):
    """Returns the exit code of the program. A signal that ends the client ends the program too."""
    request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [_LENGTH.pack(len(request))], [0, 1, 2])
        connection.sendall(request)
        answer = connection.recv(_LENGTH.size)
    return _LENGTH.unpack(answer)[0] if answer else 1


def _receive(connection):
    (length,), streams = _LENGTH.unpack((received := socket.recv_fds(connection, _LENGTH.size, 3))[0]), received[1]
    request = b""
    while len(request) < length:
        request += connection.recv(length - len(request))
    return json.loads(request), streams


def _become(request, streams, own_path):
    """Gives this forked process the streams, environment, folder and modules that a newly started Python would have.
    Returns the program's arguments."""
    import ctypes

    arguments, environment, folder = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for name in filter(None, environment.get("LD_PRELOAD", "").split(":")):
        ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
    sys.path[:] = [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *own_path]
    sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError:
        pass
    return arguments


def _run(arguments):
    """Runs `SCRIPT ...`, `-c TEXT ...` or `-m MODULE ...`."""
    import runpy

    if arguments[0] == "-m":
        sys.argv, _ = arguments[1:], sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv, _ = ["-c", *arguments[2:]], sys.path.insert(0, "")
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv, _ = list(arguments), sys.path.insert(0, os.path.dirname(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


def _serve(path):
    """Forks programs until the test closes its end of standard input. In a fork, this function returns its request."""
    import selectors

    ready, programs = selectors.DefaultSelector(), {}
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    for source in (sys.stdin, listener):
        ready.register(source, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in ready.select():
            if key.fileobj is sys.stdin:
                os._exit(0)
            if key.fileobj is listener:
                connection, _ = listener.accept()
                request, streams = _receive(connection)
                program = os.fork()
                if program == 0:
                    for files in ((listener, ready, connection), *programs.values()):
                        for file in files:
                            file.close()
                    return request, streams
                for stream in streams:
                    os.close(stream)
                ended = open(os.pidfd_open(program))
                programs[program] = ended, connection
                for source in programs[program]:
                    ready.register(source, selectors.EVENT_READ, program)
            elif key.data in programs:
                ended, connection = programs.pop(key.data)
                if key.fileobj is connection:  # the client has ended
                    os.kill(key.data, 9)
                code = os.waitstatus_to_exitcode(os.waitpid(key.data, 0)[1])
                for source in (ended, connection):
                    ready.unregister(source)
                try:
                    connection.send(_LENGTH.pack(code if code >= 0 else 128 - code))
                except OSError:
                    pass
                ended.close()
                connection.close()


def _main():
    if sys.argv[1] != "--serve":
        sys.exit(_run_client(sys.argv[1], sys.argv[2:]))
    own_path = [folder for folder in sys.path[1:] if folder not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    import atexit

    import torch._dynamo  # noqa: F401, DDP and FSDP2 import it when a model is wrapped
    import torch.distributed.fsdp  # noqa: F401
    import torch.distributed.run  # noqa: F401

    _run(_become(*_serve(sys.argv[2]), own_path))
    # At its end, Python frees all modules one by one. In a fork this copies their memory, which takes 0.7 seconds.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(0)


@functools.cache
def python():
    """Returns the arguments that take the place of `python` in a command. The first call starts the server, which ends
    with this process."""
    import atexit  # not at the top, because every client runs this file
    import subprocess
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="dynamiccl_forks_")
    path = os.path.join(folder.name, "socket")
    hostccl = subprocess.check_output([os.environ["DYNAMICCL_PROGRAM"], "path", "--hostccl"], text=True).strip()
    environment = {**os.environ, "LD_LIBRARY_PATH": hostccl, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "--serve", path], env=environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if server.stdout.readline() != "ready\n":
        raise AssertionError("the server of forked ranks did not start")
    atexit.register(lambda: (server.stdin.close(), server.wait(), folder.cleanup()))
    return sys.executable, "-I", "-S", __file__, path


if __name__ == "__main__":
    _main()
