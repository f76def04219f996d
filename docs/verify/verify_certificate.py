#!/usr/bin/env python3
"""Checks a certificate of Bulkhead without Bulkhead: Python's standard library and nothing else.

    verify_certificate.py FILE --key KEY [--keys HISTORY] [--tenant NAME] [--lease NAME] [--node NAME] [--accept-lab]
                          [--whole-lease]

FILE holds one certificate or a list of them, KEY is the log's verifier key (name+id+base64) or a file that holds it.
Exit status: 0 proven; of a lease, all of what it had. 1 not proven (with the reason), 2 not a certificate or not a key,
3 sound, but of a lab: not about hardware (0 with --accept-lab), 4 proven in part: of something that the lease had no wipe
is shown; or, with --whole-lease, the file does not say what a lease had.

Written from docs/certificates.md and the public formats (RFC 6962, RFC 8032, c2sp.org/signed-note,
c2sp.org/tlog-checkpoint); it shares no code with the program that makes certificates.
"""
import argparse
import base64
import datetime
import functools
import hashlib
import json
import os
import re
import sys


class NotProven(Exception):
    pass


class NotUsable(Exception):
    pass


# ---- Ed25519 (RFC 8032, section 5.1). Verification only: nothing here is secret, so nothing has to take the same time.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def recover_x(y, sign):
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if x2 == 0:
        return None if sign else 0
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P != 0:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - x2) % P != 0:
        return None
    return P - x if (x & 1) != sign else x


def point(encoded):
    if len(encoded) != 32:
        return None
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(scalar, p):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, p)
        p = add(p, p)
        scalar >>= 1
    return result


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (recover_x(BASE_Y, 0), BASE_Y, 1, recover_x(BASE_Y, 0) * BASE_Y % P)


@functools.lru_cache(maxsize=4096)  # certificates of a list have one checkpoint
def signature_holds(public_key, message, signature):
    if len(signature) != 64:
        return False
    a, r, s = point(public_key), point(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % L
    left, right = multiply(s, BASE), add(r, multiply(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# ---- The formats

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def unbase64(text):
    try:
        raw = base64.b64decode(text, validate=True)
    except Exception:
        raise NotProven(f"{text[:40]!r} is not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise NotProven(f"{text[:40]!r} is not base64 as it is written")
    return raw


def verifier_key(given):
    """(name, 4 bytes of id, 32 bytes of key)"""
    text = given
    if given.count("+") < 2 and os.path.exists(given):
        with open(given, encoding="utf-8") as file:
            text = file.readline().strip()
    try:
        name, digits, rest = text.split("+", 2)
        raw = unbase64(rest)
    except (ValueError, NotProven):
        raise NotUsable(f"{text[:60]!r} is no verifier key: name+id+base64") from None
    if len(raw) != 33 or raw[0] != 1:
        raise NotUsable("the verifier key is not of type Ed25519")
    key_id = sha256(name.encode(), b"\n", raw)[:4]
    if key_id.hex() != digits:
        raise NotUsable("the id in the verifier key does not belong to its name and key")
    return name, key_id, raw[1:]


def open_note(note, terms):
    """The text of a signed note, and the largest tree that a key of ours which has signed it may sign for."""
    cut = note.rfind("\n\n")
    if cut < 0 or not note.endswith("\n"):
        raise NotProven("the checkpoint is not a signed note")
    text, lines = note[:cut + 1], note[cut + 2:].split("\n")[:-1]
    most = -1
    for line in lines:
        if not line.startswith("\u2014 ") or line.count(" ") != 2:
            raise NotProven("the checkpoint has a line that is no signature")
        _, name, encoded = line.split(" ")
        raw = unbase64(encoded)
        for (key_name, key_id, key), upto in terms:
            if name != key_name or raw[:4] != key_id:
                continue  # somebody else's: a witness, or a key we were not told of
            if not signature_holds(key, text.encode(), raw[4:]):
                raise NotProven(f"the signature of {name} does not fit the checkpoint")
            most = max(most, upto)
    if most < 0:
        raise NotProven("no key that was given here has signed the checkpoint")
    return text, most


def open_checkpoint(note, terms, log=None):
    """The size and root in a checkpoint of the log, if one of our keys has signed it that may sign for that size."""
    text, most = open_note(note, terms)
    body = text.split("\n")
    origin, size, root = body[0], body[1], unbase64(body[2])
    if origin != (log or terms[0][0][0]) or not size.isdigit() or str(int(size)) != size or len(root) != 32:
        raise NotProven("the note is no checkpoint of this log")
    if int(size) > most:
        raise NotProven(f"the key that signed for {size} leaves was replaced when the log had {most}")
    return origin, int(size), root


def open_lab_checkpoint(certificate, terms):
    """The same of a certificate that the log's lab has signed: the log's key of that time must have introduced its key."""
    log = terms[0][0][0]
    text, most = open_note(certificate["lab"], terms)
    lines = text.split("\n")
    if len(lines) != 3 or lines[0] != "bulkhead.dev/lab-key/v1":
        raise NotProven("the certificate does not say whose the lab's key is")
    try:
        lab = verifier_key(lines[1])
    except NotUsable as why:
        raise NotProven(str(why)) from None
    if lab[0] != log + "/lab":
        raise NotProven(f"{lab[0]} is not the lab of {log}")
    return open_checkpoint(certificate["checkpoint"], [(lab, most)], log)


def verify_inclusion(index, size, leaf, proof, root):
    """RFC 9162, section 2.1.3.2"""
    if not 0 <= index < size:
        raise NotProven(f"a tree of {size} leaves has no leaf {index}")
    at, last, node = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise NotProven("the inclusion proof is too long")
        if at & 1 or at == last:
            node = sha256(b"\x01", sibling, node)
            while not at & 1 and at != 0:
                at, last = at >> 1, last >> 1
        else:
            node = sha256(b"\x01", node, sibling)
        at, last = at >> 1, last >> 1
    if last != 0:
        raise NotProven("the inclusion proof is too short")
    if node != root:
        raise NotProven("the inclusion proof does not lead to the root that was signed")


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise NotProven("a name is given twice")
    return dict(pairs)


def read_json(text, what):
    try:
        value = json.loads(text, object_pairs_hook=no_duplicates)
    except ValueError:
        raise NotProven(f"the {what} is no JSON") from None
    if not isinstance(value, dict):
        raise NotProven(f"the {what} is no JSON object")
    return value


def open_leaf(leaf, size, root, what):
    """The record in a leaf, once it is shown to be in the tree."""
    try:
        index, payload, salt = leaf["index"], leaf["payload"], bytes.fromhex(leaf["salt"])
        proof = [unbase64(text) for text in leaf.get("proof", [])]
    except (KeyError, TypeError, ValueError):
        raise NotProven(f"the {what} is not a leaf") from None
    if not isinstance(index, int) or len(salt) != 16 or any(len(one) != 32 for one in proof):
        raise NotProven(f"the {what} is not a leaf")
    entry = sha256(salt, payload.encode())
    verify_inclusion(index, size, sha256(b"\x00", entry), proof, root)
    return index, read_json(payload, what)


def key_terms(key, history):
    """Each key of the log with the largest tree it may sign for alone; the last has no end."""
    forever = 1 << 64
    if history is None:
        return [(key, forever)]
    if history.get("version") != "bulkhead.dev/log-keys/v1":
        raise NotUsable("not a history of a log's keys")
    terms = [(verifier_key(history["first"]), forever)]
    for rotation in history.get("rotations", []):
        record = read_json(rotation["record"]["payload"], "record of a key's change")
        if record.get("kind") != "log-key-rotated":
            raise NotProven("the history has a record that changes no key")
        before, after = verifier_key(record["detail"]["before"]), verifier_key(record["detail"]["after"])
        if before != terms[-1][0] or before[0] != after[0]:
            raise NotProven("the history of keys has a gap")
        for signer in (before, after):
            _, size, root = open_checkpoint(rotation["checkpoint"], [(signer, forever)])
            index, _ = open_leaf(rotation["record"], size, root, "record of a key's change")
        if len(terms) > 1 and index <= terms[-2][1]:
            raise NotProven("the history of keys is not in order")
        terms[-1] = (before, index)
        terms.append((after, forever))
    if key not in [term[0] for term in terms]:
        raise NotProven("the key that was given is not in the history")
    return terms


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def pseudonym(opening):
    text = "bulkhead.dev/tenant/v1\n" + opening["salt"] + "\n" + opening["name"]
    return "~" + hashlib.sha256(text.encode()).hexdigest()[:32]


def fences(record, statement):
    """What a node found when it attacked its own fences, which must be what the record says."""
    attempts = {end: [] for end in ("stopped", "got-through", "unclear", "not-tried")}
    for attempt in statement.get("attempts", []):
        if not re.fullmatch("[a-z0-9-]{1,64}", attempt["name"]) or attempt["end"] not in attempts:
            raise NotProven("an attempt of the signed statement has no name or no end that is known")
        attempts[attempt["end"]].append(attempt["name"])
    names = [name for those in attempts.values() for name in those]
    if len(names) > 64 or len(set(names)) != len(names):
        raise NotProven("the signed statement has more attempts than there are, or one of them twice")
    if moment(statement["ended"]) < moment(statement["began"]):
        raise NotProven("the signed statement contradicts itself: the test ended before it began")
    if statement.get("fence") not in ("on", "nic"):
        raise NotProven("the signed statement is of a test with the fences off, which says nothing of them")
    if not statement.get("honestPasses"):
        found = "unproven"
    elif attempts["got-through"]:
        found = "open"
    elif attempts["unclear"] or not attempts["stopped"] or statement.get("why"):
        found = "unproven"
    else:
        found = "closed"
    if statement.get("node") != record.get("node") or record.get("unit") != "nic " + statement["nic"]:
        raise NotProven("the record and the signed statement differ in node or NIC")
    if statement.get("grade") != record.get("grade"):
        raise NotProven("the record and the signed statement differ in grade")
    if record["detail"].get("found") != found:
        raise NotProven(f"the record does not say what the signed statement comes to: {found}")
    said = [f"node {statement['node']} signed that it attacked the fences of NIC {statement['nic']} "
            f"(fence {statement['fence']}) and that they are {found}, known as {statement['grade']}"]
    return said + [f"{end}: {', '.join(names)}" for end, names in attempts.items() if names]


def verify(certificate, terms, expected, accept_lab):
    """What is shown, in words; whether all of it is of a lab; the record and its place; the statement of a wipe."""
    if certificate.get("version") != "bulkhead.dev/certificate/v1":
        raise NotUsable("not a certificate of a version that is known here")
    by_lab = "lab" in certificate
    origin, size, root = (open_lab_checkpoint(certificate, terms) if by_lab
                          else open_checkpoint(certificate["checkpoint"], terms))
    index, record = open_leaf(certificate["record"], size, root, "record")
    of_lab = record.get("grade") in ("emulated", "simulated")
    if by_lab and not of_lab:
        raise NotProven(f"the record is graded {record.get('grade')}, and the lab's key signed for it")
    if of_lab and not by_lab and not accept_lab:
        raise NotProven(f"the record is graded {record.get('grade')}, and signed with the log's own key")

    tenant = record.get("tenant", "")
    if "tenant" in certificate:
        if pseudonym(certificate["tenant"]) != tenant:
            raise NotProven("the certificate names a tenant, and the record another")
        tenant = certificate["tenant"]["name"]
    told = {"tenant": tenant, "lease": record.get("lease", ""), "node": record.get("node", "")}
    for name, wanted in expected.items():
        if wanted and told[name] != wanted:
            raise NotProven(f"the record is about {name} {told[name]!r}, and you asked about {wanted!r}")

    said = [f"the log {origin} holds this record ({record['kind']}) at leaf {index} of the {size} it has signed for"]
    if record["kind"] not in ("wiped", "fabric-selftest"):
        said.append("that anything was wiped is not shown: this is only what was recorded")
        return said, of_lab, (index, record), None

    evidence = record.get("evidence")
    if not evidence or "key" not in certificate:
        raise NotProven(f"the record says {record['kind']}, and nobody has signed for it, or with an unknown key")
    key_index, added = open_leaf(certificate["key"], size, root, "key record")
    if added.get("kind") != "key-added" or added.get("node") != record.get("node") or key_index >= index:
        raise NotProven("the key was not added for this node before that")
    key = unbase64(added["detail"]["publicKey"])
    if hashlib.sha256(key).hexdigest()[:16] != evidence["key"]:
        raise NotProven("the statement names another key than the one that was added")
    message = b"bulkhead.dev/evidence/v1\n" + evidence["statement"].encode()
    if not signature_holds(key, message, unbase64(evidence["signature"])):
        raise NotProven("the node's signature does not fit its statement")
    statement = read_json(evidence["statement"], "statement")
    if record["kind"] == "fabric-selftest":
        return said + fences(record, statement), of_lab, (index, record), None
    for name in ("node", "unit", "lease"):
        if statement.get(name, "") != record.get(name, ""):
            raise NotProven(f"the record and the signed statement differ in {name}")
    if record.get("tenant", "") not in (statement.get("tenants") or [""]):
        raise NotProven("the signed statement does not name the record's tenant")
    if statement.get("grade") != record.get("grade"):
        raise NotProven("the record and the signed statement differ in grade")
    if statement.get("result") != "verified":
        raise NotProven("the signed statement does not say verified")
    if statement["bytesVerified"] > statement["bytes"] or moment(statement["ended"]) < moment(statement["began"]):
        raise NotProven("the signed statement contradicts itself")
    return said + [
        f"node {statement['node']} signed that {statement['unit']} of device {statement['device']} was wiped "
        f"({statement['method']}, {statement['bytes']} bytes, {statement['bytesVerified']} read back)",
        f"from {statement['began']} to {statement['ended']}, known as {statement['grade']}; "
        f"{statement.get('bytesUnreachable', 0)} bytes could not be reached by any program",
    ] + [f"{name}: {statement[name]}" for name in ("claim", "samples") if statement.get(name)], of_lab, (index, record), statement


# ---- All of a lease

def slices(unit):
    """The device, and which of its memory slices; of what is not cut, the first."""
    found = re.fullmatch(r"(.+?)/slices ([0-9]{1,4})-([0-9]{1,4})", unit)
    if not found or int(found[3]) < int(found[2]) or int(found[3]) - int(found[2]) >= 1024:
        return unit, {0}
    return found[1], set(range(int(found[2]), int(found[3]) + 1))


def units_of(record):
    """What the lease had, as (node, unit, serial, shared)."""
    if record.get("kind") != "lease-units" or not record.get("lease"):
        raise NotProven("the record does not say what a lease consisted of")
    units = []
    for node, lines in sorted(record.get("detail", {}).items()):
        for line in lines.split("\n"):
            unit, _, serial = line.partition(" = ")
            shared = unit.endswith(" shared")
            unit = unit.removesuffix(" shared")
            if not unit:
                raise NotProven("the record of what the lease consisted of has an empty line")
            units.append((node, unit, serial, shared))
    return units


def wiped_of(unit, wipe, lease, lease_index, tenant):
    """Which slices of the unit this wipe is of, after the lease had it."""
    node, name, serial, shared = unit
    index, record, device = wipe
    if record.get("node") != node or index <= lease_index or (serial and device != serial):
        return set()
    if record.get("lease") != lease and not (shared and tenant and record.get("tenant") == tenant):
        return set()
    (of, mine), (there, theirs) = slices(name), slices(record.get("unit", ""))
    return mine & theirs if of == there else set()


def account(document, wipes, terms, expected):
    """How many units the lease had, how many were wiped, and a line for each that was not."""
    lease = document["lease"]
    said = {(one["node"], one["unit"]): one["state"] + (": " + one["why"] if one.get("why") else "")
            for one in document.get("unwiped", [])}
    failed = []
    for certificate in document.get("failed", []):
        _, _, (index, failure), _ = verify(certificate, terms, {}, True)
        if failure["kind"] != "wipe-failed":
            raise NotProven("a record that is no wipe that failed is given as one")
        failed.append((index, failure))
    if "consists" not in document:
        if any(record.get("lease") != lease for _, record, _ in wipes):
            raise NotProven("a record in the list is about another lease")
        lines = [f"{node} {unit}: {why}, by the server's word" for (node, unit), why in said.items()]
        return None, len(wipes), lines + ["what the lease consisted of: no record of that is here"]
    _, _, (place, record), _ = verify(document["consists"], terms, {"tenant": expected["tenant"], "lease": lease}, False)
    units, tenant = units_of(record), record.get("tenant", "")
    for index, wiped, device in wipes:
        if wiped.get("lease") != lease and not any(wiped_of(unit, (index, wiped, device), lease, place, tenant)
                                                   for unit in units):
            raise NotProven(f"the list is about lease {lease!r}, and a record in it about {wiped.get('lease')!r}")
    lines = []
    for unit in units:
        node, name, serial, _ = unit
        left = slices(name)[1]
        for wipe in wipes:
            left = left - wiped_of(unit, wipe, lease, place, tenant)
        if not left:
            continue
        reasons = [f"its wipe failed, by entry {index} of the log: {failure['detail'].get('why', '')}"
                   for index, failure in failed if wiped_of(unit, (index, failure, serial), lease, place, tenant)]
        reasons += [f"{why}, by the server's word" for (on, of), why in said.items() if (on, of) == (node, name)]
        lines.append(f"{node} {name}: " + (reasons or ["no certificate of a wipe of it is here"])[0])
    return len(units), len(units) - len(lines), lines


def main():
    arguments = argparse.ArgumentParser(description="Checks a certificate of Bulkhead.")
    arguments.add_argument("file")
    arguments.add_argument("--key", required=True)
    arguments.add_argument("--keys")
    for name in ("tenant", "lease", "node"):
        arguments.add_argument("--" + name, default="")
    arguments.add_argument("--accept-lab", action="store_true")
    arguments.add_argument("--whole-lease", action="store_true")
    given = arguments.parse_args()
    expected = {name: getattr(given, name) for name in ("tenant", "lease", "node")}
    try:
        history = None
        if given.keys:
            with open(given.keys, encoding="utf-8") as file:
                history = read_json(file.read(), "history of keys")
        terms = key_terms(verifier_key(given.key), history)
        with open(given.file, encoding="utf-8") as file:
            document = read_json(file.read(), "certificate")
        version = document.get("version")
        of_lease = version == "bulkhead.dev/certificates/v2"
        listed = of_lease or version == "bulkhead.dev/certificates/v1"
        certificates = document["certificates"] if listed else [document]
        if listed and of_lease != bool(document.get("lease")):
            raise NotUsable("a list of this version that names a lease it should not, or none")
        if not certificates and not of_lease:
            raise NotUsable("there is no certificate in this file")
        if of_lease and given.lease not in ("", document["lease"]):
            raise NotProven(f"the list is about lease {document['lease']!r}, and you asked about {given.lease!r}")
        # Of what leases share, the wipe is that of the last of them: account() sees to it that it belongs here.
        each = dict(expected, lease="") if of_lease else expected
        any_of_lab, wipes = False, []
        for certificate in certificates:
            lines, of_lab, (index, record), statement = verify(certificate, terms, each, given.accept_lab)
            any_of_lab = any_of_lab or of_lab
            if statement:
                wipes.append((index, record, statement["device"]))
            elif of_lease and record.get("lease") != document["lease"]:
                raise NotProven("a record in the list is about another lease")
            for line in lines:
                print("+", line)
        units, shown, missing = account(document, wipes, terms, expected) if of_lease else (0, 0, [])
    except NotProven as why:
        print("NOT PROVEN:", why)
        return 1
    except (NotUsable, OSError, LookupError, TypeError, AttributeError, ValueError, RecursionError) as why:
        print("cannot check:", why, file=sys.stderr)
        return 2
    if missing or (given.whole_lease and not of_lease):
        for line in missing:
            print("- not shown:", line)
        if units and not shown:
            print(f"NOT PROVEN: 0 of {units} units of the lease")
            return 1
        print(f"PARTLY PROVEN: {shown} of {units} units of the lease" if units
              else "PARTLY PROVEN: not that it is all of a lease")
        return 4
    if any_of_lab and not given.accept_lab:
        print("LAB ONLY, NOT HARDWARE: simulated or emulated; --accept-lab if that is what you want")
        return 3
    print("PROVEN IN A LAB" if any_of_lab else "PROVEN")
    return 0


if __name__ == "__main__":
    sys.exit(main())
