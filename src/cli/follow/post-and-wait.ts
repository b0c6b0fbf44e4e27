import {
  adviceOn,
  type ConversationDetail,
  createTurnWatch,
  cutBy,
  type Entry,
  type EntryOf,
  emptyAnswerFailure,
  eventText,
  type FollowEvent,
  finishNotice,
  logEntries,
  type MessageEntry,
  type PostAnswer,
  type PostMessage,
  type PostOptions,
  postAndFollow,
  splitMessage,
  type TurnWatch,
  unknownMentionsText,
} from '../../client/index.ts';
import type { Context } from '../context.ts';
import type { Connected } from '../find-daemon.ts';
import { createSpinner, type Spinner, untilSignal } from '../output/terminal.ts';
import { approvalLines, questions, requestedApproval } from '../render/entry.ts';
import { nodesOf } from '../render/state.ts';
import { voiceOf } from '../render/text.ts';
import { Transcript } from '../render/transcript.ts';

/** Posts a message for `say` and `run`; with `--wait` prints what agents answer. Returns the exit code. */

export async function postOnly(
  context: Connected,
  message: PostMessage,
  options: PostOptions = {},
): Promise<number> {
  const answer = await context.client.post(message, options);
  context.result(answer, describePost);
  noteIgnored(context, answer);
  return 0;
}

function noteIgnored(context: Context, { ignored = [] }: PostAnswer): void {
  for (const field of ignored)
    context.note(
      `parley: ${field} has no effect: operators have the right to it (--operator), and publishers.NAME.sessions in parley.yaml grants it`,
    );
}

function describePost({ conversation, id, index, duplicate, agents, unknownMentions }: PostAnswer): string {
  const whom = agents.length === 0 ? 'no agent answers' : `for ${agents.join(', ')}`;
  const text = unknownMentionsText(unknownMentions);
  const unknown = text && `; ${text}`;
  return `${conversation} ${index}: ${duplicate ? 'had been posted before' : 'posted'}, ${whom} (id ${id})${unknown}`;
}

/** Streams the answers until no turn is running. Of a message that starts a run, the run has to end well for the exit code 0. */
export async function postAndWait(
  context: Connected,
  message: PostMessage,
  options: PostOptions = {},
): Promise<number> {
  const waiting = createSpinner(context.io);
  let isPosted = false;
  const onPosted = () => {
    isPosted = true;
  };
  return untilSignal(context.io, (signal) =>
    streamAnswers(context, message, { ...options, signal, waiting, onPosted }).catch((error) => {
      if (signal.aborted) return interrupted(context, message.conversation, isPosted);
      throw error;
    }),
  ).finally(waiting.hide);
}

interface Waited extends PostOptions {
  readonly signal: AbortSignal;
  readonly waiting: Spinner;
  /** Called when the message is acknowledged. */
  readonly onPosted: () => void;
}

async function streamAnswers(
  context: Connected,
  message: PostMessage,
  { waiting, onPosted, ...options }: Waited,
): Promise<number> {
  const { conversation } = message;
  waiting.show('posting');
  const { answer, events } = await postAndFollow(context.client, message, options);
  onPosted();
  noteIgnored(context, answer);
  const watch = createTurnWatch();
  const unknown = unknownMentionsText(answer.unknownMentions);
  if (unknown && !context.json) context.note(`parley: ${unknown}`);
  watch.addOutstanding(answer.index, await agentsThatMayAnswer(context, answer));
  const output = context.json ? jsonLines(context) : spokenText(context, answer, waiting);
  let ended: EntryOf<'run-ended'> | undefined; // the first one: one run is active at a time
  const event = (one: FollowEvent): void => {
    if (one.kind === 'entry' && one.entry.type === 'run-ended') ended ??= one.entry;
    output.event(one);
  };
  const noteAsking = createAskingNotes(context, conversation);
  try {
    const show = { ...output, event };
    const answered = await showUntilSettled(context, answer, events, watch, show, noteAsking);
    const asking = answered === null ? [] : await showOpenQuestions(context, conversation, answered);
    noteAsking([...asking, ...watch.asking]);
  } finally {
    waiting.hide();
    output.end();
    await events.return();
  }
  const code = outcome(context, conversation, watch, options.signal);
  if (message.workflow === undefined || options.signal.aborted) return code;
  return runOutcome(context, message, ended);
}

/** A run ends well if one of its nodes ended it. */
async function runOutcome(
  context: Connected,
  { conversation, workflow }: PostMessage,
  ended: EntryOf<'run-ended'> | undefined,
): Promise<number> {
  if (ended) {
    const summary = ended.summary === undefined ? '' : ` (${ended.summary})`;
    context.note(`parley: the run of ${workflow} ended: ${ended.outcome}${summary}`);
    return ended.turnId === undefined ? 1 : 0;
  }
  const { run } = await context.request('conversation', { conversation });
  const { approvals } = await context.request('approvals', { conversation });
  if (approvals.length > 0) {
    const ids = approvals.map(({ approvalId }) => approvalId).join(', ');
    context.note(
      `parley: the run of ${workflow} waits at the node ${run && nodesOf(run)} for the answer to ${ids}, and continues with it; \`${context.command(`tail ${conversation}`)}\` shows how`,
    );
    return 1;
  }
  const next = `\`${context.command(`say ${conversation} "…" --wait`)}\` continues it`;
  context.note(
    `parley: the run of ${workflow} has not ended: it is at the node ${run && nodesOf(run)}; ${next}`,
  );
  return 1;
}

async function agentsThatMayAnswer(context: Connected, answer: PostAnswer): Promise<readonly string[]> {
  if (answer.agents.length === 0) return [];
  const { agents } = await context.request('conversation', { conversation: answer.conversation });
  return thoseThatMayAnswer(context, answer, agents, (text) => context.note(text));
}

/** Returns the index of the entry with the question that the message answers, if any. */
async function showUntilSettled(
  context: Connected,
  answer: PostAnswer,
  events: AsyncGenerator<FollowEvent, void, undefined>,
  watch: TurnWatch,
  show: Show,
  noteAsking: (agents: readonly string[]) => void,
): Promise<number | null> {
  const { conversation } = answer;
  /** The length of the log if no turn is running, else null. */
  const lengthAtRest = async () => {
    const { length, agents } = await context.client.request('conversation', { conversation });
    return Object.values(agents).some(({ status }) => status === 'running') ? null : length;
  };
  let answered: number | null = null;
  const waiting = createWaitingApprovals(context, conversation, context.note);
  // Earlier pending questions, for example of the same turn, are not among the followed events.
  let rest = await lengthAtRest();
  // Read at least up to the message itself, also when no agent answers it.
  for await (const event of events) {
    show.event(event);
    if (event.kind === 'live') continue;
    watch.observe(event.entry);
    noteAsking(watch.asking); // other turns may run for long
    if (event.entry.type === 'approval-requested') await waiting.requested(event.entry);
    else if (event.entry.type === 'limit-reached') context.note(`parley: ${eventText(event.entry)}`);
    else if (event.entry.type === 'message' && event.entry.answers?.includes(answer.index))
      answered = event.entry.call?.index ?? null;
    if (watch.quiet) break; // a turn that waits for a person is not running
    if (rest === null && event.entry.type === 'turn-ended') rest = await lengthAtRest();
    if (rest !== null && event.entry.index >= rest - 1) {
      await waiting.others(); // the message gets no answer until these are answered
      break;
    }
  }
  return answered;
}

/** Names each agent that waits for an answer once, while it waits, with the command that answers it. */
function createAskingNotes(context: Context, conversation: string): (agents: readonly string[]) => void {
  let noted: readonly string[] = [];
  return (agents) => {
    for (const agent of new Set(agents)) {
      if (noted.includes(agent)) continue;
      const command = context.command(`say ${conversation} "…" --to ${agent} --wait`);
      context.note(`${agent} waits for your answer: ${command}`);
    }
    noted = agents;
  };
}

/** Prints the unanswered questions of the entry at this index; returns the agents that wait for an answer. */
async function showOpenQuestions(
  context: Connected,
  conversation: string,
  index: number,
): Promise<readonly string[]> {
  let asked: MessageEntry | undefined;
  const answered = new Set<number>();
  for await (const entry of logEntries(context.client, conversation, index)) {
    if (entry.type !== 'message') continue;
    if (entry.index === index) asked = entry;
    else if (entry.call?.index === index) answered.add(entry.call.position);
  }
  const open = asked?.tool_calls?.filter((_, position) => !answered.has(position));
  const lines = asked ? questions({ ...asked, tool_calls: open }, context.palette) : [];
  if (!asked || lines.length === 0) return [];
  if (!context.json) for (const line of lines) context.line(line);
  return [asked.author.id];
}

function interrupted(context: Context, conversation: string, isPosted = true): number {
  const show = context.command(`show ${conversation}`);
  context.note(
    isPosted
      ? `left: the message stays posted, and its answer will be in the log (${show})`
      : `left before the message was acknowledged: it may not be posted (${show})`,
  );
  return 1;
}

/** A turn that failed, was cut off or reached a limit has no complete answer. One that a person aborted is a success. */
function outcome(context: Context, conversation: string, watch: TurnWatch, signal: AbortSignal): number {
  if (signal.aborted && !watch.quiet) return interrupted(context, conversation);
  const failed = watch.unfinished.filter(({ outcome }) => outcome === 'failed' || outcome === 'limited');
  for (const { agent, outcome, cut, limit } of watch.unfinished) {
    const ended = `the turn of ${agent} ${outcome === 'aborted' ? 'was' : 'ended'} ${outcome}`;
    const failure = cut && emptyAnswerFailure(cut, false);
    const more = failure ? `: ${failure.code}: ${failure.message}` : '';
    const resume = context.command(`resume ${conversation}`);
    const next = outcome === 'limited' ? `; ${afterLimit(limit, resume, context.command('reload'))}` : '';
    context.note(`parley: ${ended}${more}${next}`);
  }
  for (const { agent, by } of watch.cut)
    context.note(`parley: the answer of ${agent} was ${finishNotice(by)}; ${adviceOn(by)}`);
  return failed.length + watch.cut.length > 0 ? 1 : 0;
}

/** Limits of tokens and money apply to the conversation, so a new turn would reach them again. */
export function isOfConversation(limit: string | undefined): boolean {
  return limit === 'tokensPerConversation' || limit === 'usdPerConversation';
}

function afterLimit(limit: string | undefined, resume: string, reload: string): string {
  return isOfConversation(limit)
    ? `raise limits.${limit} in parley.yaml, then \`${reload}\` and \`${resume}\``
    : `\`${resume}\` begins another`;
}

/** How `say --wait` prints the answer to a message while it arrives. */
interface Show {
  event(event: FollowEvent): void;
  end(): void;
}

function jsonLines(context: Context): Show {
  return {
    event: (event) => {
      if (event.kind === 'entry') context.value(event.entry);
    },
    end: () => {},
  };
}

/** The text of the agents, with their names if there are several. */
function spokenText(context: Context, answer: PostAnswer, waiting: Spinner): Show {
  const [first] = answer.agents;
  const several = answer.agents.length > 1;
  const label = (agent: string) =>
    several || agent !== first ? voiceOf(agent, context.palette)(`[${agent}] `) : '';
  const { palette, io } = context;
  const verbatim = io.stdout.isTTY !== true;
  const transcript = new Transcript({ palette, label, details: false, verbatim });
  waiting.show(first === undefined ? '' : `${answer.agents.join(', ')} …`);
  const notes: string[] = [];
  const write = (text: string) => {
    if (text === '') return;
    waiting.hide();
    context.write(text);
  };
  return {
    event(event) {
      if (event.kind === 'live') write(transcript.live(event.agent, event.chunk));
      else if (isCutBeforeWords(event.entry))
        return; // `outcome` reports it
      else if (event.entry.type !== 'message' || event.entry.author.kind === 'agent') {
        write(transcript.entry(event.entry));
        notes.push(...endNote(event.entry));
      }
    },
    end() {
      write(transcript.close());
      for (const note of notes) context.note(note);
    },
  };
}

/** An answer that is whole, but ended for an unusual reason; `outcome` reports one that was cut. */
function endNote(entry: Entry): string[] {
  if (entry.type !== 'message' || cutBy(entry.finishReason)) return [];
  const notice = finishNotice(entry.finishReason);
  return notice === null ? [] : [`parley: the answer of ${entry.author.id} was ${notice}`];
}

function isCutBeforeWords(entry: Entry): boolean {
  if (entry.type !== 'message' || !cutBy(entry.finishReason)) return false;
  const { text, failure } = splitMessage(entry);
  return failure !== null && text === '';
}

/** The agents that a message was routed to, without stopped ones: waiting for these might never end. */
export function thoseThatMayAnswer(
  context: Context,
  { conversation, agents: routed }: PostAnswer,
  agents: ConversationDetail['agents'],
  note: (text: string) => void,
): readonly string[] {
  const stopped = routed.filter((slug) => agents[slug]?.status === 'stopped');
  for (const slug of stopped) {
    note(`${slug} is stopped: it answers after \`${context.command(`resume ${conversation}`)}\``);
  }
  return routed.filter((slug) => !stopped.includes(slug));
}

/** Prints the pending approvals of one conversation, each once, with the commands that answer it. */
export function createWaitingApprovals(
  { client, command }: Connected,
  conversation: string,
  note: (text: string) => void,
) {
  const noted = new Set<string>();
  const noteWaiting = (lines: readonly string[]) => note(['waiting for a person:', ...lines].join('\n'));
  return {
    isShown: (approvalId: string): boolean => noted.has(approvalId),
    /** Prints the approval that this entry requests, unless it was answered meanwhile. */
    async requested(entry: EntryOf<'approval-requested'>): Promise<void> {
      if (noted.has(entry.approvalId)) return;
      noted.add(entry.approvalId);
      const { approvals, more = 0 } = await client.request('approvals', { conversation });
      const listed = approvals.find(({ approvalId }) => approvalId === entry.approvalId);
      if (!listed && more === 0) return;
      noteWaiting(approvalLines(listed ?? requestedApproval(entry, conversation), command));
    },
    /** Prints all other pending approvals. */
    async others(): Promise<void> {
      const { approvals } = await client.request('approvals', { conversation });
      const others = approvals.filter(({ approvalId }) => !noted.has(approvalId));
      for (const { approvalId } of others) noted.add(approvalId);
      if (others.length > 0) noteWaiting(others.flatMap((pending) => approvalLines(pending, command)));
    },
  };
}
