#!/usr/bin/env python3
"""An agent in a process of its own, with nothing but Python's standard library and a NATS connection.

    python3 agent.py critic [DATA_DIRECTORY or nats://user:password@host:port]

For a URL, PARLEY_NATS_NKEY names a file with an nkey seed.
"""
import json
import os
import socket
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True  # leaves no __pycache__ in the checkout
from nkey import sign

RETRY_SECONDS = 1


def say(text):
    print(f"agent: {text}", file=sys.stderr, flush=True)


class Refused(Exception):
    """The server answered, and does not take these credentials."""


class Nats:
    """The few words of the NATS protocol that an agent needs: CONNECT, SUB, UNSUB, PUB, MSG, PING and PONG.

    A lost connection is made again, until it succeeds. `address` is called for each attempt: after a restart of the
    daemon its server may have another port or key.
    """

    def __init__(self, address):
        self.address = address
        self.socket = None
        self.lock = threading.Lock()
        self.attempts = 0
        self.handlers = {}  # number: (subject, queue, handler)
        self.last = 0
        self.on_lost = []

    def send(self, data):
        """What cannot be sent is dropped: the daemon offers a turn again when it hears nothing of it."""
        try:
            with self.lock:
                if self.socket:
                    self.socket.sendall(data)
        except OSError:
            pass  # `run` notices it too

    def publish(self, subject, body, reply=""):
        data = json.dumps(body).encode()
        self.send(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

    def subscribe(self, subject, handler, queue=""):
        with self.lock:
            self.last += 1
            number = str(self.last)
            self.handlers[number] = (subject, queue, handler)
        self.send(f"SUB {subject} {queue} {number}\r\n".encode())
        return number

    def unsubscribe(self, number):
        self.handlers.pop(number, None)
        self.send(f"UNSUB {number}\r\n".encode())

    def run(self):
        """Never returns, unless the first connection is refused."""
        told = None
        was_connected = False
        while True:
            try:
                self.connect()
                for line in self.reader:
                    if line.startswith(b"PONG"):
                        say(f"connected to {self.url}")
                        told, was_connected = None, True
                        print("ready", flush=True)
                    else:
                        self.take(line)
                raise ConnectionError("the server closed it")
            except Refused as error:
                if not was_connected:
                    sys.exit(f"agent: {error}")
                problem = str(error)
            except (OSError, ValueError, KeyError) as error:
                problem = str(error)
            self.lost()
            if problem != told:
                say(f"no connection ({problem}); trying again")
                told = problem
            time.sleep(RETRY_SECONDS)

    def connect(self):
        address = self.address()
        servers = address.get("urls") or [address["url"]]
        at = urllib.parse.urlparse(servers[self.attempts % len(servers)])  # the next one with each attempt
        self.attempts += 1
        self.url = f"{at.hostname}:{at.port or 4222}"
        opened = socket.create_connection((at.hostname, at.port or 4222), timeout=10)
        opened.settimeout(None)
        self.reader = opened.makefile("rb")
        info = json.loads(self.reader.readline()[len("INFO ") :])
        options = {"verbose": False, "lang": "python", "version": "1", "headers": False}
        user, password = address.get("user") or at.username, address.get("password") or at.password
        if user:
            options.update(user=user, **{"pass": password})
        if address.get("nkey"):
            options.update(sign(address["nkey"], info.get("nonce", "").encode()))
        with self.lock:
            self.socket = opened
            subscribed = list(self.handlers.items())
        self.send(f"CONNECT {json.dumps(options)}\r\n".encode())
        for number, (subject, queue, _) in subscribed:
            self.send(f"SUB {subject} {queue} {number}\r\n".encode())
        self.send(b"PING\r\n")  # its PONG says that the server knows of every subscription so far

    def lost(self):
        with self.lock:
            if self.socket:
                self.socket.close()
            self.socket = None
        for callback in list(self.on_lost):
            callback()

    def take(self, line):
        """Each message is handled in a thread of its own."""
        words = line.decode().split()
        if line.startswith(b"PING"):
            self.send(b"PONG\r\n")
        elif line.startswith(b"-ERR"):
            problem = line.decode().strip()
            raise Refused(problem) if "uthoriz" in problem or "uthent" in problem else ConnectionError(problem)
        elif line.startswith(b"MSG"):
            body = json.loads(self.reader.read(int(words[-1]) + 2)[:-2] or b"null")
            reply = words[3] if len(words) == 5 else None
            found = self.handlers.get(words[2])
            if found:
                threading.Thread(target=found[2], args=(body, reply), daemon=True).start()


def serve(nats, slug, answer):
    """Takes the turns of `slug`; `answer(offer, write, over)` gives back the text."""

    def take(offer, reply):
        if "turnId" not in offer:  # a ping: the daemon asks whether anybody is here
            nats.publish(reply, {"accepted": False, "reason": "this is not an offer"})
            return
        about = {"turnId": offer["turnId"], "epoch": offer["epoch"]}
        over = threading.Event()
        control = nats.subscribe(offer["control"], lambda message, _: message.get("type") == "abort" and over.set())
        nats.on_lost.append(over.set)  # the daemon offers the turn again, here or elsewhere
        nats.publish(reply, {"accepted": True, "instance": f"python-{os.getpid()}"})

        def beat():
            while not over.wait(offer["heartbeatMs"] / 1000):
                nats.publish(offer["reply"], {**about, "type": "heartbeat"})

        threading.Thread(target=beat, daemon=True).start()
        chunks = iter(range(1_000_000))

        def write(text):
            chunk = {"turnId": offer["turnId"], "call": f"python-{offer['epoch']}", "n": next(chunks)}
            nats.publish(offer["live"], {**chunk, "type": "text", "delta": text})

        try:
            last = {"type": "final", "content": answer(offer, write, over)}
        except Exception as error:  # people see it in the conversation
            last = {"type": "failed", "code": type(error).__name__, "message": str(error)}
        if not over.is_set():
            nats.publish(offer["reply"], {**about, **last})
        over.set()
        nats.on_lost.remove(over.set)
        nats.unsubscribe(control)

    nats.subscribe(f"parley.agent.{slug}.turn", take, queue=slug)
    try:
        nats.run()
    except KeyboardInterrupt:
        sys.exit(130)  # Ctrl-C


def critic(offer, write, over):
    asked = offer["messages"][-1]["content"]
    write("Let me see. ")
    verdict = f"{len(asked.split())} words, {len(set(asked.lower().split()))} different ones."
    write(verdict)
    return f"Let me see. {verdict}"


def address_in(where):
    """Of a data directory, or of a server by its URL: a function, since both may change while the agent runs."""

    def address():
        if "://" in where:
            return {"url": where, "nkey": os.environ.get("PARLEY_NATS_NKEY")}
        path = os.path.join(where, "connection.json")
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            raise FileNotFoundError(f"no daemon has left its address in {path}") from None

    return address


if __name__ == "__main__":
    slug = sys.argv[1] if len(sys.argv) > 1 else "critic"
    where = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("PARLEY_DATA") or "data"
    serve(Nats(address_in(where)), slug, critic)
