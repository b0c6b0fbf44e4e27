import { type Refusal, refusal, wellFormed } from '../../kernel/index.ts';
import { askedSchema } from '../log/answer.ts';
import { type Author, type Entry, type MessageEntry, placeOfCallId, wireCallId } from '../log/entry.ts';
import { filesOf } from '../log/parts.ts';
import { agentByState, mentions } from '../state/answering.ts';
import { publisherOf, refusalOfAgentName } from '../state/people.ts';
import type { Roster, Workflow } from '../state/roster.ts';
import { agentState, type ConversationState, isStopped, type OpenCall } from '../state/state.ts';
import { CallStep } from './call-step.ts';
import { refusalOfTools } from './calls.ts';
import type { CommandOf, Outcome, Post, Reply } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { plainContent } from './repeated-calls.ts';
import { refusalOfStart, startRun } from './runs.ts';
import { addSession } from './turn-entries.ts';
import { abortTurn, advanceTurn, endTurnsOfRemovedAgents, startTurns } from './turns.ts';

/** Appends a person's message and starts or informs its recipients. No other text starts a turn (L14). */
export function post(builder: DecisionBuilder, command: CommandOf<'post'>): Outcome {
  const { post: message } = command;
  const known = duplicate(builder, message);
  if (known) return known;
  const to = recipients(builder, message);
  if (!to.ok) return to.refusal;
  endTurnsOfRemovedAgents(builder);
  const workflow = builder.context.workflows.get(message.workflow ?? '');
  if (workflow) return startRunWith(builder, command, workflow);
  if (to.byName) resumeNamedAgents(builder, to.to, authorOf(message));
  const index = append(builder, command, to.to);
  const waking: string[] = [];
  for (const agent of to.to) if (!answer(builder, agent, message, index)) waking.push(agent);
  if (message.delivery === 'interrupt') for (const agent of waking) abortTurn(builder, agent, index);
  startTurns(builder); // of those for whom the appended message now waits: the fold put it there (`applyMessage`)
  return posted(builder, message, index, to.to);
}

/** The fields of a post that have no effect, because its sender had no right to them. */
function ignoredOf(entry: Entry | undefined): { readonly ignored?: readonly string[] } {
  const isNaming = entry?.type === 'message' && entry.sessionId !== undefined;
  return isNaming && !entry.setsSession ? { ignored: ['sessionId'] } : {};
}

/** The run and its input are one append: no node runs without the input, and the post's id makes a repetition harmless. */
function startRunWith(builder: DecisionBuilder, command: CommandOf<'post'>, workflow: Workflow): Reply {
  const { post: message } = command;
  const author = authorOf(message);
  const from = builder.state.mode;
  builder.add({ type: 'mode-entered', author, from, to: 'run', by: author.name });
  const to = startRun(builder, workflow, author);
  const index = append(builder, { ...command, post: { ...message, delivery: 'queue' } }, to);
  startTurns(builder);
  return posted(builder, message, index, to);
}

function posted(
  builder: DecisionBuilder,
  message: Post,
  index: number,
  agents: readonly string[],
  duplicate = false,
): Reply {
  const { id, content, to = [], workflow } = message;
  const isRouted = to.length === 0 && workflow === undefined && !isUnseen(message);
  const unknownMentions = isRouted ? mentions(content, builder.roster).unknown : [];
  const reply = {
    kind: 'posted',
    id,
    index,
    duplicate,
    agents,
    ...ignoredOf(builder.entryAt(index)),
  } as const;
  return unknownMentions.length > 0 ? { ...reply, unknownMentions } : reply;
}

/** L4: an id is unique for its publisher, and no post has that of an entry of an agent or of the system. The same id again returns the first index and appends nothing; with other content it is refused. */
function duplicate(builder: DecisionBuilder, message: Post): Outcome | null {
  const { indexOfId, indexOfPost } = builder.context;
  const index = indexOfPost(publisherOf(message.author.id), message.id) ?? indexOfId(message.id);
  if (index === undefined) return null;
  const entry = builder.context.entries[index];
  const differing = entry?.type === 'message' ? difference(entry, message) : 'content';
  if (entry?.type === 'message' && differing === null)
    return posted(builder, message, index, entry.to ?? [], true);
  return refusal(
    'ID_CONFLICT',
    `the id ${JSON.stringify(message.id)} belongs to another entry of this conversation (entry ${index}): the message has another "${differing}"`,
    differing === 'author'
      ? 'another author posted this: repeat it as that author, or use a new id'
      : 'use a new id for a new message; to repeat a message send the same content, to, replyTo and includeInContext',
  );
}

/** The first field in which a post differs from the message with its id (L4); null: none. */
function difference(entry: MessageEntry, message: Post): string | null {
  if (entry.content !== message.content) return 'content';
  if (!isSameParts(entry, message)) return 'parts';
  if (entry.author.id !== message.author.id) return 'author';
  if (entry.replyTo !== message.replyTo) return 'replyTo';
  if (entry.workflow !== message.workflow) return 'workflow';
  if (JSON.stringify(entry.tools) !== JSON.stringify(message.tools)) return 'tools';
  if ((entry.includeInContext ?? true) !== (message.includeInContext ?? true)) return 'includeInContext';
  if ((entry.isCollapsed ?? false) !== (message.isCollapsed ?? false)) return 'isCollapsed';
  // Without `to`, routing chose the recipients: the log does not record whether the first post named them.
  return !isUnseen(entry) && message.to?.length && !isSameSet(message.to, entry.to ?? []) ? 'to' : null;
}

/** The daemon fills in what it found in the bytes, so only their hashes are compared. */
function isSameParts(entry: MessageEntry, message: Post): boolean {
  const [one, other] = [filesOf(entry), filesOf(message)];
  return one.length === other.length && one.every(({ sha256 }, at) => sha256 === other[at]?.sha256);
}

function isSameSet(left: readonly string[], right: readonly string[]): boolean {
  const [one, other] = [new Set(left), new Set(right)];
  return one.size === other.size && [...one].every((item) => other.has(item));
}

/** Why `post` would refuse a message now; null: it would accept it. */
function refusalOfPost(builder: DecisionBuilder, message: Post): Refusal | null {
  const known = duplicate(builder, message);
  if (known) return 'code' in known ? known : null;
  const to = recipients(builder, message);
  return to.ok ? null : to.refusal;
}

/** The recipients of a new message, or why it is refused. */
function recipients(builder: DecisionBuilder, message: Post): Route {
  const found = routed(builder, message);
  const refused = found.ok
    ? (refusalOfTools(builder, message, found.to) ?? refusalOfSchema(builder, message, found.to))
    : null;
  return refused ? { ok: false, refusal: refused } : found;
}

/** An answer to a question begins no turn, so it can only repeat the schema of the turn that continues (TYPED-1). */
function refusalOfSchema({ state, context }: DecisionBuilder, message: Post, to: readonly string[]) {
  if (!message.schema) return null;
  const given = JSON.stringify(message.schema);
  const asking = to.filter((slug) => {
    const { turn } = agentState(state, slug);
    if (!turn || !questionFor(turn.openCalls, message.replyTo, context)) return false;
    return JSON.stringify(askedSchema(context.entries, turn.trigger)) !== given;
  });
  if (asking.length === 0) return null;
  return refusal(
    'INVALID_FIELD',
    `field schema: this would answer the question of ${asking.join(', ')}, whose turn continues without that schema`,
    'answer without a schema, and ask for JSON in a later post',
  );
}

function routed(builder: DecisionBuilder, message: Post): Route {
  const { roster } = builder;
  const taken = refusalOfAgentName(message.author, roster);
  if (taken !== null) return { ok: false, refusal: taken };
  if (message.workflow !== undefined) {
    const refused = refusalOfStart(builder, message, message.workflow);
    return refused ? { ok: false, refusal: refused } : { ok: true, to: [], byName: false };
  }
  if (isUnseen(message)) return { ok: true, to: [], byName: false };
  return route(message, builder.state, roster, builder.context);
}

/** A message that no agent may see is routed to none. */
function isUnseen({
  includeInContext,
  isCollapsed,
}: Pick<Post, 'includeInContext' | 'isCollapsed'>): boolean {
  return includeInContext === false || isCollapsed === true;
}

function append(builder: DecisionBuilder, command: CommandOf<'post'>, to: readonly string[]): number {
  const { post: message, ingressSequence } = command;
  return builder.add({
    type: 'message',
    id: message.id,
    role: 'user',
    author: authorOf(message),
    content: message.content,
    parts: message.parts && [...message.parts],
    to: to.length > 0 ? [...to] : undefined,
    delivery: message.delivery,
    workflow: message.workflow,
    tools: message.tools && [...message.tools],
    toolChoice: message.toolChoice,
    parallelToolCalls: message.parallelToolCalls === false ? false : undefined,
    mode: builder.state.mode,
    phase: builder.state.phase,
    replyTo: message.replyTo,
    schema: message.schema && { ...message.schema },
    sessionId: message.sessionId,
    setsSession: message.sessionId === undefined ? undefined : message.setsSession,
    includeInContext: message.includeInContext,
    isCollapsed: message.isCollapsed,
    traceparent: message.traceparent,
    meta: message.meta,
    ingressSequence,
  });
}

function authorOf({ author }: Post): Author {
  return { kind: 'person', ...author };
}

/** Resumes a stopped agent that a person addresses by name. */
function resumeNamedAgents(builder: DecisionBuilder, agents: readonly string[], by: Author): void {
  for (const agent of agents) {
    if (isStopped(builder.state, agent)) builder.add({ type: 'agent-resumed', author: by, agent, by: by.id });
  }
}

/** V18: for an agent that waits for an answer, this message is the answer and nothing else. False: it waits for none. */
function answer(builder: DecisionBuilder, agent: string, message: Post, index: number): boolean {
  const turn = agentState(builder.state, agent).turn;
  const call = turn && questionFor(turn.openCalls, message.replyTo, builder.context);
  if (!turn || !call) return false;
  addSession(builder, agent, [index]);
  const step = new CallStep(builder, turn, call);
  step.addResult({ content: message.content, files: filesOf(message), answers: [index] });
  advanceTurn(builder, agent);
  return true;
}

/**
 * Begins a conversation with messages from elsewhere, which are texts of `by` (L17). They are routed to no agent, belong to
 * no turn and start none (L14); each has `meta.seeded`. The command is idempotent, also after a part of it was appended by
 * another daemon. Without messages it only checks `post`.
 */
export function seed(builder: DecisionBuilder, { messages, after, by, post }: CommandOf<'seed'>): Outcome {
  const seeded = builder.context.entries.filter(isSeeded);
  const known = seeded.slice(after, after + messages.length);
  const isCheck = messages.length === 0;
  const isSame = (entry: MessageEntry, at: number) => {
    const { content = '', parts } = messages[at] ?? {};
    return (
      entry.author.id === by.id &&
      plainContent(entry) === plainContent({ content: wellFormed(content), parts })
    );
  };
  if (!isCheck && known.length === messages.length && known.every(isSame)) return { kind: 'done' };
  const isBegun = () => builder.find((entry) => entry.type !== 'claim' && !isSeeded(entry)) !== undefined;
  if (!isCheck && (seeded.length !== after || isBegun())) {
    return refusal(
      'CONVERSATION_CONFLICT',
      'the conversation has begun already',
      'only a new conversation can begin with what was said elsewhere: choose another id',
    );
  }
  const refused = post ? refusalOfPost(builder, post) : null;
  if (refused) return refused;
  for (const { content, parts } of messages)
    builder.add({
      type: 'message',
      role: 'user',
      author: by,
      content,
      parts: parts && [...parts],
      meta: { seeded: true },
    });
  return { kind: 'done' };
}

function isSeeded(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.meta?.seeded === true;
}

interface Addressed {
  readonly content: string;
  readonly to?: readonly string[];
  /** The id of the entry that this message answers. */
  readonly replyTo?: string;
}

type Route =
  | { readonly ok: true; readonly to: readonly string[]; readonly byName: boolean }
  | { readonly ok: false; readonly refusal: Refusal };

/** What the log has. */
interface Known {
  readonly entries: readonly Entry[];
  readonly indexOfId: (id: string) => number | undefined;
}

const NOTHING: Known = { entries: [], indexOfId: () => undefined };

/**
 * Who answers a person's message (docs/spec/wire.md, "Who answers"). The first rule that applies decides:
 *
 * ROUTING-1 the message's `to`; an unknown agent is an error to the sender
 * ROUTING-2 `@slug` mentions of known agents in prose: not in code, quotes, paths or addresses
 * ROUTING-3 the agent that waits for this answer (an `ask`)
 * ROUTING-4 the current node's agent, in mode run
 * ROUTING-5 the active agent, in mode agent
 * ROUTING-6 the agent whose `phases` contain the phase
 * ROUTING-7 the agent whose `modes` contain the mode
 * ROUTING-8 the default agent
 */
export function route(
  message: Addressed,
  state: ConversationState,
  roster: Roster,
  log: Known = NOTHING,
): Route {
  if (message.to && message.to.length > 0) {
    const unknown = message.to.filter((slug) => !roster.agents.has(slug));
    if (unknown.length > 0) return { ok: false, refusal: unknownAgent(unknown, roster) };
    return { ok: true, to: [...new Set(message.to)], byName: true };
  }
  const { known: mentioned } = mentions(message.content, roster);
  if (mentioned.length > 0) return { ok: true, to: mentioned, byName: true };
  const asking = askingAgent(message.replyTo, state, roster, log);
  const isBusy = (slug: string) => agentState(state, slug).turn !== null || isStopped(state, slug);
  return { ok: true, to: [asking ?? agentByState(state, roster, isBusy)], byName: false };
}

/** ROUTING-3: the agent that asked the question that `replyTo` names, else the one that has waited longest. */
function askingAgent(
  replyTo: string | undefined,
  state: ConversationState,
  roster: Roster,
  known: Known,
): string | undefined {
  const questions = Object.entries(state.agents)
    .filter(([slug]) => roster.agents.has(slug))
    .flatMap(([slug, agent]) => (agent.turn?.openCalls ?? []).map((call) => ({ slug, call })))
    .filter(({ call }) => call.name === 'ask')
    .sort((a, b) => a.call.place.index - b.call.place.index);
  const call = questionFor(
    questions.map((question) => question.call),
    replyTo,
    known,
  );
  return questions.find((question) => question.call === call)?.slug;
}

/**
 * The open question that a message answers: the one that `replyTo` names by entry or by call, else the oldest (V18). An answer
 * to another call or question, for example a late one, must not answer this agent's question.
 */
function questionFor(
  calls: readonly OpenCall[],
  replyTo: string | undefined,
  known: Known,
): OpenCall | undefined {
  const questions = calls.filter((call) => call.name === 'ask');
  if (replyTo === undefined) return questions[0];
  if (placeOfCallId(replyTo) !== null) return questions.find(({ place }) => wireCallId(place) === replyTo);
  const at = known.indexOfId(replyTo);
  if (at !== undefined && isQuestion(known.entries[at]))
    return questions.find(({ place }) => place.index === at);
  return questions[0];
}

function isQuestion(entry: Entry | undefined): boolean {
  return entry?.type === 'message' && entry.tool_calls?.some((call) => call.function.name === 'ask') === true;
}

function unknownAgent(unknown: readonly string[], roster: Roster): Refusal {
  const known = [...roster.agents.keys()].join(', ');
  return refusal(
    'UNKNOWN_AGENT',
    `there is no agent ${unknown.map((slug) => JSON.stringify(slug)).join(', ')}`,
    `known agents: ${known}`,
  );
}
