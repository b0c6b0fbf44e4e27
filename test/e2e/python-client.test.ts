import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CONVERSATION_VERBS, PUBLISHER_VERBS, REPEATABLE_VERBS } from '../../src/bus/contract.ts';
import type { ParleyClient } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { layCable } from '../support/cable.ts';
import { repliesInOrder } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf, followUntil, ofType, saidBy, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type RunningDaemon } from '../support/project.ts';
import { until } from '../support/steps.ts';

/** `clients/python`, run by a real Python. */

const clients = fileURLToPath(new URL('../../clients/python', import.meta.url));
const hasPython = spawnSync('python3', ['--version']).status === 0;
const env = { ...process.env, PYTHONPATH: clients, PYTHONDONTWRITEBYTECODE: '1' };

const TWO = {
  ...{ id: 'two', start: 'plan' },
  nodes: {
    plan: { agent: 'pm', brief: 'Plan it.', outcomes: { planned: 'build' } },
    build: {
      ...{ agent: 'pm', brief: 'Build it.', outcomes: { built: 'end' } },
      answers: { type: 'object', properties: { parts: { type: 'integer' } } },
    },
  },
};

describe.skipIf(!hasPython)('the client for Python', () => {
  let client: ParleyClient;
  let daemon: RunningDaemon;
  const model = repliesInOrder();
  const running: { stop: () => Promise<void> }[] = [];

  const project = shared(() =>
    openProject({
      nats: {},
      settings: {
        retry: { attempts: 1 },
        limits: { modelCallsPerTurn: 3 },
        publishers: { ann: { workflows: ['two'] } },
      },
      model: model.handler,
      files: { 'workflows/two.yaml': TWO },
      agents: {
        pm: '---\nname: Pam\ndescription: plans\ntools: [handoff, delegate]\n---\nP',
        py: '---\nname: Py\ndescription: a program\nruntime: bus\ntools: [handoff, ask]\n---\nP',
      },
    }),
  );
  beforeAll(async () => {
    daemon = await project.up('--http', 'off');
    client = await project.connect();
  });
  beforeEach(() => {
    model.next = [];
  });
  afterEach(async () => {
    for (const one of running.splice(0)) await one.stop();
  });

  /** Ends the input of the newest program. */
  let answerInput = (): void => undefined;
  /** Runs a program with `team` connected; resolves with what it printed, in lines of JSON. */
  async function python(program: string): Promise<unknown[]> {
    const before = `import json, sys, parley\nteam = parley.connect(${JSON.stringify(project.data)})\n`;
    const child = spawn('python3', ['-c', before + program], { env });
    answerInput = () => child.stdin.end('\n');
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data) => (stdout += data));
    child.stderr.on('data', (data) => (stderr += data));
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`python ended with ${code}: ${stderr}`);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  async function serve(program: string): Promise<void> {
    const code = `import parley\n${program}\nparley.serve("py", answer, ${JSON.stringify(project.data)})\n`;
    const child = spawn('python3', ['-c', code], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    running.push({
      stop: async () => {
        child.kill('SIGKILL');
        await exited;
      },
    });
    await once(child.stdout, 'data');
  }

  it('`ask` runs the functions that the agent calls, and returns the answer as a dataclass', async () => {
    model.next = [
      {
        toolCalls: [
          { name: 'temperature', arguments: '{"city":"Lyon"}' },
          { name: 'wind', arguments: '{"city":"Lyon"}' },
        ],
      },
      ({ json }) => {
        const results = (json.messages ?? [])
          .filter(({ role }) => role === 'tool')
          .map(({ content }) => content);
        return { text: JSON.stringify({ city: results.join(' / '), degrees: 21.5 }) };
      },
    ];
    const printed = await python(`
from dataclasses import dataclass
@dataclass
class Forecast:
    city: str
    degrees: float
def temperature(city: str) -> str:
    """The temperature of a city."""
    return {"degrees": 21.5, "of": city}
def wind(city: str) -> str:
    raise LookupError("no wind known")
answer = team.ask("weather", "How warm is Lyon?", publisher="ann", tools=[temperature, wind], schema=Forecast)
print(json.dumps([type(answer.value).__name__, answer.value.city, answer.value.degrees, answer.agent]))
`);
    expect(printed).toEqual([
      [
        'Forecast',
        '{"degrees": 21.5, "of": "Lyon"} / {"error":{"code":"FAILED","message":"LookupError: no wind known"}}',
        21.5,
        'pm',
      ],
    ]);
    const entries = await entriesOf(client, 'weather');
    expect(checkLaws(entries)).toEqual([]);
    expect(ofType(entries, 'message')[0]?.tools?.[0]).toEqual({
      name: 'temperature',
      description: 'The temperature of a city.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      },
    });
  });

  it('a function gets its arguments as objects of the types of its parameters, and its result arrives as it wrote it', async () => {
    const given = {
      ...{ room: { name: 'Aula' }, size: 'large', others: [{ name: 'Hof', beds: 2 }] },
      ...{ by: { Ann: { name: 'Eck' } }, maybe: { name: 'Flur' }, none: null, either: 'Zürich' },
    };
    model.next = [
      { toolCalls: [{ name: 'book', arguments: JSON.stringify(given) }] },
      ({ json }) => ({ text: json.messages?.at(-1)?.content ?? '' }),
    ];
    const [text] = await python(`
import dataclasses, enum
from typing import Dict, List, Optional, Union
class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"
@dataclasses.dataclass
class Room:
    name: str
    beds: int = 1
def book(room: Room, size: Size, others: List[Room], by: Dict[str, Room], maybe: Optional[Room], none: Optional[Room], either: Union[Room, List[str], str]) -> str:
    return {"booked": [room.name, size.name, others[0].beds, by["Ann"].beds, maybe.name, none, either]}
print(json.dumps(team.ask("typed-tool", "Book", publisher="ann", tools=[book]).text))
`);
    expect(text).toBe('{"booked": ["Aula", "LARGE", 2, 1, "Flur", null, "Zürich"]}');
  });

  it('a result that is too large is the error that the agent reads', async () => {
    model.next = [
      { toolCalls: [{ name: 'dump', arguments: '{}' }] },
      ({ json }) => ({ text: json.messages?.at(-1)?.content ?? '' }),
    ];
    const [text] = await python(`
def dump() -> str:
    return "x" * 2_000_000
print(json.dumps(team.ask("dumped", "Dump", publisher="ann", tools=[dump]).text))
`);
    expect(text).toContain('TOO_LARGE');
  });

  it('`ask` in a conversation that is deleted meanwhile ends with an error', async () => {
    model.next = [{ text: 'So far', hang: 'after-text' }];
    const asking = python(`
request = team.request
def noted(operation, **given):
    answer = request(operation, **given)
    if operation == "entries" and answer["entries"]:
        team.request = request
        team.post("asked", "Here", publisher="ann", includeInContext=False)
    return answer
team.request = noted
try:
    team.ask("deleted", "Hello", publisher="ann", timeout=20)
except parley.ParleyError as error:
    print(json.dumps(error.code))
`);
    await followUntil(client, 'asked', (entries) => entries.length > 0); // it has read what is deleted
    await client.request('delete', { conversation: 'deleted' });
    expect(await asking).toEqual(['CONVERSATION_DELETED']);
  });

  it('`follow` ends with an error if the conversation was deleted and has as many entries again', async () => {
    const talk = async (times: number) => {
      for (let time = 1; time <= times; time += 1) {
        model.next = [{ text: 'Hi.' }];
        await client.post({ conversation: 'begun-again', publisher: 'ann', content: 'Hello' });
        await followUntil(client, 'begun-again', turnsEnded(time));
      }
    };
    await talk(1);
    const following = python(`
try:
    for entry in team.follow("begun-again", timeout=10):
        if entry["type"] == "turn-ended":
            team.post("ready", "Here", publisher="ann", includeInContext=False)
            sys.stdin.readline()
except parley.ParleyError as error:
    print(json.dumps(error.code))
`);
    await followUntil(client, 'ready', (entries) => entries.length > 0);
    await client.request('delete', { conversation: 'begun-again' });
    await talk(2);
    answerInput();
    expect(await following).toEqual(['CONVERSATION_DELETED']);
  });

  itLong('a daemon that is killed while a function runs gets its result after its restart', async () => {
    model.next = [{ toolCalls: [{ name: 'wait', arguments: '{}' }] }, { text: 'Done.' }];
    const asking = python(`
def wait() -> str:
    sys.stdin.readline()
    return "waited"
print(json.dumps(team.ask("restarted", "Wait", publisher="ann", tools=[wait], timeout=60).text))
`);
    await followUntil(client, 'restarted', (entries) => ofType(entries, 'turn-ended').length === 1);
    daemon.signal('SIGKILL');
    await daemon.exited;
    answerInput();
    const untilRefused = 3_000; // the attempts of one request
    await new Promise((resolve) => setTimeout(resolve, untilRefused));
    daemon = await project.up('--http', 'off');
    expect(await asking).toEqual(['Done.']);
  });

  it('the login of an address file is used as it is, that of an address is decoded, and a prefix is that of the command line', async () => {
    const [logins, prefix] = await python(`
import os
from urllib.parse import urlparse
from parley.connection import Connection
login = lambda address, url: [Connection._login(address, urlparse(url), {}).get(one) for one in ("user", "pass", "auth_token")]
print(json.dumps([login({"user": "a%41", "password": "b%42"}, "nats://h"), login({}, "nats://a%41:b%42@h"), login({}, "nats://t%43@h")]))
os.environ["PARLEY_SUBJECT_PREFIX"] = "other"
print(json.dumps(parley.connect(${JSON.stringify(project.nats.url)}).connection.prefix))
`);
    expect(logins).toEqual([
      ['a%41', 'b%42', null],
      ['aA', 'bB', null],
      [null, null, 'tC'],
    ]);
    expect(prefix).toBe('other');
  });

  it('`ask` again with the same id runs no function a second time, and a call that another program answered is no error', async () => {
    model.next = [{ toolCalls: [{ name: 'count', arguments: '{}' }] }, { text: 'Counted.' }];
    const printed = await python(`
runs = []
def count() -> str:
    runs.append(1)
    if len(runs) == 1:  # another program with the same id is faster
        entries = team.request("entries", conversation="again", **{"from": 0})["entries"]
        call = next(entry["index"] for entry in entries if entry.get("callerCalls"))
        team.request("results", conversation="again", publisher="ann", results=[{"call": f"c{call}_0", "content": "other"}])
    return "one"
for _ in range(2):
    answer = team.ask("again", "How many?", publisher="ann", id="same", tools=[count])
    print(json.dumps([answer.text, len(runs)]))
`);
    expect(printed).toEqual([
      ['Counted.', 1],
      ['Counted.', 1],
    ]);
  });

  itLong(
    'a handoff continues the answer, a failed turn and a refusal are errors with their codes',
    async () => {
      await serve(
        'def answer(turn):\n    if "wait" in turn.text:\n        turn.over.wait()\n    turn.write("From ")\n    turn.write("Py.")',
      );
      model.next = [
        { toolCalls: [{ name: 'handoff', arguments: '{"to":"py","summary":"yours"}' }] },
        { status: 401, body: { error: { message: 'bad key' } } },
      ];
      const printed = await python(`
words = []
print(json.dumps([team.ask("chain", "Who is there?", publisher="ann").text]))
team.request("mode", conversation="chain", mode="chat", agent=None)
def code(work):
    try:
        work()
    except parley.ParleyError as error:
        print(json.dumps([error.code, bool(error.message)]))
code(lambda: team.ask("fails", "Hello", publisher="ann"))
code(lambda: team.post("chain", "Hello", publisher="ann", to=["nobody"]))
code(lambda: team.ask("slow", "wait", publisher="ann", to=["py"], timeout=0.5))
code(lambda: parley.connect("/nowhere"))
`);
      expect(printed).toEqual([
        ['From Py.'],
        ['UNAUTHORIZED', true],
        ['UNKNOWN_AGENT', true],
        ['TIMEOUT', true],
        ['NATS_UNREACHABLE', true],
      ]);
    },
  );

  it('a turn that is stopped or limited, a team that is stopped, and an answer without the value are errors with their codes', async () => {
    const call = { toolCalls: [{ name: 'handoff', arguments: '{}' }] };
    const running = { text: 'So far', hang: 'after-text' } as const;
    model.next = [running, running, call, call, call, { text: 'no' }, { text: 'no' }, { text: 'no' }];
    const printed = python(`
def tried(conversation, content, **more):
    try:
        print(json.dumps(["answered", team.ask(conversation, content, publisher="ann", timeout=20, **more).text]))
    except parley.ParleyError as error:
        print(json.dumps([error.code, error.message]))
tried("halted", "Hello")
tried("halted", "Still there?")
team.post("busy", "Hello", publisher="ben")
tried("busy", "And then?", delivery="queue")
tried("limited", "Hello")
tried("invalid", "Hello", schema={"type": "object"})
tried("unheard", "Hello", includeInContext=False)
`);
    const stop = (conversation: string) =>
      client.request('stop', { conversation, agent: 'pm', publisher: 'boss' });
    await followUntil(client, 'halted', (entries) => ofType(entries, 'turn-started').length > 0);
    await stop('halted');
    await followUntil(client, 'busy', (entries) => ofType(entries, 'message').length > 1);
    await stop('busy');
    expect(await printed).toEqual([
      ['AGENT_STOPPED', 'the turn of pm was stopped'],
      ['AGENT_STOPPED', 'pm is stopped: it answers after `parley resume halted`'],
      ['AGENT_STOPPED', 'pm is stopped: it answers after `parley resume busy`'],
      ['LIMIT_REACHED', expect.stringContaining('3')],
      ['ANSWER_INVALID', expect.stringContaining('JSON')],
      ['NO_AGENT', 'no agent answers message 0 of unheard'],
    ]);
  });

  it('an agent that hands over gives no value of the schema, and one that failed for another agent fails nothing', async () => {
    await serve(
      'def answer(turn):\n    if "fail" in turn.text:\n        raise ValueError("no")\n    return "From Py."',
    );
    const pass = (name: string, given: object) => ({
      toolCalls: [{ name, arguments: JSON.stringify(given) }],
    });
    model.next = [
      pass('handoff', { to: 'py', summary: 'yours' }),
      pass('delegate', { to: 'py', request: 'fail' }),
      { text: '{"pieces":7}' },
    ];
    const printed = await python(`
try:
    team.ask("handed", "Hello", publisher="ann", schema={"type": "object"})
except parley.ParleyError as error:
    print(json.dumps([error.code, error.message]))
answer = team.ask("delegated", "Hello", publisher="ann", schema={"type": "object"})
print(json.dumps([answer.value, answer.agent]))
`);
    expect(printed).toEqual([
      ['AGENT_FAILED', 'the turn ended without an answer that matches the schema'],
      [{ pieces: 7 }, 'pm'],
    ]);
  });

  it('`ask` with a workflow waits for each node, and returns the value of the run', async () => {
    const complete = (outcome: string, value?: object) => ({
      text: `It is ${outcome}.`,
      toolCalls: [{ name: 'complete_node', arguments: JSON.stringify({ outcome, summary: outcome, value }) }],
    });
    model.next = [complete('planned'), complete('built', { parts: 7 })];
    const printed = await python(`
answer = team.ask("run", "A shop", publisher="ann", workflow="two")
print(json.dumps([answer.text, answer.value, [entry["type"] for entry in answer.entries].count("node-entered")]))
`);
    expect(printed).toEqual([['It is built.', { parts: 7 }, 1]]);
  });

  it('`ask` takes no turn for stopped that is aborted because another branch ended the run', async () => {
    const printed = await python(`
from parley.client import _Progress
for kind in ("agent", "system"):
    progress = _Progress("c", {"index": 0, "agents": ["pm"]}, {"length": 1, "agents": {}})
    entries = [
        {"type": "turn-started", "turnId": "t", "agent": "pm", "trigger": [0]},
        {"type": "run-ended", "turnId": "t", "outcome": "done", "value": 7},
        {"type": "turn-ended", "turnId": "t", "agent": "pm", "outcome": "aborted"},
    ]
    for index, entry in enumerate(entries, 1):
        progress.take({"index": index, "author": {"kind": kind, "id": "pm"}, **entry})
    print(json.dumps([progress.is_over, progress._result, progress._failure and progress._failure.code]))
`);
    expect(printed).toEqual([
      [true, 7, null],
      [true, 7, 'AGENT_STOPPED'],
    ]);
  });

  it('`ask` says whose message interrupted the turn', async () => {
    const printed = await python(`
from parley.client import _Progress
progress = _Progress("c", {"index": 0, "agents": ["pm"]}, {"length": 1, "agents": {}})
entries = [
    {"type": "turn-started", "turnId": "t", "agent": "pm", "trigger": [0]},
    {"type": "message", "role": "user", "content": "now", "to": ["pm"], "delivery": "interrupt"},
    {"type": "turn-ended", "turnId": "t", "agent": "pm", "outcome": "aborted"},
]
for index, entry in enumerate(entries, 1):
    progress.take({"index": index, "author": {"kind": "person", "id": "ben", "name": "Ben"}, **entry})
print(json.dumps([progress._failure.code, progress._failure.message]))
`);
    expect(printed).toEqual([['AGENT_STOPPED', 'a message of Ben interrupted the turn of pm']]);
  });

  it('an upload begins again if the daemon ended, and goes on where it was', async () => {
    const printed = await python(`
sent, known = [], iter([1000, 0, 1000, 2000, 2000])
def request(verb, **body):
    sent.append([body["offset"], "last" in body])
    return {"received": 2500, "file": "part"} if "last" in body else {"received": next(known)}
team.connection.max_payload, team.request = 2000, request
print(json.dumps([team.upload(bytes(2500)), sent]))
`);
    const again = [0, 1000, 0, 1000, 2000].map((offset) => [offset, offset === 2000]);
    expect(printed).toEqual([['part', again]]);
  });

  itLong(
    'a post with the same id is one entry, a file arrives whole, and following survives a daemon that is killed',
    async () => {
      model.next = [{ text: 'A picture.' }, { text: 'Later.' }];
      const following = python(`
bytes_ = bytes(range(256)) * 5000
part = team.upload(bytes_, "noise.bin", publisher="ann")
one = team.post("kept", "Look", publisher="ann", id="same", files=[part])
two = team.post("kept", "Look", publisher="ann", id="same", files=[part])
print(json.dumps([one["index"] == two["index"], two["duplicate"], team.download("kept", part["sha256"]) == bytes_]), flush=True)
seen = []
for entry in team.follow("kept", one["index"], timeout=60):
    seen.append(entry["index"])
    if entry.get("content") == "Later.":
        break
print(json.dumps([seen == list(range(seen[0], seen[0] + len(seen)))]))
`);
      await followUntil(client, 'kept', turnsEnded(1));
      daemon.signal('SIGKILL');
      await daemon.exited;
      daemon = await project.up('--http', 'off');
      await client.post({ conversation: 'kept', publisher: 'ann', content: 'And now?' });
      expect(await following).toEqual([[true, true, true], [true]]);
    },
  );

  it('its verbs of one publisher, of one conversation, and those that it sends again are those of the contract', async () => {
    const [known] = await python(
      'from parley import client as c\nprint(json.dumps([sorted(one) for one in (c.OF_PUBLISHER, c.OF_CONVERSATION, c.REPEATABLE)]))',
    );
    const contract = [PUBLISHER_VERBS, CONVERSATION_VERBS, REPEATABLE_VERBS];
    expect(known).toEqual(contract.map((verbs) => [...verbs].sort()));
  });

  it('a name that is no token of a subject sends nothing, whatever commands of the server are in it, and a closed client says so', async () => {
    const refused = await python(`
def code(call, *given, **named):
    try:
        return call(*given, **named)
    except parley.ParleyError as error:
        return error.code
evil = "x y 0\\r\\n\\r\\nPUB parley.in.boss.stolen 4\\r\\nevil\\r\\nPUB parley.api.post.web.x"
print(json.dumps([
    code(team.post, evil, "Hello", publisher="web"),
    code(team.post, "x", "Hello", publisher=evil),
    code(team.request, evil),
    code(lambda: next(team.follow("*", live=True))),
    code(parley.serve, evil, None, ${JSON.stringify(project.data)}),
    code(lambda: next(team.follow("stolen"))["type"] if team.post("stolen", "Mine", publisher="web")["index"] == 0 else "not mine"),
]))
team.close()
print(json.dumps(code(team.post, "x", "Hello", publisher="web")))
`);
    const name = 'INVALID_NAME';
    expect(refused).toEqual([[name, name, name, name, name, 'message'], 'CONNECTION_CLOSED']);
  });

  it('a connection that goes silent without an end is replaced, by a client and by an agent', async () => {
    const { url } = JSON.parse(await readFile(join(project.data, 'connection.json'), 'utf8'));
    const cable = await layCable(url);
    const through = [
      'import parley.connection as c',
      'c.PING_SECONDS, c.CONNECT_SECONDS, direct = 0.2, 0.2, c.address_of',
      `c.address_of = lambda where: lambda: {**direct(where)(), "url": ${JSON.stringify(cable.url)}, "urls": None}`,
    ].join('\n');
    try {
      await serve(`${through}\ndef answer(turn):\n    return "From Py."`);
      const printed = python(`
import time
${through}
other = parley.connect(${JSON.stringify(project.data)})
changes = []
other.connection.on_change.append(changes.append)
team.post("connected", "Hello", publisher="ann", includeInContext=False)
while True not in changes:
    time.sleep(0.05)
print(json.dumps([changes[0], other.ask("silent", "Hello", publisher="ann", to=["py"], timeout=30).text]))
`);
      await followUntil(client, 'connected', (entries) => entries.length > 0);
      cable.hold();
      await until(() => cable.connections >= 4);
      cable.release();
      expect(await printed).toEqual([[false, 'From Py.']]);
    } finally {
      await cable.close();
    }
  });

  it('what is no message of the protocol on a subject of live text or of a turn ends no connection', async () => {
    const raw =
      'lambda to, data: to.connection._send(f"PUB {to.at}  {len(data)}\\r\\n".encode() + data + b"\\r\\n")';
    const odd =
      'ODD = [b"[1]", b"1", b"{", b\'{"delta":1}\', b\'{"delta":"x","turnId":[1],"type":"text"}\', b"[" * 100000]';
    await serve(`
${odd}
send = ${raw}
def answer(turn):
    turn.connection, turn.at = turn._connection, turn._offer["control"]
    for data in ODD:
        send(turn, data)
    return "From Py."`);
    const printed = await python(`
${odd}
send = ${raw}
team.at = team.connection.subject("live", "odd", "py")
events = team.follow("odd", live=True)
team.post("odd", "Hello", publisher="ann", to=["py"], id="one")
next(events)
for data in ODD:
    send(team, data)
for content in ("one", "two"):
    print(json.dumps(team.ask("odd", content, publisher="ann", to=["py"], on_text=lambda _: None, timeout=30).text))
`);
    expect(printed).toEqual(['From Py.', 'From Py.']);
  });

  it('ask gets the text of an agent that writes at once from its first word on', async () => {
    await serve(`
import time
def answer(turn):
    turn.write("One ")
    time.sleep(0.5)
    turn.write("two.")`);
    const printed = await python(`
for _ in range(3):
    seen = []
    team.ask("words", "Hello", publisher="ann", to=["py"], on_text=seen.append, timeout=30)
    print(json.dumps("".join(seen)))
`);
    expect(printed).toEqual(['One two.', 'One two.', 'One two.']);
  });

  it('an agent calls tools of the daemon, keeps its session, and its exception is the failure that people see', async () => {
    await serve(`
def answer(turn):
    if "fail" in turn.text:
        raise ValueError("not today")
    if "pass" in turn.text:
        turn.call("handoff", to="pm", summary="yours")
    if "odd" in turn.text:
        return {"content": "x", "sessions": 1}
    return {"content": f"session {turn.session_id}", "session_id": "s-1"}
`);
    model.next = [{ text: 'It is mine.' }];
    for (const [at, content] of ['first', 'second', 'fail', 'odd', 'pass'].entries()) {
      await client.post({ conversation: 'agent', publisher: 'ann', to: ['py'], content });
      await followUntil(client, 'agent', turnsEnded(at + (content === 'pass' ? 2 : 1)));
    }
    const entries = await entriesOf(client, 'agent');
    expect(saidBy(entries, 'py').slice(0, 2)).toEqual([
      ['session None', []],
      ['session s-1', []],
    ]);
    const errors = ofType(entries, 'message').filter(({ partType }) => partType === 'error');
    expect(errors.map(({ content }) => content)).toEqual([
      expect.stringContaining('"ValueError","message":"not today"'),
      expect.stringContaining('unknown fields: sessions'),
    ]);
    expect(saidBy(entries, 'pm')).toEqual([['It is mine.', []]]);
    expect(checkLaws(entries)).toEqual([]);
  });
});
