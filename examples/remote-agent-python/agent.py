#!/usr/bin/env python3
"""An agent in a process of its own, with nothing but Python's standard library and a NATS connection.

    python3 agent.py critic [DATA_DIRECTORY or nats://user:password@host:port]
"""
import json
import os
import socket
import sys
import threading
import urllib.parse


class Nats:
    """The few words of the NATS protocol that an agent needs: CONNECT, SUB, UNSUB, PUB, MSG, PING and PONG."""

    def __init__(self, url, user=None, password=None):
        at = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((at.hostname, at.port or 4222))
        self.reader = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.handlers = {}
        self.last = 0
        self.reader.readline()  # INFO
        options = {"verbose": False, "lang": "python", "version": "1", "headers": False}
        user, password = user or at.username, password or at.password
        if user:
            options.update(user=user, **{"pass": password})
        self.send(f"CONNECT {json.dumps(options)}\r\n".encode())

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def publish(self, subject, body, reply=""):
        data = json.dumps(body).encode()
        self.send(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

    def subscribe(self, subject, handler, queue=""):
        with self.lock:
            self.last += 1
            number = str(self.last)
            self.handlers[number] = handler
        self.send(f"SUB {subject} {queue} {number}\r\n".encode())
        return number

    def unsubscribe(self, number):
        self.handlers.pop(number, None)
        self.send(f"UNSUB {number}\r\n".encode())

    def run(self):
        """Reads until the server closes. Each message is handled in a thread of its own."""
        self.send(b"PING\r\n")  # its PONG says that the server knows of every subscription so far
        for line in self.reader:
            words = line.decode().split()
            if line.startswith(b"PING"):
                self.send(b"PONG\r\n")
            elif line.startswith(b"PONG"):
                print("ready", flush=True)
            elif line.startswith(b"-ERR"):
                sys.exit(line.decode().strip())
            elif line.startswith(b"MSG"):
                body = json.loads(self.reader.read(int(words[-1]) + 2)[:-2] or b"null")
                reply = words[3] if len(words) == 5 else None
                handler = self.handlers.get(words[2])
                if handler:
                    threading.Thread(target=handler, args=(body, reply), daemon=True).start()


def serve(nats, slug, answer):
    """Takes the turns of `slug`; `answer(offer, write, over)` gives back the text."""

    def take(offer, reply):
        about = {"turnId": offer["turnId"], "epoch": offer["epoch"]}
        over = threading.Event()
        control = nats.subscribe(offer["control"], lambda message, _: message.get("type") == "abort" and over.set())
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
        nats.unsubscribe(control)

    nats.subscribe(f"parley.agent.{slug}.turn", take, queue=slug)
    nats.run()


def critic(offer, write, over):
    asked = offer["messages"][-1]["content"]
    write("Let me see. ")
    verdict = f"{len(asked.split())} words, {len(set(asked.lower().split()))} different ones."
    write(verdict)
    return f"Let me see. {verdict}"


if __name__ == "__main__":
    slug = sys.argv[1] if len(sys.argv) > 1 else "critic"
    where = sys.argv[2] if len(sys.argv) > 2 else "data"
    if "://" in where:
        address = {"url": where}
    else:
        with open(os.path.join(where, "connection.json"), encoding="utf-8") as file:
            address = json.load(file)
    serve(Nats(address["url"], address.get("user"), address.get("password")), slug, critic)
