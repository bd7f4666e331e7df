# SPDX-License-Identifier: Apache-2.0
"""Tests the Grafana dashboard with a real Prometheus and node_exporter (Debian: prometheus, prometheus-node-exporter).

A job over hostccl writes DYNAMICCL_METRICS into the folder of node_exporter's textfile collector. Every query of the
dashboard must return numbers. Exit code 77: one of the programs is not installed. Needs DYNAMICCL_BIN,
DYNAMICCL_SOURCE, NCCL_JOB and WRITE_SAMPLE_POLICY in the environment.
"""

import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

SOURCE = os.environ["DYNAMICCL_SOURCE"]
SECONDS_TO_WAIT = 200  # until all queries return numbers; the job writes its file every 10 s
RATE_INTERVAL = "1m"   # Grafana computes $__rate_interval from the panel's width


def dashboard():
    with open(f"{SOURCE}/tools/grafana/dynamiccl.json") as file:
        return json.load(file)


def queries(board):
    for panel in board["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", RATE_INTERVAL)
            yield panel["title"], re.sub(r"\$(job|rank)", ".*", expression)


def check_model(board):
    """Checks what Grafana needs: panels have different ids, do not overlap and use known variables."""
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)), ids
    cells = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, f"{panel['title']} lies on another panel"
                cells.add((x, y))
        assert panel["targets"] and panel["title"] and panel["description"]
    known = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?([a-z_]+)", json.dumps(board["panels"])))
    assert used <= known, used - known


def check_names(board):
    """Checks that the dashboard shows exactly the documented metrics."""
    with open(f"{SOURCE}/docs/telemetry.md") as file:
        rows = [line for line in file if line.startswith("| `dynamiccl_")]
    documented = set()
    for row in rows:
        names = re.findall(r"`(dynamiccl_\w+|_count)`", row)
        documented |= {names[0].removesuffix("_sum") + name if name == "_count" else name for name in names}
    shown = set(re.findall(r"dynamiccl_\w+", " ".join(expression for _, expression in queries(board))))
    assert shown == documented, f"only shown: {shown - documented}; only documented: {documented - shown}"


def reserve_port():
    """Returns a bound socket and its port. While it is open, the system gives the port to no other program, but a
    program that names the port may listen on it."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved, reserved.getsockname()[1]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:  # 400, 422: a wrong query; 503: Prometheus is starting
        return json.load(error) if error.code in (400, 422) else {"status": "starting"}
    except OSError:  # it does not listen yet
        return {"status": "starting"}


def has_numbers(server, expression):
    answer = get(f"{server}/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    assert answer["status"] != "error", f"{expression}: {answer['error']}"
    if answer["status"] == "starting":
        return False
    return any(math.isfinite(float(row["value"][1])) for row in answer["data"]["result"])


def start(folder, command, **more):
    log = open(f"{folder}/{os.path.basename(command[0])}.log", "w")
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **more)


def start_prometheus(folder, exporter, server):
    with open(f"{folder}/prometheus.yml", "w") as file:
        file.write("global: {scrape_interval: 1s}\n"
                   "scrape_configs:\n"
                   "  - job_name: node\n"
                   f"    static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]\n")
    yield start(folder, ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{exporter}",
                         "--collector.disable-defaults", "--collector.textfile",
                         f"--collector.textfile.directory={folder}/textfile"])
    yield start(folder, ["prometheus", f"--config.file={folder}/prometheus.yml",
                         f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{server}",
                         "--log.level=warn"])


def start_job(folder):
    policy = f"{folder}/p.dcpolicy"
    subprocess.run([os.environ["WRITE_SAMPLE_POLICY"], policy, "Ring", "LL"], check=True)
    with open(f"{folder}/values", "w") as file:
        file.write("bucket_mb=5\n")
    environment = dict(os.environ, DYNAMICCL_METRICS=f"{folder}/textfile/dynamiccl.%r.prom", DYNAMICCL_TIMES="all",
                       DYNAMICCL_MODE="adaptive", DYNAMICCL_VALUES=f"{folder}/values")
    rounds = "1000000"  # the job is ended when all numbers have come
    return start(folder, [os.environ["DYNAMICCL_BIN"], "run", "-n", "2", "--hostccl", "--policy", policy, "--",
                          os.environ["NCCL_JOB"], f"{folder}/id", rounds], env=environment)


def wait_for_numbers(server, wanted, processes):
    deadline = time.monotonic() + SECONDS_TO_WAIT
    missing = list(wanted)
    while missing and time.monotonic() < deadline:
        missing = [(title, expression) for title, expression in missing if not has_numbers(server, expression)]
        ended = [process.args[0] for process in processes if process.poll() is not None]
        assert not ended, f"ended early: {ended}"
        time.sleep(0.5)  # between two looks
    return missing


def main():
    board = dashboard()
    check_model(board)
    check_names(board)
    for program in ("prometheus", "prometheus-node-exporter"):
        if shutil.which(program) is None:
            print(f"skipped: there is no {program} (apt install {program})")
            return 77
    wanted = list(queries(board))
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/textfile")
        reserved, port = reserve_port()
        node_reserved, node_port = reserve_port()
        processes = [start_job(folder), *start_prometheus(folder, node_port, port)]
        try:
            missing = wait_for_numbers(f"http://127.0.0.1:{port}", wanted, processes)
        finally:
            for process in processes:
                os.killpg(process.pid, 15)
                process.wait()
        for title, expression in missing:
            print(f"no numbers for '{title}': {expression}")
        print(f"{len(wanted) - len(missing)} of {len(wanted)} queries bring numbers")
        return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
