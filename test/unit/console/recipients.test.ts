import { describe, expect, it } from 'vitest';
import { recipientsOf, whyItAnswers } from '../../../src/console/model/addressing.ts';
import { Thread } from '../../../src/console/model/thread/thread.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { FIRST_FLOOR, type Floor } from '../../../src/conversation/state/answering.ts';

const AGENTS = [
  { slug: 'dev', phases: ['execute'], modes: [] },
  { slug: 'lead', phases: [], modes: [] },
  { slug: 'slow', phases: [], modes: ['run' as const] },
];

const entry = (type: string, more: object) =>
  ({
    type,
    author: { kind: 'agent', id: 'lead', name: 'lead' },
    createdAt: '2026-01-01T00:00:00Z',
    ...more,
  }) as unknown as Entry;

function threadOf(...entries: Entry[]): Thread {
  const thread = new Thread();
  for (const [index, one] of entries.entries()) thread.add({ ...one, index });
  return thread;
}

const to = (content: string, thread: Thread | null = null) => recipientsOf(content, thread, AGENTS, 'lead');

describe('the recipients of a message that is being written', () => {
  it('a new conversation begins with the default agent, unless the text names another one', () => {
    expect(to('hello')).toEqual({
      ...{ slugs: ['lead'], isAnswer: false },
      ...{ missed: [], isHeld: false, unknown: [] },
    });
    expect(to('@slow and @dev: hello').slugs).toEqual(['slow', 'dev']);
  });

  it('words after an @ that name no agent are reported, addresses of mail are not', () => {
    const missed = { slugs: ['lead'], unknown: ['nobody', 'dev-ops'] };
    expect(to('@nobody, @dev-ops, @Nobody, ann@example.org')).toMatchObject(missed);
  });

  const active = entry('handoff', { from: 'lead', to: 'slow' });
  const phase = entry('phase-entered', { from: 'chat', to: 'execute', by: 'ann' });
  const mode = entry('mode-entered', { from: 'agent', to: 'run', by: 'ann' });
  const run = [mode, entry('run-started', { runId: 'r', workflowId: 'w' })];
  const node = (fields: object) => entry('node-entered', { runId: 'r', node: 'n', ...fields });
  const hired = [
    entry('agent-hired', { agent: 'temp', name: 'Temp', by: 'lead' }),
    entry('handoff', { from: 'lead', to: 'temp' }),
  ];
  const dismissed = entry('agent-dismissed', { agent: 'temp', by: 'lead' });

  it.each([
    ['the active agent in mode agent', [active], 'slow'],
    ['the agent of the phase', [phase], 'dev'],
    ['the agent of the current node in mode run', [...run, node({ agent: 'dev' })], 'dev'],
    ['the agent of a node that starts at once', [...run, node({ to: ['dev'] })], 'dev'],
    ['the agent of the mode', [mode], 'slow'],
    ['an agent that was hired here and is active', hired, 'temp'],
    ['the default agent after the active one was dismissed', [...hired, dismissed], 'lead'],
  ])('without a name, it is %s', (_, entries, expected) => {
    expect(to('hello', threadOf(...entries)).slugs).toEqual([expected]);
  });

  it('of nodes side by side, it is the first agent that waits for a message, else the first', () => {
    const fork = [...run, node({ branch: 'n', to: ['dev'] }), node({ node: 'm', branch: 'm', to: ['slow'] })];
    const turn = (agent: string) => entry('turn-started', { agent, turnId: agent, trigger: [] });
    const end = entry('turn-ended', { agent: 'slow', turnId: 'slow', outcome: 'completed' });
    const both = [...fork, turn('dev'), turn('slow')];
    expect(to('hello', threadOf(...both)).slugs).toEqual(['dev']);
    const waits = threadOf(...both, end);
    expect(to('hello', waits)).toMatchObject({ slugs: ['slow'], missed: ['dev'] });
    expect(whyItAnswers('slow', false, waits.floor, AGENTS)).toBe('the run of w is at m');
    const stopped = threadOf(...both, end, entry('agent-stopped', { agent: 'slow', by: 'ann' }));
    expect(to('hello', stopped).slugs).toEqual(['dev']);
  });

  it('an open question gets the message, and says so, also if the text names its agent', () => {
    const ask = { function: { name: 'ask', arguments: '{"question":"Which?"}' }, id: 'c', type: 'function' };
    const asked = threadOf(
      entry('turn-started', { agent: 'slow', turnId: 't', trigger: [] }),
      entry('message', {
        role: 'assistant',
        content: '',
        tool_calls: [ask],
        author: { kind: 'agent', id: 'slow', name: 'slow' },
      }),
    );
    expect(to('red', asked)).toMatchObject({ slugs: ['slow'], isAnswer: true });
    expect(to('@slow red', asked)).toMatchObject({ slugs: ['slow'], isAnswer: true });
    expect(to('@dev red', asked)).toMatchObject({ slugs: ['dev'], isAnswer: false });
  });

  it('a stopped agent that the text does not name is held, unless all are stopped', () => {
    const stopped = (agent: string | null) => threadOf(entry('agent-stopped', { agent, by: 'ann' }));
    expect(to('and now?', stopped('lead'))).toMatchObject({ slugs: ['lead'], isHeld: true });
    expect(to('@lead and now?', stopped('lead')).isHeld).toBe(false);
    expect(to('and now?', stopped('dev')).isHeld).toBe(false);
    expect(to('and now?', stopped(null)).isHeld).toBe(false); // the page says so in another place
  });

  it('agents at work that do not get it are named, unless its recipient has a turn, too', () => {
    const started = (agent: string) => entry('turn-started', { agent, turnId: agent, trigger: [] });
    expect(to('stop', threadOf(started('slow')))).toMatchObject({ slugs: ['lead'], missed: ['slow'] });
    expect(to('stop', threadOf(started('slow'), started('lead')))).toMatchObject({ missed: [] });
    expect(to('@slow stop', threadOf(started('slow')))).toMatchObject({ slugs: ['slow'], missed: [] });
  });
});

describe('why an agent answers a message that names none', () => {
  const agent = (slug: string, phases: string[] = [], modes: ('chat' | 'agent' | 'run')[] = []) => ({
    slug,
    phases,
    modes,
  });
  const agents = [agent('dev', ['execute'], ['chat']), agent('lead')];
  const floor = (more: Partial<Floor> = {}): Floor => ({ ...FIRST_FLOOR, phase: 'plan', ...more });
  const run = { runId: 'r', workflowId: 'ship', node: 'build', agent: 'dev' };
  it.each<[string, boolean, Floor, string]>([
    ['dev', true, floor(), 'its question is open'],
    ['dev', false, floor({ mode: 'run', run }), 'the run of ship is at build'],
    ['dev', false, floor({ activeAgent: 'dev' }), 'it has the floor'],
    ['dev', false, floor({ phase: 'execute' }), 'it works in the phase execute'],
    ['dev', false, floor({ mode: 'chat' }), 'it works in the mode chat'],
    ['lead', false, floor(), 'it is the default agent, and no other one works in this phase or mode'],
  ])('%s: %s %j', (slug, isAnswer, here, why) => {
    expect(whyItAnswers(slug, isAnswer, here, agents)).toBe(why);
  });
});
