import { describe, expect, it, vi } from 'vitest';
import {
  type AgentSetup,
  RequestAssembler,
  type RequestSources,
  type ToolDefinition,
} from '../../../src/agents/index.ts';
import { assembleOnce, missedBy } from '../../../src/agents/requests/requests.ts';
import {
  AgentView,
  DEFAULT_VIEW_POLICY,
  EMPTY_STATE,
  type Entry,
  evolve,
} from '../../../src/conversation/index.ts';
import { cardOf, Log, partsOf, sourcesOf } from './support.ts';

const counts = vi.hoisted(() => ({ estimated: 0 }));
vi.mock('../../../src/agents/dialect-port.ts', async (load) => {
  const estimate = await load<typeof import('../../../src/agents/dialect-port.ts')>();
  const messageTokens: typeof estimate.messageTokens = (message) => {
    counts.estimated += 1;
    return estimate.messageTokens(message);
  };
  return { ...estimate, messageTokens };
});

/** A log of this many turns, after its last request. */
function logOfTurns(turns: number): { log: Log; view: AgentView; assembler: RequestAssembler } {
  const log = new Log();
  const view = new AgentView(log.entries, 'pm', DEFAULT_VIEW_POLICY);
  const assembler = new RequestAssembler();
  for (let turn = 0; turn < turns; turn++)
    log.answer('pm', log.start('pm', log.person(`question ${turn}`)), 'yes');
  assembler.assemble(partsOf(log.entries, { view: view.build() }));
  return { log, view, assembler };
}

/** What the next request serialises, in UTF-16 code units, and how many messages it renders and estimates. */
function costOfNext({ log, view, assembler }: ReturnType<typeof logOfTurns>) {
  const before = new Set(view.build(log.entries.length).history);
  log.start('pm', log.person('and now?'));
  const stringify = vi.spyOn(JSON, 'stringify');
  counts.estimated = 0;
  const built = view.build();
  const { request, fault } = assembler.assemble({ ...partsOf([]), view: built });
  const written = stringify.mock.results.reduce((sum, { value }) => sum + String(value).length, 0);
  stringify.mockRestore();
  const worded = built.history.filter((part) => !before.has(part)).length + built.tail.length;
  return { written, worded, estimated: counts.estimated, messages: request.messages.length, fault };
}

describe('the next request of an agent', () => {
  it('the next request costs work for new entries only, however long the history is (ASSEMBLE-3)', () => {
    const [short, long] = [costOfNext(logOfTurns(3)), costOfNext(logOfTurns(300))];
    expect([short.messages, long.messages]).toEqual([8, 602]);
    expect([short.fault, long.fault]).toEqual([null, null]);
    expect([long.written, long.worded, long.estimated]).toEqual([short.written, 1, short.estimated]);
    expect(short.estimated).toBeLessThan(5);
  });
});

type Tools = ReturnType<RequestSources['tools']>;

const toolOf = (name: string) =>
  ({ name, description: 'A tool.', parameters: { type: 'object' } }) as unknown as ToolDefinition;
const toolsNamed = (...names: string[]): Tools => new Map(names.map((name) => [name, toolOf(name)]));

function requestOf(sources: RequestSources, setup: AgentSetup, log: Log) {
  const state = log.entries.reduce(evolve, EMPTY_STATE);
  const { request } = assembleOnce(sources, setup, log.entries, state, 'demo').draft;
  return {
    system: request.messages[0]?.content,
    tools: request.tools.map((tool) => tool.function.name),
    request,
  };
}

describe('the opening of a request', () => {
  const plain = sourcesOf('pm', 'dev');
  const setup = { ...(plain.agents.get('pm') as AgentSetup), card: cardOf('pm', { tools: ['one', 'two'] }) };
  const log = Log.begun('Hello.');

  it('requests of several conversations share the opening of their agent', () => {
    const tools = toolsNamed('one');
    const sources = { ...plain, tools: () => tools };
    const [first, second] = [requestOf(sources, setup, log), requestOf(sources, setup, log)];
    expect(first.tools).toEqual(['one']);
    expect(second.request.tools).toBe(first.request.tools);
  });

  it('tools that the toolbox offers later are in the next request', () => {
    let tools = toolsNamed('one');
    const sources = { ...plain, tools: () => tools };
    expect(requestOf(sources, setup, log).tools).toEqual(['one']);
    tools = toolsNamed('one', 'two');
    expect(requestOf(sources, setup, log).tools).toEqual(['one', 'two']);
  });

  it('tools that a post brings are shown in the form that providers accept, whatever schema they have', () => {
    const object = { type: 'object', properties: {} };
    const city = { city: { type: 'string' } };
    const tools = [
      { name: 'bare', description: 'ends </s>' },
      { name: 'empty', parameters: {} },
      { name: 'untyped', parameters: { properties: city, required: ['city'] } },
      { name: 'branched', parameters: { $schema: 'x', type: 'object', oneOf: [{ properties: city }] } },
    ];
    const brought = new Log();
    const at = brought.person('Hello.');
    Object.assign(brought.entries[at] ?? {}, { tools });
    brought.start('pm', at);
    expect(requestOf(plain, setup, brought).request.tools.map((tool) => tool.function)).toEqual([
      { name: 'bare', description: 'ends <\\/s>', parameters: object },
      { name: 'empty', description: '', parameters: object },
      { name: 'untyped', description: '', parameters: { ...object, properties: city, required: ['city'] } },
      { name: 'branched', description: '', parameters: { ...object, properties: city } },
    ]);
  });

  it('other prompts for the same agent, and another mode, give another prefix', () => {
    const tools = toolsNamed('one');
    const sources = { ...plain, tools: () => tools };
    const changed = { ...sources, prompts: { ...sources.prompts, baseChat: 'Other rules.' } };
    const inChat = new Log();
    inChat.enterMode('chat');
    inChat.start('pm', inChat.person('Hello.'));
    expect(requestOf(sources, setup, log).system).toMatch(/^Base rules\..*Persona of Pm/s);
    expect(requestOf(sources, setup, inChat).system).not.toContain('Persona');
    expect(requestOf(changed, setup, log).system).toMatch(/^Other rules\./);
  });
});

const SESSION = { id: 's1', by: 'agent', from: 3 } as const;

function answer(index: number, upTo: number, sessionId?: string): Entry {
  const author = { kind: 'agent', id: 'dev', name: 'Dev' } as const;
  return {
    ...{
      index,
      id: `e${index}`,
      createdAt: '',
      type: 'message',
      role: 'assistant',
      author,
      content: 'done',
      upTo,
    },
    ...(sessionId && { sessionId }),
  } as Entry;
}

type Part = Parameters<typeof missedBy>[3][number];
function part(kind: Part['kind'], entries: number[], role: Part['message']['role'] = 'user'): Part {
  return { kind, entries, message: { role, content: 'x' } };
}

const REQUEST = [
  part('prefix', [], 'system'),
  part('history', [0]),
  part('history', [3], 'assistant'),
  part('history', [5]),
  part('away-block', [5], 'system'),
  part('marker', [], 'system'),
  part('trigger', [7]),
];

describe('the messages that a session has not been told', () => {
  it('are unknown without a session, or if it never answered: it is told everything', () => {
    expect(missedBy(null, 'dev', [answer(3, 1, 's1')], REQUEST)).toBeUndefined();
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 'other'), answer(4, 1)], REQUEST)).toBeUndefined();
  });

  it('MISSED-1: are those after the request that it answered last, without the block that repeats them', () => {
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1')], REQUEST)).toEqual([3, 5, 6]);
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), answer(6, 6, 's1')], REQUEST)).toEqual([5, 6]);
  });

  it('MISSED-1: have what came while the answered turn ran: words of others, and a queued message that starts the next turn', () => {
    const said = (index: number, to: string[]) =>
      ({ type: 'message', role: 'user', content: 'x', index, to, author: { kind: 'person' } }) as Entry;
    const turn = (index: number, trigger: number[]) =>
      ({ type: 'turn-started', index, agent: 'dev', turnId: `t${index}`, trigger }) as Entry;
    const log = [said(0, ['dev']), turn(1, [0]), said(2, ['pm']), said(3, ['dev']), answer(4, 1, 's1')];
    const ended = { type: 'turn-ended', index: 6, agent: 'dev', outcome: 'completed' } as Entry;
    log.push(answer(5, 4, 's1'), ended, turn(7, [3]));
    const parts = [part('history', [0]), part('history', [2]), part('away-block', [2]), part('trigger', [3])];
    expect(missedBy(SESSION, 'dev', log, parts)).toEqual([1, 3]);
    expect(missedBy(SESSION, 'dev', [...log, answer(8, 7, 's1')], parts)).toEqual([]);
  });

  it('MISSED-1: are told again after a failure: the program may not have had them', () => {
    const failure = { ...answer(6, 6, 's1'), partType: 'error' } as Entry;
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), failure], REQUEST)).toEqual([3, 5, 6]);
  });

  it('MISSED-1: of a coding agent, its newest prompt says what it was told: what came during a call is its next one', () => {
    const told = { ...answer(3, 1, 's1'), prompt: { isNew: true, takes: [], hash: '' } } as Entry;
    const parts = [...REQUEST, part('turn', [8], 'assistant'), part('turn', [9], 'tool')];
    expect(missedBy(SESSION, 'dev', [told, answer(8, 7, 's1')], parts)).toEqual([3, 5, 6, 8]);
    const news = { ...answer(8, 7, 's1'), prompt: { isNew: false, takes: [], news: 1, hash: '' } } as Entry;
    expect(missedBy(SESSION, 'dev', [told, news], parts)).toEqual([5, 8]);
  });

  it('MISSED-1: are none of what asked for an answer again in an earlier turn', () => {
    const parts = [
      ...[part('history', [2]), part('history', [3], 'assistant'), part('history', [], 'system')],
      ...[part('history', [5], 'assistant'), part('trigger', [7])],
    ];
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1')], parts.slice(0, 3))).toEqual([0, 2]);
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), answer(5, 3, 's1')], parts)).toEqual([4]);
  });

  it('MISSED-2: what a person said with a permission, or answered late, is told again until a prompt or the end of a turn followed', () => {
    const prompt = { isNew: true, takes: [], hash: '' };
    const result = (index: number, toolName: string, content: string) =>
      ({ type: 'message', index, role: 'tool', toolName, author: { kind: 'agent' }, content }) as Entry;
    const said = [
      result(4, 'permit_edit', 'permitted'),
      result(5, 'permit_edit', '[Ann approved this call: "mind it"]\npermitted'),
      result(6, 'ask', 'By date.'),
      result(7, 'recall', 'entry 0'),
    ];
    const logOf = (told: object, newest: object) => {
      const log: Entry[] = [];
      for (const entry of [{ ...answer(3, 1, 's1'), ...told }, ...said, { ...answer(8, 7, 's1'), ...newest }])
        log[entry.index] = entry;
      return log;
    };
    const parts = [4, 5, 6, 7].map((index) => part('turn', [index], 'tool'));
    expect(missedBy(SESSION, 'dev', logOf({ prompt }, {}), parts)).toEqual([1, 2]);
    for (const more of [{ prompt: { ...prompt, news: 1 } }, { finishReason: 'stop' }])
      expect(missedBy(SESSION, 'dev', logOf({ prompt }, more), parts)).toEqual([]);
    expect(missedBy(SESSION, 'dev', logOf({}, {}), parts)).toEqual([]); // no coding agent: it waited for each
  });

  it('MISSED-2: its own messages are among them if another session wrote them since', () => {
    const parts = [
      part('history', [3], 'assistant'),
      part('history', [5], 'assistant'),
      part('trigger', [7]),
    ];
    const log: Entry[] = [];
    for (const entry of [answer(3, 1, 's1'), answer(5, 4, 's2')]) log[entry.index] = entry;
    expect(missedBy(SESSION, 'dev', log, parts)).toEqual([1, 2]);
  });

  it('MISSED-3: the prefix is among them if the agent has another definition since', () => {
    const turn = (index: number, agent: string, definition: string) =>
      ({
        type: 'turn-started',
        index,
        agent,
        definition,
        turnId: `t${index}`,
        trigger: [],
      }) as unknown as Entry;
    const since = (...turns: Entry[]) => {
      const log = [turn(0, 'dev', 'old'), answer(1, 0, 's1'), ...turns];
      return missedBy(SESSION, 'dev', log, REQUEST);
    };
    expect(since(turn(2, 'dev', 'new'))).toEqual([0, 3, 5, 6]);
    expect(since(turn(2, 'dev', 'old'), turn(3, 'pm', 'new'))).toEqual([3, 5, 6]);
    const prompt = { isNew: true, takes: [], hash: '' };
    const begun = [turn(0, 'dev', 'old'), answer(1, 0, 's1'), turn(2, 'dev', 'new')];
    const waited = [...begun, answer(3, 2, 's1')]; // it was changed in the middle of a turn
    expect(missedBy(SESSION, 'dev', waited, REQUEST)).toContain(0);
    const offered = [...begun, { ...answer(3, 2, 's1'), prompt } as Entry, answer(4, 3, 's1')];
    expect(missedBy(SESSION, 'dev', offered, REQUEST)).not.toContain(0);
  });

  it('are none if only the marker is new: the turn continues', () => {
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1'), answer(8, 8, 's1')], REQUEST)).toEqual([]);
  });

  it('MISSED-1: a summary that the answered request contained is not told again', () => {
    const parts = [part('prefix', [], 'system'), part('summary', [6]), part('trigger', [9])];
    expect(missedBy(SESSION, 'dev', [answer(3, 1, 's1')], parts)).toEqual([1, 2]);
    expect(missedBy(SESSION, 'dev', [answer(7, 6, 's1')], parts)).toEqual([2]); // the summary itself requested that call
  });

  it('MISSED-2: results of calls are new after the newest answer, and told before it', () => {
    const parts = [...REQUEST, part('turn', [8], 'assistant'), part('turn', [9], 'tool')];
    expect(missedBy(SESSION, 'dev', [answer(8, 8, 's1')], parts)).toEqual([5, 8]);
    expect(missedBy(SESSION, 'dev', [answer(10, 8, 's1')], parts)).toEqual([]);
  });
});
