"""Takes the turns that the daemon offers to an agent with `runtime: bus` (docs/guides/remote-agents.md)."""
import itertools
import os
import secrets
import threading

from .connection import NO_RESPONDERS, Connection, say
from .errors import ParleyError

OUTCOME_ATTEMPTS = 5
RETRY_SECONDS = 0.25


class TurnOver(ParleyError):
    """A person stopped the turn, a tool ended it, or the daemon offered it again. Stop working on it."""


class Turn:
    """`messages` and `tools` are the request as a model would get it; `conversation`, `turn_id`, `epoch` and `session_id`
    (None at first) say which turn it is; `over` is set when it is over for this process; `news` has what was said to the
    agent while its tools ran."""

    def __init__(self, connection, offer):
        self._connection = connection
        self._offer = offer
        self._call = secrets.token_hex(8)
        self._chunks = itertools.count()
        self._written = ""
        self.over = threading.Event()
        self.conversation = offer["conversation"]
        self.turn_id = offer["turnId"]
        self.epoch = offer["epoch"]
        self.messages = offer["messages"]
        self.tools = offer["tools"]
        self.session_id = offer.get("sessionId")
        self.news = []

    @property
    def text(self):
        """The newest message: what the agent is asked."""
        return self.messages[-1]["content"] or ""

    def write(self, text):
        """Shows a piece of the answer while it is written. If the handler returns None, the pieces are the answer."""
        self._written += text
        self._show("text", text)

    def think(self, text):
        self._show("reasoning", text)

    def call(self, name, **arguments):
        """Has the daemon run a tool of the agent, with approvals and records. Returns its result as text. Raises `TurnOver`
        for a call that ends the turn (`handoff`)."""
        return self.call_all([(name, arguments)])[0]

    def call_all(self, calls, content=None):
        """Several calls of one answer: a list of (name, arguments)."""
        listed = [{"name": name, "arguments": arguments} for name, arguments in calls]
        said = content or self._written
        body = {"type": "tool_call", "id": secrets.token_hex(13), "calls": listed, **({"content": said} if said else {})}
        answer = self._ask(body)
        self._call, self._chunks, self._written = secrets.token_hex(8), itertools.count(), ""
        self.news.extend(answer.get("messages", []))
        return [result["content"] for result in answer["results"]]

    def _show(self, kind, delta):
        if delta and not self.over.is_set():
            chunk = {"turnId": self.turn_id, "call": self._call, "n": next(self._chunks), "type": kind, "delta": delta}
            self._connection.publish(self._offer["live"], chunk)

    def _ask(self, body):
        """The answer, however long it takes. A lost request is sent again: the daemon knows its id, and runs nothing twice."""
        addressed = {"turnId": self.turn_id, "epoch": self.epoch, **body}
        while not self.over.is_set():
            self._connection.wait_connected(1)
            answer = self._connection.request(self._offer["reply"], addressed, until=self.over)
            results = answer.fields() if answer else {}
            if "results" in results:
                return results
            self.over.wait(RETRY_SECONDS)
        raise TurnOver("TURN_OVER", "the turn is over")

    def _end(self, body):
        for _ in range(OUTCOME_ATTEMPTS):
            if self.over.is_set():
                return
            about = {"turnId": self.turn_id, "epoch": self.epoch}
            answer = self._connection.request(self._offer["reply"], {**about, **body}, timeout=2)
            if answer is not None and not answer.headers["status"].startswith(NO_RESPONDERS):
                return
            self.over.wait(0.2)


def serve(slug, answer, where="data"):
    """Runs an agent until the program is interrupted. `answer(turn)` returns a text, or `{"content", "files"?,
    "session_id"?, "usage"?, "model"?, "reasoning"?}`; an exception is the turn's failure, which people see.

    `where`: the data directory of the daemon, or the URL of a nats-server. The daemon may start later.
    """
    connection = Connection(where, is_patient=True)
    turns = {}
    connection.subject(slug)  # a wrong name is refused here, and not in a thread

    def take(message):
        offer = message.fields()
        if "turnId" not in offer:  # a ping: the daemon asks whether the agent is there
            connection.publish(message.reply, {"accepted": False, "reason": "this is not an offer"})
            return
        turn = Turn(connection, offer)
        earlier = turns.pop(turn.turn_id, None)
        if earlier:
            earlier.over.set()
        turns[turn.turn_id] = turn
        connection.publish(message.reply, {"accepted": True, "instance": f"python-{os.getpid()}"})
        threading.Thread(target=work, args=(turn, offer), daemon=True).start()

    def work(turn, offer):
        is_abort = lambda message: message.fields().get("type") == "abort" and turn.over.set()
        control = connection.subscribe(offer["control"], is_abort)
        threading.Thread(target=beat, args=(turn, offer), daemon=True).start()
        try:
            turn._end(_outcome(turn, answer))
        except Exception as error:
            turn._end({"type": "failed", "code": getattr(error, "code", type(error).__name__), "message": str(error)})
        finally:
            turn.over.set()
            connection.unsubscribe(control)
            if turns.get(turn.turn_id) is turn:
                del turns[turn.turn_id]

    def beat(turn, offer):
        about = {"turnId": turn.turn_id, "epoch": turn.epoch, "type": "heartbeat"}
        missed = 0
        while not turn.over.wait(offer["heartbeatMs"] / 1000):
            answer = connection.request(offer["reply"], about, timeout=offer["heartbeatMs"] / 1000)
            if answer is not None:
                missed = missed + 1 if answer.headers["status"].startswith(NO_RESPONDERS) else 0
            if missed == 3:  # no daemon receives them: a restarted one offers the turn again
                turn.over.set()

    def announce():
        say(f"connected to {connection.url}")
        print("ready", flush=True)

    def listen():
        connection.wait_connected()
        connection.subscribe(connection.subject("agent", slug, "turn"), take, queue=slug)
        connection.flush(announce)
        connection.on_change.append(lambda is_connected: is_connected and connection.flush(announce))

    threading.Thread(target=listen, daemon=True).start()
    try:
        connection.join()
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # Ctrl-C
    except ParleyError as error:
        raise SystemExit(f"parley: {error}") from None


def _outcome(turn, answer):
    result = answer(turn)
    if result is None:
        result = turn._written
    if isinstance(result, str):
        return {"type": "final", "content": result}
    names = {"content": "content", "files": "parts", "session_id": "sessionId", "usage": "usage", "model": "model", "reasoning": "reasoning"}
    unknown = set(result) - set(names)
    if unknown:
        raise ValueError(f"the answer has unknown fields: {', '.join(sorted(unknown))}; known are {', '.join(names)}")
    return {"type": "final", **{names[name]: value for name, value in result.items()}}
