import { describe, expect, it } from 'vitest';
import {
  type Assembled,
  type Change,
  changed,
  createReplay,
  definitionOf,
  explain,
  fromAnswer,
  type RecordedTurn,
  type RequestSources,
  type Run,
  recordedTurns,
  turnAt,
} from '../../../src/agents/index.ts';
import type { Answer, CallOutcome, Entry } from '../../../src/conversation/index.ts';
import { Log, PROFILE, sourcesOf } from './support.ts';

type Calls = readonly (readonly [name: string, args: object])[];

/** A turn of pm that reads two files in one step, writes one in the next, and answers. */
class Recording extends Log {
  readonly sources: RequestSources = sourcesOf('pm', 'dev');
  private readonly hash = definitionOf(this.sources, 'pm')?.hash ?? '';
  private readonly turnId: string;

  constructor() {
    super();
    this.turnId = this.start('pm', this.person('compare a and b'));
    this.amend(1, { definition: this.hash });
    this.step('Reading.', [
      ['read', { path: 'a' }],
      ['read', { path: 'b' }],
    ]);
    this.step('Writing.', [['write', { path: 'c', text: 'x' }]]);
    const at = this.answer('pm', this.turnId, 'They differ.');
    this.amend(at, { requestHash: this.hashAt(at), usage: { inputTokens: 9, outputTokens: 3 } });
  }

  private step(content: string, calls: Calls): void {
    const index = this.entries.length;
    const author = { kind: 'agent', id: 'pm', name: 'Pm' };
    const tool_calls = calls.map(([name, args], at) => ({
      ...{ id: `given-${at}`, type: 'function' },
      function: { name, arguments: JSON.stringify(args) },
    }));
    this.add({ type: 'message', role: 'assistant', turnId: this.turnId, content, author, tool_calls });
    this.amend(index, { requestHash: this.hashAt(index), upTo: index });
    for (const [position, [name, args]] of calls.entries()) {
      const result = `result of ${name} ${JSON.stringify(args)}`;
      const call = { index, position };
      this.add({ type: 'message', role: 'tool', turnId: this.turnId, content: result, call, author });
    }
  }

  hashAt(at: number): string {
    const explained = explain(
      this.entries,
      { conversation: 'demo', agent: 'pm', at },
      { live: this.sources },
    );
    if (!explained.ok) throw new Error(explained.refusal.message);
    return explained.explanation.report.requestHash;
  }

  amend(index: number, more: object): void {
    this.entries[index] = { ...this.entries[index], ...more } as Entry;
  }
}

const answered = (
  content: string | null,
  calls: Calls = [],
  more: Partial<Answer> = {},
): Partial<Answer> => ({
  content,
  toolCalls: calls.map(([name, args], at) => ({
    id: `new-${at}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args, null, 1) },
  })),
  usage: { inputTokens: 100, outputTokens: 10, usd: 0.5 },
  ...more,
});

type Reply = Partial<Answer> | Partial<CallOutcome>;

interface Replayed {
  readonly run: Run;
  readonly requests: readonly Assembled[];
}

async function replayed(
  recording: Recording,
  replies: readonly Reply[],
  { change, turn }: { change?: Partial<Change>; turn?: RecordedTurn } = {},
): Promise<Replayed> {
  const requests: Assembled[] = [];
  const [first] = recordedTurns(recording.entries, 'pm');
  const whole = { model: null, persona: null, ...change };
  const replay = createReplay(
    { conversation: 'demo', agent: 'pm', entries: recording.entries },
    turn ?? (first as RecordedTurn),
    {
      mayReduce: change !== undefined,
      sources: async () => (change ? changed(recording.sources, 'pm', whole) : recording.sources),
      async call(assembled) {
        requests.push(assembled);
        const reply = replies[requests.length - 1];
        if (!reply) throw new Error('an unexpected request');
        const report = { agent: 'pm', turnId: 't', duration: 5, requestHash: '', upTo: 0 };
        return (
          'type' in reply ? { ...report, ...reply } : { ...report, type: 'model-answered', answer: reply }
        ) as CallOutcome;
      },
    },
  );
  return { run: await replay(), requests };
}

const READS: Calls = [
  ['read', { path: 'a' }],
  ['read', { path: 'b' }],
];
const WRITE: Calls = [['write', { path: 'c', text: 'x' }]];
const messagesOf = ({ request }: Assembled) => request.messages;

describe('the recorded turns of an agent', () => {
  it('the recorded turns are those that called the model, with the definition of each request', () => {
    const recording = new Recording();
    recording.answer('dev', recording.start('dev', recording.person('and you?', ['dev'])), 'not of pm');
    const imported = recording.answer('pm', recording.start('pm', recording.person('old')), 'imported');
    const turns = recordedTurns(recording.entries, 'pm');
    expect(turns).toEqual([
      { turnId: 'turn-0', steps: [2, 5, 7].map((index) => ({ index, definition: expect.any(String) })) },
    ]);
    expect(turnAt(turns, recording.entries, 4)).toBe(turns[0]);
    expect(turnAt(turns, recording.entries, imported)).toBeUndefined();
    expect(turnAt(turns, recording.entries, 0)).toBeUndefined();
  });
});

describe('a replay of a turn (WHAT-IF)', () => {
  it('WHAT-IF-1: a replay sends the recorded bytes while the model answers as recorded', async () => {
    const recording = new Recording();
    const { run, requests } = await replayed(recording, [
      answered('Reading.', READS),
      answered('Writing.', WRITE),
      answered('They differ.', [], { finishReason: 'stop', model: 'm-1' }),
    ]);
    const hashes = [2, 5, 7].map((at) => (recording.entries[at] as { requestHash?: string }).requestHash);
    expect(requests.slice(0, 1).map(({ request }) => request.hash)).toEqual(hashes.slice(0, 1));
    // Only the white space of the arguments differs from the recording.
    expect(requests[2]?.request.messages.map(({ content }) => content)).toEqual(
      explainedAt(recording, 7).map(({ content }) => content),
    );
    expect(run).toMatchObject({
      ...{ outcome: 'answered', content: 'They differ.', toolCalls: [], steps: 3, duration: 15 },
      ...{ finishReason: 'stop', model: 'm-1', requestHash: hashes[0] },
      used: { calls: 3, inputTokens: 300, outputTokens: 30, usd: 1.5, unpricedCalls: 0 },
    });
  });

  it('a replay continues with the new text of the model and the recorded results, in any order of its calls', async () => {
    const { run, requests } = await replayed(new Recording(), [
      answered('Let me see both.', [...READS].reverse()),
      answered(null, [['delete', { path: 'a' }]]),
    ]);
    const added = messagesOf(requests[1] as Assembled).slice(messagesOf(requests[0] as Assembled).length);
    expect(added.map(({ role, content }) => [role, content])).toEqual([
      ['assistant', 'Let me see both.'],
      ['tool', 'result of read {"path":"a"}'],
      ['tool', 'result of read {"path":"b"}'],
    ]);
    expect(added[0]?.tool_calls?.map((call) => JSON.parse(call.function.arguments).path)).toEqual(['a', 'b']);
    expect(run).toMatchObject({ outcome: 'diverged', steps: 2 });
    expect(run.toolCalls).toEqual([{ name: 'delete', arguments: '{\n "path": "a"\n}' }]);
  });

  it.each<[string, Calls]>([
    ['another tool', [['list', { path: 'a' }], READS[1] as Calls[number]]],
    ['other arguments', [['read', { path: 'z' }], READS[1] as Calls[number]]],
    ['fewer calls', READS.slice(0, 1)],
    ['the same call twice', [READS[0], READS[0]] as Calls],
    ['more calls', [...READS, ...WRITE]],
  ])('WHAT-IF-2: a replay ends at %s, which no recorded result answers', async (_, calls) => {
    const { run, requests } = await replayed(new Recording(), [answered('Hm.', calls)]);
    expect([run.outcome, requests.length, run.toolCalls.length]).toEqual(['diverged', 1, calls.length]);
  });

  it('a replay ends with a final answer where the recorded turn called tools', async () => {
    const { run } = await replayed(new Recording(), [
      answered('I know already.', [], { finishReason: 'length' }),
    ]);
    expect(run).toMatchObject({
      outcome: 'answered',
      content: 'I know already.',
      steps: 1,
      finishReason: 'length',
    });
  });

  it('a replay ends after the calls of the last recorded step, since the turn has no further answer', async () => {
    const recording = new Recording();
    const [turn] = recordedTurns(recording.entries, 'pm');
    const [first] = turn?.steps ?? [];
    if (!turn || !first) throw new Error('no turn');
    const { run } = await replayed(recording, [answered(null, READS)], { turn: { ...turn, steps: [first] } });
    expect(run).toMatchObject({ outcome: 'ended', steps: 1 });
  });

  it('a replay can begin at the request of one answer of the turn', async () => {
    const recording = new Recording();
    const [turn] = recordedTurns(recording.entries, 'pm');
    const last = fromAnswer(turn as RecordedTurn, 7);
    const { run, requests } = await replayed(recording, [answered('Equal.')], { turn: last });
    expect(requests.map(({ request }) => request.hash)).toEqual([recording.hashAt(7)]);
    expect(run.content).toBe('Equal.');
    expect(fromAnswer(turn as RecordedTurn, 3)).toEqual(turn);
  });

  it('a replay changes nothing but the model or the persona', async () => {
    const recording = new Recording();
    const fields = { model: 'm2', stream: true, max_tokens: 1_000 };
    const model = {
      profile: { ...PROFILE, name: 'm2', fields },
      viewPolicy: { otherAgentsAs: 'system', includeReasoning: false, awayTokens: 9_000 },
    } as const;
    const [plain, other, persona] = await Promise.all([
      replayed(recording, [answered('x')]),
      replayed(recording, [answered('x')], { change: { model } }),
      replayed(recording, [answered('x')], { change: { persona: 'You are terse, {{name}}.' } }),
    ]);
    const bodyOf = ({ requests }: Replayed) =>
      JSON.parse(Buffer.concat(requests[0]?.request.body ?? []).toString());
    expect(bodyOf(other)).toEqual({ ...bodyOf(plain), ...fields });
    const [system, ...rest] = bodyOf(persona).messages;
    expect(system.content).toContain('You are terse, Pm.');
    expect(system.content).not.toContain('Persona of');
    expect(rest).toEqual(bodyOf(plain).messages.slice(1));
  });

  it('a replay reports a failure of the provider, a limit and an abort, with the earlier costs', async () => {
    const followed = answered('Reading.', READS);
    const failed = { type: 'model-failed', code: 'RATE_LIMITED', message: 'slow down', partial: '' } as const;
    const { run } = await replayed(new Recording(), [followed, failed]);
    expect(run).toMatchObject({ outcome: 'failed', code: 'RATE_LIMITED', message: 'slow down', steps: 2 });
    expect(run.used).toMatchObject({ calls: 2, usd: 0.5, unpricedCalls: 0 });
    const limit = { name: 'turnSeconds', message: 'no answer within 9 s' };
    const timedOut = await replayed(new Recording(), [{ type: 'model-aborted', partial: '', limit }]);
    expect(timedOut.run).toMatchObject({ outcome: 'failed', code: 'turnSeconds', steps: 0 });
    const aborted = await replayed(new Recording(), [followed, { type: 'model-aborted', partial: 'They' }]);
    expect(aborted.run).toMatchObject({ outcome: 'interrupted', content: 'They' });
  });

  it('a replay counts the cost of a model without a price as unknown', async () => {
    const usage = { inputTokens: 5, outputTokens: 2 };
    const { run } = await replayed(new Recording(), [answered('x', [], { usage })]);
    expect(run.used).toMatchObject({ calls: 1, inputTokens: 5, usd: 0, unpricedCalls: 1 });
    const none = await replayed(new Recording(), [answered('x', [], { usage: undefined })]);
    expect(none.run.used).toMatchObject({ calls: 1, inputTokens: 0, unpricedCalls: 1 });
  });

  it('a replay fails without a request where the changed request does not fit the window', async () => {
    const profile = { ...PROFILE, name: 'tiny', contextTokens: 1_010, maxOutputTokens: 1_000 };
    const viewPolicy = { otherAgentsAs: 'system', includeReasoning: false, awayTokens: 100 } as const;
    const change = { model: { profile, viewPolicy } };
    const { run, requests } = await replayed(new Recording(), [], { change });
    expect([run.outcome, run.code, requests.length]).toEqual(['failed', 'CONTEXT_STILL_TOO_LARGE', 0]);
  });

  it('WHAT-IF-3: a replay does not change the log', async () => {
    const recording = new Recording();
    const before = JSON.stringify(recording.entries);
    await replayed(recording, [answered('other', READS), answered('words', WRITE), answered('here')]);
    expect(JSON.stringify(recording.entries)).toBe(before);
  });
});

function explainedAt(recording: Recording, at: number) {
  const explained = explain(
    recording.entries,
    { conversation: 'demo', agent: 'pm', at },
    { live: recording.sources },
  );
  if (!explained.ok) throw new Error(explained.refusal.message);
  return explained.explanation.messages;
}
