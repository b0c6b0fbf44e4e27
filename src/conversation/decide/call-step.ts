import { canonicalArguments, hasVisible, type Refusal, readArguments } from '../../kernel/index.ts';
import { type Author, type Risk, SYSTEM_AUTHOR, type TurnOutcome, wireCallId } from '../log/entry.ts';
import { type FilePart, partsOf } from '../log/parts.ts';
import { policyAgentOf } from '../state/roster.ts';
import { type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { AWAITED_TOOLS, toolError } from '../tools/conversation-tools.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { withNotice } from './repeated-calls.ts';

export interface ResultFields {
  readonly content: string;
  readonly duration?: number;
  /** Set if a file with this id in its name was written before. */
  readonly id?: string;
  /** The file with the full text of a large result. */
  readonly fullOutputPath?: string;
  /** The entries that this result replaces in the view (V4). */
  readonly answers?: readonly number[];
  readonly files?: readonly FilePart[];
  /** Who brought the tool and answered its call; absent: it was answered here. */
  readonly by?: Author;
}

/** An open call of a turn, and the decision that carries it out. One method for each entry that a call writes. */
export class CallStep {
  readonly builder: DecisionBuilder;
  readonly turn: Turn;
  readonly call: OpenCall;

  constructor(builder: DecisionBuilder, turn: Turn, call: OpenCall) {
    this.builder = builder;
    this.turn = turn;
    this.call = call;
  }

  /** The agent that called. */
  get author(): Author {
    return this.builder.agentAuthor(this.turn.agent);
  }

  addResult(fields: ResultFields): void {
    const { builder, turn, call } = this;
    this.closeQuestion();
    const content = this.#approversNote() + withNotice(builder, turn, call, fields);
    builder.add({
      type: 'message',
      role: 'tool',
      author: fields.by ?? this.author,
      agentId: turn.agent,
      turnId: turn.turnId,
      content,
      parts: partsOf(content, fields.files),
      toolName: call.name,
      tool_call_id: wireCallId(call.place),
      call: call.place,
      answers: fields.answers && [...fields.answers],
      id: fields.id,
      fullOutputPath: fields.fullOutputPath,
      partType: 'tool_result',
      duration: fields.duration ?? 0,
    });
  }

  /** An error result in the form that a model reads. Returns false: the turn is not over. */
  refuse(code: string, message: string): false {
    this.addResult({ content: toolError(code, message) });
    return false;
  }

  refuseWith({ code, message, hint }: Refusal): false {
    return this.refuse(code, hint === undefined ? message : `${message}; ${hint}`);
  }

  /** The turn ends before the call has a result. */
  leave(outcome: TurnOutcome): void {
    this.addResult({ content: unfinished(this.call, outcome) });
  }

  /** The intent is durable before the tool runs (L9). */
  startTool(risk: Risk, rerun: boolean): void {
    const { builder, turn, call } = this;
    const key = builder.add({
      type: 'tool-started',
      author: this.author,
      turnId: turn.turnId,
      call: call.place,
      toolName: call.name,
      risk,
      rerun: rerun || undefined,
    });
    this.#runTool(key);
  }

  /** For a call that did not run though its `tool-started` is durable. */
  runStarted(): void {
    const { place } = this.call;
    const started = this.builder.find(
      (entry) => entry.type === 'tool-started' && samePlace(entry.call, place),
    );
    if (started) this.#runTool(started.index);
  }

  #runTool(key: number): void {
    const { builder, turn, call } = this;
    const policyAgent = policyAgentOf(builder.roster, turn.agent);
    builder.effect({
      type: 'run-tool',
      agent: turn.agent,
      turnId: turn.turnId,
      call: call.place,
      name: call.name,
      arguments: call.arguments,
      ...(policyAgent === turn.agent ? {} : { policyAgent }),
      ...(call.approval?.status === 'given' ? { isApproved: true } : {}),
      key,
      ...(call.approval?.accepts === undefined ? {} : { accepts: call.approval.accepts }),
    });
  }

  /** SERVER-QUESTION-3. False: none is open. */
  closeQuestion(): boolean {
    const { question, place: call } = this.call;
    if (!question) return false;
    const { id: approvalId } = question;
    this.builder.add({
      type: 'approval-answered',
      author: SYSTEM_AUTHOR,
      approvalId,
      call,
      answer: 'expired',
    });
    return true;
  }

  /** What an agent reads before the result of a call. */
  #approversNote(): string {
    const { remark } = this.call;
    const said =
      remark &&
      hasVisible(remark.text) &&
      `[${remark.by} approved this call: ${shown(JSON.stringify(remark.text))}]\n`;
    return this.#changeNote() + (said || '');
  }

  /** Its own arguments are beside it. Empty: nothing was changed. */
  #changeNote(): string {
    const { place, changedBy, arguments: changed } = this.call;
    if (changedBy === undefined) return '';
    const asking = this.builder.entryAt(place.index);
    const asked = asking?.type === 'message' && asking.tool_calls?.[place.position]?.function.arguments;
    return `${changedArguments(changedBy, canonicalArguments(asked || ''), changed)}\n`;
  }
}

/** The result of a call without one: an outcome that is not known is reported as unknown (L12). */
function unfinished(call: OpenCall, outcome: TurnOutcome): string {
  if (AWAITED_TOOLS.has(call.name) || call.atCaller) return `[no answer: the turn was ${outcome}]`;
  // It had started before, even if it waits for an approval or its position now.
  return call.starts > 0
    ? `[the turn was ${outcome} while ${call.name} ran: whether it took effect is unknown]`
    : `[not run: the turn was ${outcome}]`;
}

/** Characters of a changed argument in the sentence. */
const LONGEST_SHOWN = 2_000;

/** Which arguments a person changed, in canonical form. */
function changedArguments(by: string, asked: string, changed: string): string {
  const [before, after] = [fieldsOf(asked), fieldsOf(changed)];
  const names = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  );
  const words = names.map((name) => `${name}: ${shown(after.get(name))}`);
  return `[${by} changed the arguments of this call before it ran. ${words.join('; ')}]`;
}

function fieldsOf(text: string): ReadonlyMap<string, string> {
  const read = readArguments(text);
  return new Map(
    Object.entries(read.ok ? read.value : {}).map(([name, value]) => [name, JSON.stringify(value)]),
  );
}

function shown(value: string | undefined): string {
  if (value === undefined) return 'left out';
  return value.length <= LONGEST_SHOWN
    ? value
    : `${value.slice(0, LONGEST_SHOWN)}… (${value.length} characters)`;
}
