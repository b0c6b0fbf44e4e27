import {
  AgentView,
  type Author,
  DEFAULT_VIEW_POLICY,
  type Entry,
  type ViewMessage,
} from '../../../src/conversation/index.ts';

/**
 * The examples of docs/spec/view.md: a log in one line an entry, and what the real view makes of it. The notation is
 * explained on that page.
 */

const AGENTS = ['pm', 'dev'];
const upper = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1)}`;

function authorOf(name: string): Author {
  const id = name.toLowerCase();
  return { kind: AGENTS.includes(id) ? 'agent' : 'person', id, name: upper(id) };
}

const numbers = (text = '') => (text.match(/\d+/gu) ?? []).map(Number);
const text = (value = '') => value.replaceAll(' ⏎ ', '\n');

type Parse = readonly [pattern: RegExp, make: (...found: string[]) => object];

const LINES: readonly Parse[] = [
  [
    /^turn-started (\w+) for ([\d, ]+)( resumed)?$/u,
    (agent, trigger, resumed) => ({
      ...{ type: 'turn-started', author: authorOf(agent ?? ''), agent, turnId: 't' },
      ...{ trigger: numbers(trigger), ...(resumed ? { resumed: true } : { turnId: `t${trigger}` }) },
    }),
  ],
  [
    /^turn-ended (\w+) (\w+)$/u,
    (agent, outcome) => ({ type: 'turn-ended', author: authorOf(agent ?? ''), agent, outcome, turnId: 't' }),
  ],
  [
    /^message-delivered (\w+) ([\d, ]+)$/u,
    (agent, entries) => ({ type: 'message-delivered', agent, turnId: 't', entries: numbers(entries) }),
  ],
  [
    /^handoff (\w+) → (\w+): (.*)$/u,
    (from, to, summary) => ({ type: 'handoff', author: authorOf(from ?? ''), from, to, summary }),
  ],
  [
    /^phase (\w+) → (\w+) by (\w+)$/u,
    (from, to, by) => ({ type: 'phase-entered', author: authorOf(by ?? ''), from, to, by }),
  ],
  [
    /^summary (\w+) (\d+) to (\d+): (.*)$/u,
    (agent, from, to, content) => ({
      ...{ type: 'summary', agent, entries: [[Number(from), Number(to)]] },
      ...{ fromIndex: Number(from), toIndex: Number(to), content },
    }),
  ],
  [
    /^result of c(\d+)_(\d+)(?: from (\d+))?: (.*)$/u,
    (index, position, answers, content) => ({
      ...{ type: 'message', role: 'tool', content: text(content) },
      call: { index: Number(index), position: Number(position) },
      ...(answers ? { answers: numbers(answers) } : {}),
    }),
  ],
  [
    /^(\w+) calls ([\w, ]+)(?:: (.*))?$/u,
    (agent, tools, content) => ({
      ...{ type: 'message', role: 'assistant', author: authorOf(agent ?? ''), content: content ?? '' },
      tool_calls: (tools ?? '').split(', ').map((name) => ({
        ...{ id: 'x', type: 'function', function: { name, arguments: '{}' } },
      })),
    }),
  ],
  [
    /^(\w+)(?: → ([\w, ]+))?( \(hidden\))?: (.*)$/u,
    (name, to, hidden, content) => ({
      ...{ type: 'message', author: authorOf(name ?? ''), content: text(content) },
      role: authorOf(name ?? '').kind === 'person' ? 'user' : 'assistant',
      ...(to ? { to: to.split(', ') } : {}),
      ...(hidden ? { includeInContext: false } : {}),
    }),
  ],
];

function entryOf(line: string, index: number): Entry {
  for (const [pattern, make] of LINES) {
    const found = pattern.exec(line);
    if (!found) continue;
    const author = { kind: 'system', id: 'parley', name: 'Parley' };
    const made = make(...(found.slice(1) as string[]));
    return { index, id: `e${index}`, createdAt: '', author, ...made } as unknown as Entry;
  }
  throw new Error(`not an entry of an example: ${line}`);
}

export interface Example {
  readonly entries: readonly Entry[];
  /** What is asked of the log, and the lines that the page says come out. */
  readonly questions: readonly { readonly asked: string; readonly said: readonly string[] }[];
}

/** `log`, indented lines with an index each, and then one or more questions with indented lines. */
export function parseExample(block: string): Example {
  const entries: Entry[] = [];
  const questions: { asked: string; said: string[] }[] = [];
  let isLog = false;
  for (const line of block.split('\n').filter((one) => one.trim() !== '')) {
    const isHead = !line.startsWith(' ');
    if (isHead && line === 'log') isLog = true;
    else if (isHead) {
      isLog = false;
      questions.push({ asked: line, said: [] });
    } else if (isLog) {
      const [, index = '', words = ''] = /^ +(\d+) {2}(.*)$/u.exec(line) ?? [];
      if (Number(index) !== entries.length) throw new Error(`entry ${entries.length} is missing: ${line}`);
      entries.push(entryOf(words, entries.length));
    } else questions.at(-1)?.said.push(line.trim());
  }
  return { entries, questions };
}

const QUESTION = /^(view|parts|cursor) of (\w+)(?: at (\d+))?( as user)?$/u;

/** What the code answers to a question of an example. */
export function answerOf(entries: readonly Entry[], asked: string): string[] {
  const [, what, agent = '', at, asUser] = QUESTION.exec(asked) ?? [];
  if (what === undefined) throw new Error(`not a question of an example: ${asked}`);
  const known = at === undefined ? entries : entries.slice(0, Number(at) + 1);
  const policy = { ...DEFAULT_VIEW_POLICY, ...(asUser ? { otherAgentsAs: 'user' as const } : {}) };
  const view = new AgentView(known, agent, policy);
  const { history, tail } = view.build();
  if (what === 'cursor') return [`${view.knowledge.cursorAfter([], known.length + 1)}`];
  return [...history, ...tail].map(
    ({ kind, message }) => `${what === 'parts' ? `${kind} · ` : ''}${lineOf(message)}`,
  );
}

function lineOf({ role, content, tool_calls, tool_call_id }: ViewMessage): string {
  const calls = tool_calls?.map((call) => `${call.function.name} ${call.id}`).join(', ');
  const words = (content ?? '').replaceAll('\n', ' ⏎ ');
  const head = tool_call_id ? `${role} ${tool_call_id}` : role;
  return `${head}: ${words}${calls ? `${words ? ' ' : ''}[calls ${calls}]` : ''}`;
}
