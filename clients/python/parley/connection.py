"""The part of the NATS protocol that a client of Parley needs, in one thread that reads.

A lost connection is made again until it succeeds, with the next server of the list and the credentials as the files have
them then: a restarted daemon may have another port and key. So is one whose server does not answer two PINGs: a network can
forget a connection without an end.
"""
import json
import os
import queue
import re
import secrets
import socket
import ssl
import sys
import threading
import time
import urllib.parse

from .errors import ParleyError
from .nkey import credentials, sign

CONNECT_SECONDS = 10
RETRY_SECONDS = 1
PING_SECONDS = 30
NO_RESPONDERS = "503"


def say(text):
    print(f"parley: {text}", file=sys.stderr, flush=True)


def address_of(where):
    """A function that reads the address: of a data directory, which a running daemon writes, or of a server by its URL."""

    def address():
        if "://" in where:
            env = os.environ.get
            return {
                "url": where,
                "urls": where.split(","),
                "nkey": env("PARLEY_NATS_NKEY"),
                "credentials": env("PARLEY_NATS_CREDENTIALS"),
                "inboxPrefix": env("PARLEY_NATS_INBOX_PREFIX"),
            }
        path = os.path.join(where, "connection.json")
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            raise FileNotFoundError(f"no daemon has left its address in {path}") from None

    return address


class Message:
    def __init__(self, subject, reply, headers, data):
        self.subject = subject
        self.reply = reply
        self.headers = headers
        self.data = data

    def json(self):
        """None for what is not JSON."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError):
            return None

    def fields(self):
        """Of a JSON object; none for anything else."""
        body = self.json()
        return body if isinstance(body, dict) else {}


class Connection:
    """`on_change` is called with True after each (re)connection and with False after each loss."""

    def __init__(self, where, is_patient=False):
        self._address = address_of(where)
        self._socket = None
        self._lock = threading.Lock()
        self._subscriptions = {}  # number: (subject, queue, handler)
        self._last = 0
        self._attempts = 0
        self._closed = threading.Event()
        self._connected = threading.Event()
        self._waiting = {}  # token of an inbox: a queue
        self._pongs = []
        self._refusal = None
        self.on_change = []
        self.max_payload = 1024 * 1024
        self.prefix = "parley"
        self.url = ""
        self._inbox = ""
        if not is_patient:
            try:
                self._open()
            except (OSError, ValueError, KeyError) as error:
                raise ParleyError("NATS_UNREACHABLE", str(error), "start the daemon with `parley up`, or name its server") from None
        self._reader_thread = threading.Thread(target=self._run, daemon=True)
        self._reader_thread.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def subject(self, *tokens):
        """The only place where names become part of a subject: a name with blanks would end it, and the rest would be commands."""
        for token in tokens:
            if not re.fullmatch("[A-Za-z0-9_-]{1,128}", token):
                raise ParleyError("INVALID_NAME", f"{token!r} is not allowed in a subject", "use 1 to 128 letters, digits, _ or -")
        return ".".join([self.prefix, *tokens])

    def publish(self, subject, body, reply=""):
        """What cannot be sent is dropped: requests are repeated, and the daemon offers a turn again."""
        data = json.dumps(body).encode()
        if len(data) > self.max_payload:
            raise ParleyError("TOO_LARGE", f"{len(data)} bytes, and the server takes at most {self.max_payload}")
        self._send(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

    def subscribe(self, subject, handler, queue=""):
        """`handler` gets each `Message`, in order, in the thread that reads: it must not wait."""
        with self._lock:
            self._last += 1
            number = str(self._last)
            self._subscriptions[number] = (subject, queue, handler)
        self._send(f"SUB {subject} {queue} {number}\r\n".encode())
        return number

    def unsubscribe(self, number):
        self._subscriptions.pop(number, None)
        self._send(f"UNSUB {number}\r\n".encode())

    def request(self, subject, body, timeout=None, until=None):
        """The `Message` that answers; its headers have a status if nobody listens. None: no answer in `timeout` seconds, the
        connection was lost, or the event `until` was set."""
        token = secrets.token_hex(11)
        answers = self._waiting[token] = queue.Queue()
        end = None if timeout is None else time.monotonic() + timeout
        inbox = self._inbox
        try:
            self.publish(subject, body, inbox + token)
            while not (until and until.is_set()) and inbox == self._inbox and (end is None or time.monotonic() < end):
                try:
                    answer = answers.get(timeout=0.2 if end is None else max(0, min(0.2, end - time.monotonic())))
                except queue.Empty:
                    continue
                if isinstance(answer, ParleyError):
                    raise answer
                return answer
            return None
        finally:
            self._waiting.pop(token, None)

    def flush(self, callback, patience=-1):
        """`callback` is called when the server knows everything that was sent so far. `patience`: seconds, in which another
        thread may send; without an end by default."""
        self._send(b"PING\r\n", lambda: self._pongs.append(callback), patience)

    def wait_connected(self, timeout=None):
        if self._closed.is_set():
            raise self._refusal or ParleyError("CONNECTION_CLOSED", "the connection to NATS is closed", "connect again")
        return self._connected.wait(timeout)

    def join(self):
        """Until the connection is closed, or refused for good."""
        while self._reader_thread.is_alive():
            self._reader_thread.join(0.5)  # a whole wait would hold Ctrl-C back on some systems
        if self._refusal:
            raise self._refusal

    def close(self):
        self._closed.set()
        self._lose()

    def _send(self, data, before=lambda: None, patience=-1):
        if not self._lock.acquire(timeout=patience):
            return
        try:
            before()
            if self._socket:
                self._socket.sendall(data)
        except OSError:
            pass  # the thread that reads notices it too
        finally:
            self._lock.release()

    def _open(self):
        """Connects once. The PONG of its PING says that the server knows every subscription so far."""
        address = self._address()
        servers = address.get("urls") or [address["url"]]
        at = urllib.parse.urlparse(servers[self._attempts % len(servers)])
        self._attempts += 1
        host, port = at.hostname, at.port or 4222
        opened = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
        reader = opened.makefile("rb")
        info = json.loads(reader.readline()[len("INFO ") :])
        tls = address.get("tls") or {}
        if tls or at.scheme == "tls" or info.get("tls_required"):
            context = ssl.create_default_context(cafile=tls.get("ca"))
            if tls.get("cert"):
                context.load_cert_chain(tls["cert"], tls.get("key"))
            opened = context.wrap_socket(opened, server_hostname=host)
            reader = opened.makefile("rb")
        opened.sendall(f"CONNECT {json.dumps(self._login(address, at, info))}\r\nPING\r\n".encode())
        for line in reader:
            if line.startswith(b"PONG"):
                break
            if line.startswith(b"-ERR"):
                raise ParleyError("NATS_UNAUTHORIZED", line.decode().strip(), "check the user, nkey or credentials file")
        else:
            raise ConnectionError("the server closed the connection")
        opened.settimeout(None)
        self.prefix = address.get("prefix") or os.environ.get("PARLEY_SUBJECT_PREFIX") or "parley"
        self.max_payload = info.get("max_payload", self.max_payload)
        self.url = f"{host}:{port}"
        with self._lock:
            self._socket, self._reader = opened, reader
            self._inbox = f"{address.get('inboxPrefix') or '_INBOX'}.{secrets.token_hex(11)}."
            self._last += 1
            self._subscriptions = {n: s for n, s in self._subscriptions.items() if s[2] != self._answer}
            self._subscriptions[str(self._last)] = (self._inbox + "*", "", self._answer)
            lines = [f"SUB {subject} {group} {n}\r\n" for n, (subject, group, _) in self._subscriptions.items()]
            opened.sendall("".join(lines).encode())
        self._connected.set()
        for callback in list(self.on_change):
            callback(True)

    @staticmethod
    def _login(address, at, info):
        nonce = info.get("nonce", "").encode()
        options = {"verbose": False, "lang": "python", "version": "0.1.0", "headers": True, "no_responders": True}
        secret = lambda name: _text_of(address[f"{name}File"]) if address.get(f"{name}File") else address.get(name)
        of_url = lambda text: text and urllib.parse.unquote(text)  # those of files are as they are
        user, password, token = address.get("user") or of_url(at.username), secret("password") or of_url(at.password), secret("token")
        if address.get("credentials"):
            options.update(credentials(address["credentials"], nonce))
        elif address.get("nkey"):
            options.update(sign(address["nkey"], nonce))
        elif user and password:
            options.update(user=user, **{"pass": password})
        elif token or user:
            options.update(auth_token=token or user)
        return options

    def _run(self):
        told = None
        was_connected = self._socket is not None
        while not self._closed.is_set():
            try:
                if self._socket is None:
                    self._open()
                    was_connected, told = True, None
                for line in self._reader:
                    self._take(line)
                raise ConnectionError("it was closed")
            except ParleyError as error:
                if not was_connected:
                    self._refusal = error
                    self._closed.set()
                problem = str(error)
            except (OSError, ValueError, KeyError) as error:
                problem = str(error)
            self._lose()
            if self._closed.is_set():
                return
            if problem != told:
                say(f"no connection ({problem}); trying again")
                told = problem
            self._closed.wait(RETRY_SECONDS)

    def _watch(self):
        watched, unanswered = None, []
        while not self._closed.wait(PING_SECONDS):
            if self._socket is not watched:
                watched, unanswered = self._socket, []
            if len(unanswered) == 2:
                say("the server does not answer: connecting again")
                self._lose()
            elif watched:
                unanswered.append("PING")
                self.flush(unanswered.clear, PING_SECONDS)

    def _lose(self):
        opened = self._socket
        if opened is None:
            return
        try:
            opened.shutdown(socket.SHUT_RDWR)  # wakes the threads that read and send, of which one may have the lock
        except OSError:
            pass
        with self._lock:
            if self._socket is not opened:
                return
            self._socket, self._inbox = None, ""
            self._pongs.clear()
        opened.close()
        self._connected.clear()
        for callback in list(self.on_change):
            callback(False)

    def _take(self, line):
        words = line.decode().split()
        if line.startswith(b"PING"):
            self._send(b"PONG\r\n")
        elif line.startswith(b"PONG"):
            for callback in self._pongs[:1]:
                self._pongs.remove(callback)
                callback()
        elif line.startswith(b"-ERR"):
            problem = line.decode().strip()
            if "ermissions" not in problem:
                raise ConnectionError(problem)
            refusal = ParleyError("NATS_FORBIDDEN", problem, "use other credentials, or name the inbox prefix of this user")
            say(str(refusal))
            for waiting in list(self._waiting.values()):
                waiting.put(refusal)
        elif line.startswith(b"MSG"):
            self._deliver(words[1], words[2], words[3] if len(words) == 5 else None, 0, int(words[-1]))
        elif line.startswith(b"HMSG"):
            reply = words[3] if len(words) == 6 else None
            self._deliver(words[1], words[2], reply, int(words[-2]), int(words[-1]))

    def _deliver(self, subject, number, reply, header_size, size):
        content = self._reader.read(size + 2)[:-2]
        first, *lines = content[:header_size].decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines if ": " in line)
        headers["status"] = first[len("NATS/1.0 ") :]
        found = self._subscriptions.get(number)
        if not found:
            return
        try:
            found[2](Message(subject, reply, headers, content[header_size:]))
        except Exception as error:  # what comes next is read all the same
            say(f"a message on {subject} was not processed: {type(error).__name__}: {error}")

    def _answer(self, message):
        waiting = self._waiting.get(message.subject.rsplit(".", 1)[-1])
        if waiting:
            waiting.put(message)


def _text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
