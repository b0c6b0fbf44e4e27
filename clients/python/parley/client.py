"""Requests to the daemon, and conversations as they grow."""
import base64
import hashlib
import json
import queue
import secrets
import time

from .connection import NO_RESPONDERS, Connection
from .errors import ParleyError
from .tools import called, described, schema_of, value_of

ATTEMPTS = 3
TIMEOUT_SECONDS = 10
POLL_SECONDS = 3
PIECE_BYTES = 500 * 1024
PATIENCE_SECONDS = 60
# Verbs that are sent again when no answer comes: the daemon knows a post by its id, and the others change nothing twice.
REPEATABLE = set(
    "post results feedback upload blob label seed fork hire dismiss reload entries conversation conversations view approvals "
    "change dead dead-letter agents tools status search reading turns phases workflows what-if what-ifs what-if-result "
    "what-if-stop".split()
)
# Verbs whose subject names the publisher, and those that name the conversation too: a server's permissions can bind them.
OF_PUBLISHER = {"post", "results", "feedback", "upload", "blob", "answer"}
OF_CONVERSATION = {"post", "results", "feedback", "blob"}
UNREACHABLE = {"DAEMON_NOT_RUNNING", "DAEMON_TIMEOUT", "STOPPING", "BROKER_UNAVAILABLE"}


def connect(where="data"):
    """`where`: the data directory of a running daemon, or the URL of a nats-server (several with commas).

    For a URL, `PARLEY_NATS_NKEY` or `PARLEY_NATS_CREDENTIALS` names a file, `PARLEY_NATS_INBOX_PREFIX` the user's inbox, and
    `PARLEY_SUBJECT_PREFIX` is the daemon's `subjectPrefix`.
    """
    return Client(Connection(where))


class Answer:
    """What agents answered to one post.

    `text`: the last answer. `value`: what it is by the schema of the post; without one, the value of the run that the post
    started, or of the answer. `entries`: the log from the post on.
    """

    def __init__(self, text, value, entries, agent):
        self.text = text
        self.value = value
        self.entries = entries
        self.agent = agent

    def __str__(self):
        return self.text


class Client:
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    def request(self, verb, **body):
        """Any verb of docs/spec/wire.md. A refusal is a `ParleyError` with the daemon's code."""
        named = [body["publisher"]] if verb in OF_PUBLISHER and body.get("publisher") else []
        if named and verb in OF_CONVERSATION and body.get("conversation"):
            named.append(body["conversation"])
        subject = self.connection.subject("api", verb, *named)
        attempts = ATTEMPTS if verb in REPEATABLE else 1
        for attempt in range(1, attempts + 1):
            timeout = max(1, TIMEOUT_SECONDS / 2 ** (attempts - attempt))
            answer = None
            if self.connection.wait_connected(timeout):
                answer = self.connection.request(subject, body, timeout)
            error = _error_in(answer, verb, subject)
            if error is None:
                return answer.json()
            is_final = answer is not None and answer.headers.get("Nats-Service-Error-Code") not in (None, NO_RESPONDERS)
            if is_final or attempt == attempts:
                raise error
            time.sleep(0.15 * 2 ** (attempt - 1))

    def post(self, conversation, content="", *, publisher, id=None, files=(), tools=(), schema=None, **fields):
        """Posts a message. Returns when it is in the log: `{"index", "agents", …}`. The same `id` again posts nothing.

        `fields` are those of a post (docs/spec/wire.md): `to=["dev"]`, `delivery="queue"`, `author={"name": "Ann"}` …
        """
        body = {"conversation": conversation, "publisher": publisher, "id": id or secrets.token_hex(13), **fields}
        if content:
            body["content"] = content
        if files:
            body["parts"] = list(files)
        if tools:
            body["tools"] = [described(one) for one in tools]
        if schema is not None:
            body["schema"] = schema_of(schema)
        return self.request("post", **body)

    def ask(self, conversation, content="", *, publisher, tools=(), schema=None, on_text=None, timeout=None, **fields):
        """Posts a message and waits for its answer: an `Answer`.

        `tools` are functions that the agent may call: they run here. `schema` is the type of the answer's `value`: a JSON
        Schema, a dataclass, or a model of pydantic. `on_text` gets the text while it is written. A turn that fails,
        is stopped or limited is a `ParleyError`. Approvals and questions to people are waited for, at most `timeout` seconds.
        """
        events, leave = self._listen(conversation, on_text is not None)  # before the post: no text is missed
        try:
            posted = self.post(conversation, content, publisher=publisher, tools=tools, schema=schema, **fields)
            functions = {described(one)["name"]: one for one in tools}
            if not posted["agents"]:
                place = f"message {posted['index']} of {conversation}"
                raise ParleyError("NO_AGENT", f"no agent answers {place}", "address one: `to`, or @slug in the text")
            progress = _Progress(conversation, posted, self._patiently("conversation", conversation=conversation))
            for event in self._read(conversation, posted["index"], events, timeout):
                if "live" in event:
                    if event["type"] == "text" and event["turnId"] in progress.turns:
                        on_text(event["delta"])
                    continue
                calls = progress.take(event)
                for call in calls and self._still_open(conversation, event, calls):
                    self._report(conversation, publisher, _result_of(call, functions))
                if progress.is_over:
                    answer = progress.answer(schema is not None)
                    if schema is not None:
                        answer.value = value_of(schema, answer.value)
                    return answer
        finally:
            leave()
        raise ParleyError("TIMEOUT", f"no answer within {timeout} seconds", f"read conversation {conversation} later")

    def follow(self, conversation, start=0, live=False, timeout=None):
        """Yields each entry of the log once and in order, from the index `start` on. With `live`, also the text while it is
        written, which may be lost: `{"live": agent, "type": "text", "delta": …}`. Ends after `timeout` seconds, and with a
        `ParleyError` when the conversation is deleted. One that does not exist yet is waited for."""
        events, leave = self._listen(conversation, live)
        try:
            yield from self._read(conversation, start, events, timeout)
        finally:
            leave()

    def _listen(self, conversation, live):
        """The events of a conversation from now on, None for an entry, and a function that ends them."""
        events = queue.Queue()
        wake = lambda *_: events.put(None)
        subscriptions = [self.connection.subscribe(self.connection.subject("log", conversation), wake)]
        if live:

            def chunk(message):
                fields = message.fields()
                if all(isinstance(fields.get(name), str) for name in ("type", "turnId", "delta")):
                    events.put({**fields, "live": message.subject.rsplit(".", 1)[-1]})

            subscriptions.append(self.connection.subscribe(self.connection.subject("live", conversation) + ".*", chunk))
        self.connection.on_change.append(wake)
        events.put(None)

        def leave():
            self.connection.on_change.remove(wake)
            for one in subscriptions:
                self.connection.unsubscribe(one)

        return events, leave

    def _read(self, conversation, start, events, timeout):
        end = None if timeout is None else time.monotonic() + timeout
        has_read = is_alone = False
        newest = None  # the page after it begins with it: a log that began again has another entry there
        while end is None or time.monotonic() < end:
            try:
                event = events.get(timeout=POLL_SECONDS if end is None else max(0, min(POLL_SECONDS, end - time.monotonic())))
            except queue.Empty:
                event = None
            if event is not None:
                if "delta" in event:
                    yield event
                continue
            page = {"length": start + 1}
            while page["length"] > start:  # the feed can lose a message: the log is read
                known = [newest] if newest and not is_alone else []
                try:
                    page = self.request("entries", conversation=conversation, **{"from": start - len(known)})
                    has_read = True
                except ParleyError as error:
                    if has_read and error.code in UNREACHABLE:
                        break
                    if error.code != "NOT_FOUND":
                        raise
                    page = {"length": 0, "entries": []}
                entries = page["entries"]
                if newest and (not entries or (known and entries[0]["id"] != newest["id"])):
                    raise ParleyError("CONVERSATION_DELETED", f"{conversation} was deleted while it was followed")
                entries = entries[len(known) :]
                is_alone = bool(known) and not entries and page["length"] > start  # it fills its page
                yield from entries
                start += len(entries)
                newest = entries[-1] if entries else newest

    def _still_open(self, conversation, answer, calls):
        """The calls of this answer that the log has no result of: `ask` with a known id reads calls of the past."""
        index, over = answer["index"], set()
        while True:
            page = self._patiently("entries", conversation=conversation, **{"from": index})
            for entry in page["entries"]:
                if entry["type"] == "message" and entry["role"] == "tool" and entry.get("call"):
                    over.add(f"c{entry['call']['index']}_{entry['call']['position']}")
                if entry["type"] == "turn-ended" and entry.get("turnId") == answer["turnId"] and entry["outcome"] != "waiting":
                    return []
            index += len(page["entries"])
            if index >= page["length"] or not page["entries"]:
                return [call for call in calls if call[0] not in over]

    def _report(self, conversation, publisher, result):
        """A refusal, for example because the result is too large, is the error that the agent reads."""
        try:
            self._patiently("results", conversation=conversation, publisher=publisher, results=[result])
        except ParleyError as error:
            if error.code == "CALL_OVER":  # answered by another program, or ended: the log says how
                return
            if result.get("isError"):
                raise
            self._report(conversation, publisher, {"call": result["call"], "content": str(error), "isError": True})

    def upload(self, content, name=None, publisher=None):
        """Stores bytes, or a file that is open for reading bytes. Returns a part: `post(…, files=[part])`."""
        data = content if isinstance(content, (bytes, bytearray)) else content.read()
        piece = min(PIECE_BYTES, int(self.connection.max_payload * 0.5))
        about = {"upload": secrets.token_hex(13), **({"publisher": publisher} if publisher else {})}
        last = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), **({"name": name} if name else {})}
        start = 0
        while True:
            part = base64.b64encode(data[start : start + piece]).decode()
            ending = {"last": last} if start + piece >= len(data) else {}
            answer = self._patiently("upload", **about, offset=start, size=len(data), data=part, **ending)
            if "file" in answer:
                return answer["file"]
            start = answer["received"]  # 0 again if the daemon ended

    def download(self, conversation, sha256, publisher=None):
        """The bytes of a file that a message of the conversation names."""
        data = b""
        while True:
            who = {"publisher": publisher} if publisher else {}
            answer = self._patiently("blob", conversation=conversation, sha256=sha256, offset=len(data), **who)
            piece = base64.b64decode(answer["data"])
            data += piece
            if len(data) >= answer["size"] or not piece:
                break
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ParleyError("BLOB_DAMAGED", f"the bytes that arrived do not have the SHA-256 {sha256}", "do not use them")
        return data

    def _patiently(self, verb, **body):
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.request(verb, **body)
            except ParleyError as error:
                if error.code not in UNREACHABLE or time.monotonic() > end:
                    raise
                time.sleep(1)


class _Progress:
    """Which turns work on a post, and what they said. A handoff, a delegation or the next node continues it."""

    def __init__(self, conversation, posted, state):
        self.outstanding = {(posted["index"], agent) for agent in posted["agents"]}
        self.turns = {}  # id: True while it runs or waits
        self.entries = []
        self.is_over = False
        self._conversation = conversation
        self._index = posted["index"]
        self._known = state["length"]  # the statuses are those after these entries
        self._stopped = {agent for agent in posted["agents"] if state["agents"].get(agent, {}).get("status") == "stopped"}
        self._own = set()  # turns that took the post itself
        self._delegated = set()  # delegations, and turns that took one: the agent that asked reads how they end
        self._newest = None  # the turn of the newest entry
        self._why = {}  # by turn: the code and message of its newest error or limit
        self._interrupted = {}  # by agent: who interrupted its open turn
        self._last = self._valued = self._failure = self._result = None
        self._is_run_over = False

    def take(self, entry):
        """The calls that the author of the post answers: (place, name, arguments)."""
        self.entries.append(entry)
        kind = entry["type"]
        turn = self._newest if kind == "node-entered" else entry.get("turnId")  # the result before a node enters it
        self._newest = turn
        if kind == "turn-started":
            self._interrupted.pop(entry["agent"], None)
        if kind == "message" and entry.get("delivery") == "interrupt":
            self._interrupted.update(dict.fromkeys(entry.get("to", []), entry["author"]["name"]))
        self._begin(entry, kind, turn)
        if kind == "agent-stopped":
            released = {one for one in self.outstanding if entry["agent"] in (None, one[1])}
            self.outstanding -= released
            self._refuse({agent for index, agent in released if index == self._index})
        if kind == "agent-resumed":
            self._stopped = {agent for agent in self._stopped if entry["agent"] not in (None, agent)}
        calls = []
        if turn in self.turns:
            if kind in ("handoff", "delegation-requested"):
                self.outstanding.add((entry["index"], entry["to"]))
            if kind == "node-entered":
                self.outstanding.update((entry["index"], agent) for agent in entry.get("to", []))
            if kind == "run-ended":
                self._result = entry.get("value")
                self._is_run_over = entry["author"]["kind"] == "agent"  # it aborts the turns of other branches
            if kind == "delegation-requested":
                self._delegated.add(entry["index"])
            if kind == "limit-reached":
                self._why[turn] = ("LIMIT_REACHED", entry["content"])
            if kind == "message" and entry["role"] == "assistant":
                self._said(entry)
                calls = [
                    (f"c{entry['index']}_{position}", entry["tool_calls"][position]["function"])
                    for position in entry.get("callerCalls", [])
                ]
            if kind == "turn-ended":
                self._end(entry, turn)
        runs = any(self.turns.values())
        if entry["index"] + 1 >= self._known and not runs and self.outstanding:
            waiting = {agent for _, agent in self.outstanding}
            self._refuse(waiting if waiting <= self._stopped else None)
        self.is_over = not runs and (not self.outstanding or self._failure is not None)
        return calls

    def _begin(self, entry, kind, turn):
        """A message that answers a question may be given to a running turn by the result of the question alone."""
        taken = entry.get({"turn-started": "trigger", "message-delivered": "entries", "message": "answers"}.get(kind)) or ()
        agent = entry.get("agent") or entry["author"]["id"]
        mine = {(index, agent) for index in taken} & self.outstanding
        self.outstanding -= mine
        if mine:
            self.turns[turn] = True
        if (self._index, agent) in mine:
            self._own.add(turn)
        if self._delegated.intersection(taken):
            self._delegated.add(turn)

    def _said(self, entry):
        turn = entry["turnId"]
        if entry.get("partType") == "error":
            line = entry["content"].rsplit("\n", 1)[-1]
            failure = json.loads(line[line.index("{") :]) if "{" in line else {"message": line}
            self._why[turn] = (failure.get("code", "LLM_ERROR"), failure.get("message", ""))
        elif entry.get("content") and "invalid" not in entry:
            self._last = entry
        if "value" in entry and turn in self._own:
            self._valued = entry

    def _end(self, entry, turn):
        agent, log = entry["agent"], "the log has the details"
        code, message = self._why.get(turn, (None, None))
        by = self._interrupted.get(agent)
        stopped = f"a message of {by} interrupted the turn of {agent}" if by else f"the turn of {agent} was stopped"
        endings = {
            "failed": (code or "AGENT_FAILED", message or f"the turn of {agent} failed", log),
            "aborted": ("AGENT_STOPPED", stopped, "ask again" if by else log),
            "limited": ("LIMIT_REACHED", message or f"the turn of {agent} reached a limit", "`parley resume` continues it"),
        }
        self.turns[turn] = entry["outcome"] == "waiting"
        if entry["outcome"] == "aborted" and self._is_run_over:
            return
        if entry["outcome"] in endings and turn not in self._delegated:
            self._failure = self._failure or ParleyError(*endings[entry["outcome"]])

    def _refuse(self, stopped):
        """The agents that answer only after a resume."""
        if stopped and not self._failure:
            verb = "is stopped: it answers" if len(stopped) == 1 else "are stopped: they answer"
            what = f"{', '.join(sorted(stopped))} {verb} after `parley resume {self._conversation}`"
            self._failure = ParleyError("AGENT_STOPPED", what, "the message is in the log")

    def answer(self, is_typed):
        if self._failure:
            raise self._failure
        if is_typed and self._valued is None:
            message = "the turn ended without an answer that matches the schema"
            raise ParleyError("AGENT_FAILED", message, "an agent that hands over does not pass the schema on")
        last = (self._valued if is_typed else self._last) or {}
        value = last.get("value") if is_typed or self._result is None else self._result
        return Answer(last.get("content") or "", value, self.entries, last.get("author", {}).get("id"))


def _result_of(call, functions):
    place, function = call
    try:
        result = called(functions[function["name"]], json.loads(function["arguments"] or "{}"))
        return {"call": place, "content": result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)}
    except Exception as error:  # the agent reads it
        return {"call": place, "content": f"{type(error).__name__}: {error}", "isError": True}


def _error_in(answer, verb, subject):
    if answer is None:
        hint = "it may have been done all the same: asking again is safe (a post: with the same id)"
        return ParleyError("DAEMON_TIMEOUT", f"no answer to {verb}", hint)
    code = answer.headers.get("Nats-Service-Error-Code")
    if answer.headers["status"].startswith(NO_RESPONDERS) and not code:
        return ParleyError("DAEMON_NOT_RUNNING", f"no daemon answers on {subject}", "run `parley up`, or check the server")
    if not code:
        return None if answer.json() is not None else ParleyError("INVALID_ANSWER", f"the answer to {verb} is not JSON")
    body = answer.fields()
    message = body.get("message") or answer.headers.get("Nats-Service-Error", "")
    return ParleyError(body.get("code") or f"SERVICE_ERROR_{code}", message, body.get("hint"))
