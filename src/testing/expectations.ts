import { AssertionError } from 'node:assert';
import { isDeepStrictEqual } from 'node:util';
import {
  createTurnWatch,
  type Entry,
  type FilePart,
  filesOf,
  type MessageEntry,
  type TurnOutcome,
} from '../conversation/index.ts';
import { parseJson } from '../kernel/index.ts';

/** Assertions on the log of a conversation. Each returns what it found, and throws a list of what there is. */

interface Observed {
  entries(conversation?: string): readonly Entry[];
}

/** A text that is contained, or a pattern. */
type Text = string | RegExp;

interface Expected {
  readonly conversation?: string;
}

export interface ExpectedTurn extends Expected {
  readonly agent: string;
  /** Default: `completed`. */
  readonly outcome?: TurnSeen['outcome'];
  /** A text that one of its messages contains. */
  readonly text?: Text;
}

export interface ExpectedHandoff extends Expected {
  readonly from: string;
  readonly to: string;
  readonly summary?: Text;
}

export interface ExpectedToolCall extends Expected {
  readonly agent?: string;
  readonly tool: string;
  /** These arguments; the call may have more. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly result?: Text;
}

export function expectTurn(team: Observed, expected: ExpectedTurn): TurnSeen {
  const { agent, outcome = 'completed', text, conversation } = expected;
  const turns = turnsOf(team.entries(conversation));
  const found = turns.findLast(
    (turn) => turn.agent === agent && turn.outcome === outcome && fits(turn.text, text),
  );
  if (found) return found;
  const wanted = `a turn of ${agent} that is ${outcome}${textWords(text)}`;
  const lines = turns.map((turn) => `${turn.agent} ${turn.outcome}: ${shown(turn.text)}`);
  throw missing(wanted, lines, expected, turns, expectTurn);
}

export function expectHandoff(team: Observed, expected: ExpectedHandoff): { readonly summary: string } {
  const { from, to, summary, conversation } = expected;
  const handoffs = team.entries(conversation).filter((entry) => entry.type === 'handoff');
  const found = handoffs.findLast(
    (entry) => entry.from === from && entry.to === to && fits(entry.summary, summary),
  );
  if (found) return found;
  const wanted = `a handoff from ${from} to ${to}${textWords(summary)}`;
  const lines = handoffs.map((entry) => `${entry.from} to ${entry.to}: ${shown(entry.summary)}`);
  throw missing(wanted, lines, expected, handoffs, expectHandoff);
}

export function expectToolCall(team: Observed, expected: ExpectedToolCall): ToolCallSeen {
  const { agent, tool, arguments: given, result, conversation } = expected;
  const calls = toolCallsOf(team.entries(conversation));
  const found = calls.findLast(
    (call) =>
      call.tool === tool &&
      (agent === undefined || call.agent === agent) &&
      (given === undefined || contains(call.arguments, given)) &&
      (result === undefined || (call.result !== undefined && fits(call.result, result))),
  );
  if (found) return found;
  const by = agent === undefined ? '' : ` by ${agent}`;
  const withArguments = given === undefined ? '' : ` with ${JSON.stringify(given)}`;
  const wanted = `a call of ${tool}${by}${withArguments}${result === undefined ? '' : ` with the result ${shown(result)}`}`;
  throw missing(wanted, calls.map(callText), expected, calls, expectToolCall);
}

function callText(call: ToolCallSeen): string {
  const ended = call.result === undefined ? 'no result' : shown(call.result);
  return `${call.agent} ${call.tool}(${JSON.stringify(call.arguments)}): ${ended}`;
}

/** The tool calls of these entries, for a message. */
export function listedCalls(entries: readonly Entry[]): string {
  return listed(toolCallsOf(entries).map(callText));
}

function fits(text: string, expected: Text | undefined): boolean {
  if (expected === undefined) return true;
  return typeof expected === 'string' ? text.includes(expected) : new RegExp(expected).test(text);
}

function contains(given: unknown, expected: Readonly<Record<string, unknown>>): boolean {
  if (typeof given !== 'object' || given === null) return false;
  return Object.entries(expected).every(([key, value]) => isDeepStrictEqual(Reflect.get(given, key), value));
}

function textWords(text: Text | undefined): string {
  return text === undefined ? '' : ` and says ${shown(text)}`;
}

const SHOWN = 200;

function shown(text: Text): string {
  if (typeof text !== 'string') return String(text);
  return JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
}

function missing(
  wanted: string,
  lines: readonly string[],
  expected: object,
  actual: unknown,
  stackStartFn: (...given: never[]) => unknown,
): AssertionError {
  return new AssertionError({
    message: `expected ${wanted}. ${listed(lines)}`,
    expected,
    actual,
    stackStartFn,
  });
}

function listed(lines: readonly string[]): string {
  return lines.length === 0 ? 'There is none.' : `There is:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** What happened in a conversation, as tests describe it. */
export interface TurnSeen {
  readonly agent: string;
  /** `running`: it has not ended yet. */
  readonly outcome: TurnOutcome | 'running';
  /** Its messages, joined by empty lines. */
  readonly text: string;
  readonly files: readonly FilePart[];
}

export interface ToolCallSeen {
  readonly agent: string;
  readonly tool: string;
  /** Parsed; the text itself if it is no JSON. */
  readonly arguments: unknown;
  /** Absent: it has none yet. */
  readonly result?: string;
  /** The files of the result. */
  readonly files?: readonly FilePart[];
}

function turnsOf(entries: readonly Entry[]): TurnSeen[] {
  const turns = new Map<string, TurnSeen>();
  for (const entry of entries) {
    if (entry.type === 'turn-started' && !turns.has(entry.turnId))
      turns.set(entry.turnId, { agent: entry.agent, outcome: 'running', text: '', files: [] });
    const turn = turns.get(entry.turnId ?? '');
    if (!turn || !entry.turnId) continue;
    if (entry.type === 'turn-ended') turns.set(entry.turnId, { ...turn, outcome: entry.outcome });
    if (entry.type === 'turn-started') turns.set(entry.turnId, { ...turn, outcome: 'running' });
    if (isAnswer(entry))
      turns.set(entry.turnId, {
        ...turn,
        text: [turn.text, entry.content].filter(Boolean).join('\n\n'),
        files: [...turn.files, ...filesOf(entry)],
      });
  }
  return [...turns.values()];
}

export function isAnswer(entry: Entry): entry is MessageEntry & { readonly content: string } {
  return entry.type === 'message' && entry.role === 'assistant' && Boolean(entry.content || entry.parts);
}

function toolCallsOf(entries: readonly Entry[]): ToolCallSeen[] {
  const messages = entries.filter((entry) => entry.type === 'message');
  return messages.flatMap((message) =>
    (message.tool_calls ?? []).map((call, position): ToolCallSeen => {
      const result = messages.find(
        (other) => other.call?.index === message.index && other.call.position === position,
      );
      return {
        agent: message.author.id,
        tool: call.function.name,
        arguments: parseJson(call.function.arguments) ?? call.function.arguments,
        ...(result && { result: result.content ?? '' }),
        ...(result?.parts && { files: filesOf(result) }),
      };
    }),
  );
}

/** The agents that asked a person and have no answer. */
export function askingIn(entries: readonly Entry[]): readonly string[] {
  const watch = createTurnWatch();
  for (const entry of entries) watch.observe(entry);
  return watch.asking;
}
