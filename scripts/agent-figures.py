#!/usr/bin/env python3
"""Many agents on one machine: what each keeps for itself, and what it costs them to come back to a server that was away.

    scripts/agent-figures.py --agents 1000

Each agent is its own process with a model of a node in a file. The server is stopped and started again, all nodes are waited for,
and the CPU that the agents used meanwhile is told for one: connect, handshake, hello, the order of the server, and its reports.
"""
import argparse
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request


def private_kb(pid):
    """What would be given back if this process alone ended."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Fleet:
    def __init__(self, folder, bulkhead):
        self.folder, self.bulkhead, self.server = folder, bulkhead, None
        self.ports = ("0", "0")

    def serve(self):
        address = f"{self.folder}/server/address"
        if os.path.exists(address):
            os.remove(address)
        self.server = subprocess.Popen(
            [self.bulkhead, "serve", "--data", f"{self.folder}/server", "--port", self.ports[0], "--agent-port", self.ports[1],
             "--simulated-fleet"], stdout=open(f"{self.folder}/server.log", "a"), stderr=subprocess.STDOUT)
        while not os.path.exists(address):
            time.sleep(0.05)
        with open(address) as file:
            self.url, agents = file.read().split()[:2]
        self.ports = (self.url.rsplit(":", 1)[1], agents)
        self.context = ssl.create_default_context(cafile=f"{self.folder}/server/keys/ca.crt")
        with open(f"{self.folder}/server/keys/admin.token") as file:
            self.token = file.readline().strip()

    def ask(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=body, headers={
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, context=self.context) as reply:
            return json.load(reply)

    def ready(self):
        count, more = 0, ""
        while True:
            page = self.ask(f"/v1/nodes?limit=500{more}")
            items = page.get("items", [])
            count += sum(node["status"].get("phase") == "ready" for node in items)
            if not page["metadata"].get("continue"):
                return count
            more = f"&continue={page['metadata']['continue']}"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--agents", type=int, default=1000)
    options.add_argument("--bulkhead", default="build/bin/bulkhead")
    options = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # by way of the end, which stops what was started
    agents = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        fleet = Fleet(folder, options.bulkhead)
        try:
            fleet.serve()
            policy = (b"apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\n"
                      b"spec: {threatModel: internal, sites: [{name: local, jurisdiction: eu}]}\n")
            urllib.request.urlopen(urllib.request.Request(
                fleet.url + "/v1/apply", data=policy,
                headers={"Authorization": f"Bearer {fleet.token}", "Content-Type": "application/yaml"}), context=fleet.context)
            for i in range(options.agents):
                name = f"node-{i:04}"
                token = fleet.ask("/v1/tokens/enrolment", json.dumps({"node": name}).encode())["token"]
                path = f"{folder}/{name}.token"
                with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                    file.write(token)
                agents.append(subprocess.Popen(
                    [options.bulkhead, "agent", "--data", f"{folder}/{name}", "--name", name, "--server", fleet.url, "--ca",
                     f"{folder}/server/keys/ca.crt", "--token-file", path, "--time", "1"],
                    stdout=open(f"{folder}/agents.log", "a"), stderr=subprocess.STDOUT))
            began = time.monotonic()
            while fleet.ready() < options.agents:
                assert time.monotonic() - began < 1200, f"only {fleet.ready()} of {options.agents} are ready"
                time.sleep(2)
            time.sleep(10)
            sizes = sorted(private_kb(agent.pid) for agent in agents)
            print(f"{len(agents)} agents ready after {time.monotonic() - began:.0f} s; private memory of one: "
                  f"median {sizes[len(sizes) // 2]} kB, most {sizes[-1]} kB, all {sum(sizes) / 1e6:.2f} GB")

            quiet = sum(cpu_s(agent.pid) for agent in agents)
            time.sleep(20)
            idle = (sum(cpu_s(agent.pid) for agent in agents) - quiet) / 20 / len(agents)
            fleet.server.terminate()
            fleet.server.wait()
            before, at = sum(cpu_s(agent.pid) for agent in agents), time.monotonic()
            fleet.serve()
            while fleet.ready() < options.agents:
                time.sleep(1)
            took = time.monotonic() - at
            each = (sum(cpu_s(agent.pid) for agent in agents) - before) / len(agents) - idle * took
            print(f"idle: {idle * 1e3:.2f} ms of CPU a second; all back {took:.0f} s after the server was started again, for "
                  f"{each * 1e3:.1f} ms of CPU an agent")
        finally:
            for agent in agents:
                agent.kill()
            if fleet.server:
                fleet.server.kill()
            for process in agents + [fleet.server]:
                process.wait()


if __name__ == "__main__":
    main()
