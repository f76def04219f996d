#!/usr/bin/env python3
"""What the control plane costs: CPU of the server's process for a durable submit and for an authorised read over TLS, and the
round trip of the command line. A real server on a scratch folder, loopback only; it stops by itself."""
import argparse, functools, json, multiprocessing, os, re, shutil, socket, ssl, statistics, subprocess, sys, tempfile, time

print = functools.partial(print, flush=True)
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--bulkhead", default="build/bin/bulkhead")
parser.add_argument("--seconds", type=float, default=8, help="of each load")
parser.add_argument("--processes", type=int, default=4, help="that call")
parser.add_argument("--connections", type=int, default=16, help="of each process, one request in flight on each")
options = parser.parse_args()
program = os.path.abspath(options.bulkhead)
root = tempfile.mkdtemp(prefix="bulkhead-figures-")
data = f"{root}/server"


def connect(port):
    context = ssl.create_default_context(cafile=f"{data}/keys/ca.crt")
    raw = socket.create_connection(("127.0.0.1", port), timeout=30)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def request(method, path, token, body=""):
    return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()


def answer(line):
    text = b""
    while b"\r\n\r\n" not in text:
        part = line.recv(65536)
        if not part:
            raise ConnectionError("the server hung up")
        text += part
    head, rest = text.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"content-length: *(\d+)", head, re.I).group(1))
    while len(rest) < length:
        rest += line.recv(65536)
    return int(head.split(b" ")[1]), rest


def ask(port, token, method, path, body=""):
    line = connect(port)
    line.sendall(request(method, path, token, body))
    status, text = answer(line)
    if status >= 300:
        sys.exit(f"{method} {path}: {status} {text.decode()}")
    return json.loads(text)


def call(port, tokens, what, process, seconds, done):
    """Requests in lockstep on every connection: as many are in flight as there are connections."""
    lines = [connect(port) for _ in range(options.connections)]
    count, refused, until, turn = 0, 0, time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for place, line in enumerate(lines):
            number = turn // 2
            token = tokens[(process + place) % len(tokens)]
            if what == "submit":  # and take back: every other one, so that the queue stays short
                name = f"w{process}-{place}-{number}"
                body = json.dumps({"apiVersion": "bulkhead.dev/v1alpha1", "kind": "GpuWorkload", "metadata": {"name": name},
                                   "spec": {"tenant": "acme", "gpu": {"count": 1, "mechanism": "whole"}}})
                if turn % 2 == 0:
                    line.sendall(request("POST", "/v1/workloads", token, body))
                else:
                    line.sendall(request("DELETE", f"/v1/workloads/{name}", token))
            else:
                line.sendall(request("GET", "/v1/tenants/acme", token))
        for line in lines:
            status, text = answer(line)
            if status >= 300 and refused == 0:
                print(f"refused: {text.decode()[:300]}", file=sys.stderr)
            count, refused = (count + 1, refused) if status < 300 else (count, refused + 1)
        turn += 1
    done.put((count, refused))


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13]]  # our own code, the kernel for us


def fsync_p50():
    times, file = [], os.open(f"{root}/fsync", os.O_CREAT | os.O_WRONLY)
    for _ in range(200):
        os.write(file, b"x" * 4096)
        began = time.perf_counter()
        os.fdatasync(file)
        times.append(time.perf_counter() - began)
    os.close(file)
    return statistics.median(times) * 1e6


agent = None
server = subprocess.Popen([program, "serve", "--data", data, "--port", "0", "--agent-port", "0",
                           "--requests-per-second", "1000000", "--simulated-fleet"],
                          stdout=subprocess.DEVNULL, stderr=open(f"{root}/log", "wb"))
try:
    until = time.time() + 30
    while not os.path.exists(f"{data}/address") and time.time() < until and server.poll() is None:
        time.sleep(0.05)
    url = open(f"{data}/address").read().split()[0]
    port = int(url.rsplit(":", 1)[1])
    admin = open(f"{data}/keys/admin.token").read().strip()
    ask(port, admin, "POST", "/v1/policies", json.dumps(
        {"apiVersion": "bulkhead.dev/v1alpha1", "kind": "FleetPolicy", "metadata": {"name": "fleet"},
         "spec": {"threatModel": "internal", "sites": [{"name": "local", "jurisdiction": "eu"}]}}))
    ask(port, admin, "POST", "/v1/tenants", json.dumps(
        {"apiVersion": "bulkhead.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "acme"},
         "spec": {"class": "batch", "quota": {"limit": 1}}}))
    # A node, so that work is accepted; a quota that is used up, so that it waits and is not placed.
    enrolment = f"{root}/enrolment"
    with os.fdopen(os.open(enrolment, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(ask(port, admin, "POST", "/v1/tokens/enrolment", json.dumps({"node": "node-0"}))["token"])
    agent = subprocess.Popen([program, "agent", "--data", f"{root}/node-0", "--name", "node-0", "--gpus", "8", "--time", "100", "--server", url, "--ca",
                              f"{data}/keys/ca.crt", "--token-file", enrolment], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while '"ready"' not in json.dumps(ask(port, admin, "GET", "/v1/nodes")):
        time.sleep(0.2)
    ask(port, admin, "POST", "/v1/workloads", json.dumps(
        {"apiVersion": "bulkhead.dev/v1alpha1", "kind": "GpuWorkload", "metadata": {"name": "holder"},
         "spec": {"tenant": "acme", "gpu": {"count": 1, "mechanism": "whole"}}}))
    while '"running"' not in json.dumps(ask(port, admin, "GET", "/v1/workloads/holder")):
        time.sleep(0.2)
    tokens = [admin] + [ask(port, admin, "POST", "/v1/tokens", json.dumps(
        {"role": "platform-admin", "subject": f"caller-{i}"}))["token"] for i in range(23)]
    print(f"fsync p50 {fsync_p50():.0f} us; {options.processes} processes x {options.connections} connections")
    for what, said in (("read", "authorised TLS read"), ("submit", "durable submit")):
        done = multiprocessing.Queue()
        callers = [multiprocessing.Process(target=call, args=(port, tokens, what, i * options.connections, options.seconds, done))
                   for i in range(options.processes)]
        before, began = cpu(server.pid), time.monotonic()
        for caller in callers:
            caller.start()
        results = [done.get() for _ in callers]
        for caller in callers:
            caller.join()
        own, kernel = (after - at for after, at in zip(cpu(server.pid), before))
        took = time.monotonic() - began
        count, refused = sum(r[0] for r in results), sum(r[1] for r in results)
        each = 1e6 / max(count, 1)
        print(f"{said}: {(own + kernel) * each:.1f} us of server CPU ({own * each:.1f} own, {kernel * each:.1f} kernel), "
              f"{count / took:.0f}/s, {count} answered, {refused} refused")
    times = []
    environment = dict(os.environ, HOME=root)
    for _ in range(20):
        began = time.perf_counter()
        subprocess.run([program, "get", "tenants", "acme", "--server", url, "--ca", f"{data}/keys/ca.crt", "--token-file",
                        f"{data}/keys/admin.token"], env=environment, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    print(f"command line, one get: median {statistics.median(times) * 1e3:.1f} ms, least {min(times) * 1e3:.1f} ms")
finally:
    if agent:
        agent.kill()
    server.terminate()
    server.wait(20)
    shutil.rmtree(root, ignore_errors=True)
