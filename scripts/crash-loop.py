#!/usr/bin/env python3
"""Real processes, killed again and again: a server and agents under load, kill -9 at any moment, then every write that was
acknowledged, every lease and every entry of the log is checked. Bounded: it stops by itself after --rounds."""
import argparse, http.client, json, os, random, shutil, signal, ssl, subprocess, sys, tempfile, threading, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bulkhead", default="build/bin/bulkhead")
parser.add_argument("--rounds", type=int, default=8, help="how often something is killed")
parser.add_argument("--nodes", type=int, default=2)
parser.add_argument("--seed", type=int, default=int(time.time()))
options = parser.parse_args()
chance = random.Random(options.seed)
print(f"crash-loop: seed {options.seed}, {options.rounds} rounds, {options.nodes} nodes", flush=True)

root = tempfile.mkdtemp(prefix="bulkhead-crash-")
# Below what the kernel gives to outgoing connections: a caller that dials a server which is down could be given that very port.
data, port, agent_port = f"{root}/server", 20000 + os.getpid() % 6000, 26000 + os.getpid() % 6000
program = os.path.abspath(options.bulkhead)
children = {}


def start(name, *arguments):
    with open(f"{root}/{name}.log", "ab") as log:
        children[name] = subprocess.Popen([program, *arguments], stdout=log, stderr=log)


def start_server():
    start("server", "serve", "--data", data, "--port", str(port), "--agent-port", str(agent_port), "--simulated-fleet")


def give_up(why):
    print(f"crash-loop: {why}\n  logs are in {root}", flush=True)
    for child in children.values():
        child.kill()
    os._exit(1)


class Caller:
    """One keep-alive connection, opened anew whenever it breaks. All callers have one token, so on a fast machine the server
    holds them to its rate; such a caller waits as long as it is told and asks again."""

    def __init__(self):
        self.connection = None

    def ask(self, method, path, body=None, kind="application/json"):
        while True:
            status, text, wait = self.ask_once(method, path, body, kind)
            if status != 429:
                return status, text
            time.sleep(wait)

    def ask_once(self, method, path, body, kind):
        if self.connection is None:
            context = ssl.create_default_context(cafile=f"{data}/keys/ca.crt")
            self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        token = open(f"{data}/keys/admin.token").read().strip()
        try:
            self.connection.request(method, path, body, {"Authorization": f"Bearer {token}", "Content-Type": kind})
            reply = self.connection.getresponse()
            return reply.status, reply.read().decode(), int(reply.getheader("Retry-After", "1"))
        except (OSError, http.client.HTTPException):
            self.connection = None
            return 0, "", 0


def wait_until(what, holds, seconds=60):
    until = time.time() + seconds
    while time.time() < until:
        if holds():
            return
        time.sleep(0.1)
    give_up(f"{what} did not happen within {seconds} s")


main = Caller()
POLICY = "apiVersion: bulkhead.dev/v1alpha1\nkind: FleetPolicy\nmetadata: {name: fleet}\nspec: {threatModel: internal, sites: [{name: local, jurisdiction: eu}]}\n"
TENANT = "apiVersion: bulkhead.dev/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {class: batch, quota: {limit: 64}}\n"


def up():
    return os.path.exists(f"{data}/keys/admin.token") and main.ask("GET", "/readyz")[0] == 200


def nodes_ready():
    status, body = main.ask("GET", "/v1/nodes")
    return status == 200 and body.count('"ready"') >= options.nodes


def start_agent(name):
    folder = f"{root}/{name}"
    more = []
    if not os.path.exists(f"{folder}/node.json"):
        status, body = main.ask("POST", "/v1/tokens/enrolment", json.dumps({"node": name}))
        if status not in (200, 201):
            give_up(f"no enrolment token: {status} {body}")
        path = f"{root}/{name}.token"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.loads(body)["token"])
        more = ["--server", f"https://127.0.0.1:{port}", "--ca", f"{data}/keys/ca.crt", "--token-file", path]
    start(name, "agent", "--data", folder, "--name", name, "--gpus", "4", "--drives", "1", "--time", "10", *more)


start_server()
wait_until("the first start", up)
assert main.ask("POST", "/v1/apply", POLICY, "application/yaml")[0] == 200
for number in range(options.nodes):
    start_agent(f"node-{number}")
wait_until("the nodes", nodes_ready)
status, body = main.ask("POST", "/v1/apply", TENANT, "application/yaml")
assert status == 200, body

lock, stop = threading.Lock(), threading.Event()
created, deleted, doubtful, writes = set(), set(), set(), 0


def load(worker):
    global writes
    caller, number = Caller(), 0
    mine = []
    while not stop.is_set():
        number += 1
        name = f"w{worker}-{number}"
        body = (f"apiVersion: bulkhead.dev/v1alpha1\nkind: GpuWorkload\nmetadata: {{name: {name}}}\n"
                f"spec: {{tenant: acme, gpu: {{count: 1, mechanism: whole}}}}\n")
        status, text = caller.ask("POST", "/v1/workloads", body, "application/yaml")
        with lock:
            if status == 201:
                created.add(name)
                mine.append(name)
                writes += 1
            elif status in (0, 500, 502, 503, 504):
                doubtful.add(name)
            else:
                give_up(f"create {name}: {status} {text}")
        if len(mine) > 3:
            name = mine.pop(0)
            status, text = caller.ask("DELETE", f"/v1/workloads/{name}")
            with lock:
                if status in (200, 202, 204, 404):
                    created.discard(name)
                    deleted.add(name)
                    writes += 1
                else:
                    created.discard(name)
                    doubtful.add(name)
        time.sleep(0.02 if status else 0.2)


def check(when):
    status, text = main.ask("GET", "/v1/workloads?limit=1000")
    if status != 200:
        give_up(f"{when}: workloads cannot be read: {status}")
    there = {item["metadata"]["name"]: item for item in json.loads(text)["items"]}
    for name in created:
        if name not in there:
            give_up(f"{when}: {name} was acknowledged as created and is gone")
    for name in deleted:
        if name in there and not there[name].get("status", {}).get("deleting"):
            give_up(f"{when}: {name} was acknowledged as deleted and is there")


threads = [threading.Thread(target=load, args=(worker,), daemon=True) for worker in range(3)]
for thread in threads:
    thread.start()
kills = {}
for round_number in range(options.rounds):
    time.sleep(chance.uniform(0.3, 2.0))
    victim = chance.choice(list(children))
    children[victim].send_signal(signal.SIGKILL)
    children[victim].wait()
    kills[victim] = kills.get(victim, 0) + 1
    time.sleep(chance.uniform(0, 0.5))
    start_server() if victim == "server" else start_agent(victim)
    wait_until("coming back", up)
stop.set()
for thread in threads:
    thread.join()
wait_until("the nodes coming back", nodes_ready)
check("after the load")

# Everything is deleted; every slice must come back clean, and only through a wipe on record.
status, text = main.ask("GET", "/v1/workloads?limit=1000")
for item in json.loads(text)["items"]:
    name = item["metadata"]["name"]
    status, text = main.ask("DELETE", "/v1/workloads/" + name)
    if status not in (200, 202, 204, 404):
        give_up(f"delete {name}: {status} {text}")


def none_of(kind):
    status, text = main.ask("GET", f"/v1/{kind}")
    return status == 200 and json.loads(text)["items"] == []


def settled():
    return none_of("leases") and none_of("workloads")


wait_until("settling", settled, 120)
nodes = json.loads(main.ask("GET", "/v1/nodes")[1])["items"]
for node in nodes:
    for gpu in node["status"]["gpus"]:
        for piece in gpu.get("slices", []):
            if piece.get("state", "sanitizing") != "available":
                give_up(f"{node['metadata']['name']} has a slice that is {piece}")
children["server"].send_signal(signal.SIGTERM)
if children["server"].wait(timeout=30) != 0:
    give_up("the server did not stop cleanly")
for name, child in children.items():
    if name != "server":
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=30)
key_file = f"{data}/keys/log.vkey"
verified = subprocess.run([program, "audit", "verify", "--tiles", f"{data}/tiles", "--key", key_file], capture_output=True, text=True)
if verified.returncode != 0:
    give_up(f"the log does not verify: {verified.stdout}{verified.stderr}")
print(f"crash-loop: {sum(kills.values())} kills {kills}, {writes} acknowledged writes, {len(doubtful)} in doubt; none lost; "
      f"{verified.stdout.strip().splitlines()[0] if verified.stdout.strip() else 'log verified'}", flush=True)
shutil.rmtree(root)
