import {
  type CallPlace,
  contentOf,
  type Entry,
  type EntryOf,
  isOfAPerson,
  type MessageEntry,
  type Part,
  Progress,
  quotedLines,
  wireCallId,
} from '../../conversation/index.ts';
import { cut, isRecord, ParleyError } from '../../kernel/index.ts';
import { digest, NOT_ANSWERED, openCallsOf } from '../client-ids.ts';
import { refusedField } from '../fields.ts';
import { postOf, type SentPart } from '../files.ts';
import { hasRole, type Identity, requireRole } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { type Act, ask, orElse, type Posted, readLog, readTail, stoppedOf } from '../progress/ask.ts';
import {
  addressedBy,
  type Resume,
  type RunInput,
  replyOf,
  type SentPost,
  type SentResult,
  verdictOf,
} from './input.ts';

/**
 * Starts a run: sends its answers and posts, and determines where following starts.
 *
 * BEGIN-1 Answers come before posts. A repeated request does not answer or post twice.
 * BEGIN-2 It subscribes before it posts (`arrivals.ts`).
 * BEGIN-3 If there are several posts and answers, each post is checked before any is made: a refused run changes nothing.
 * BEGIN-4 An approval answers only the call it was requested for. A different answer to an answered approval is refused.
 * BEGIN-6 A message of the user ends the calls that its author left open. Context is posted only when it changes.
 * BEGIN-7 Results of other calls, such as an agent's own, are ignored. If the messages end with one, and the log has no such call,
 *         the run is refused: it would do nothing.
 * BEGIN-8 Messages that the application has from the log, of any person, are not posted again; if there are no others, those of
 *         this author are, whose effects are replayed, if it has the role `post`. Only others need that role.
 * BEGIN-5 A new thread begins with the posts: earlier messages of the application are not in the log, and it is notified.
 */

export interface Begun {
  readonly arrivals: Arrivals;
  /** Null: nothing was posted or answered, so there is nothing to follow. */
  readonly progress: Progress | null;
  /** Entries below this index precede the run. */
  readonly before: number;
  /** The progress follows from here on. */
  readonly from: number;
  /** What of the input has no effect, besides what `input.ts` finds. */
  readonly unused: readonly string[];
  readonly unknownMentions: readonly string[];
}

const EARLIER_MESSAGES = 'messages before the last ones of the user';

type Body = Readonly<Record<string, unknown>>;

/** One answer of a person, as a request; `known`: the index at which the log has it. */
interface Answer {
  readonly asked: MessageEntry & { readonly turnId: string };
  /** The post that caused the question. */
  readonly post: MessageEntry | null;
  readonly known: number | null;
  readonly verb: 'post' | 'answer' | 'results';
  readonly body: Body;
}

export interface Beginner {
  /** Null: any. */
  readonly agent: string | null;
  /** The author id of the caller. */
  readonly author: string;
  readonly identity: Identity;
  readonly act: Act;
  /** Stores the files of a message. */
  readonly keep: (parts: readonly SentPart[]) => Promise<readonly Part[]>;
}

export async function begin(daemon: GatewayPort, input: RunInput, by: Beginner): Promise<Begun> {
  const { conversation, resume, known } = input;
  const { agent, act } = by;
  const { length } = await orElse(ask(daemon, 'conversation', { conversation }), { length: 0 });
  const tail = await readTail(daemon, conversation, length);
  const given = resultsIn(tail, input);
  const posts = notInLog(tail, given.length > 0 ? input.posts : [...input.posts, ...input.again], by);
  if (posts.length > 0) requireRole(by.identity, 'post');
  const hasEarlier = known.length > 0 && !posts.some(({ id }) => id === known[0]);
  const lost = (isNew: boolean) => (isNew && hasEarlier ? [EARLIER_MESSAGES] : []);
  return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
    if (resume.length + given.length + posts.length === 0) {
      const start = { progress: null, before: length, from: length };
      return { arrivals, ...start, unused: lost(length === 0), unknownMentions: [] };
    }
    const addressed = [...resume.map(addressedBy), ...given.map(({ call }) => ({ ...call, root: null }))];
    const from = Math.min(...addressed.map(({ index, root }) => root ?? index));
    const log = addressed.length > 0 ? await readLog(daemon, conversation, from) : [];
    const answers = resume.map((one) => answerOf(conversation, log, one));
    for (const one of given) answers.push(await resultAnswer(log, one, by));
    const newPosts: Body[] = [];
    for (const post of posts)
      newPosts.push(await bodyOf(post, input, { ...by, tail, isFirst: newPosts.length === 0 }));
    if (answers.length + newPosts.length > 1) {
      const replies = answers.filter(({ known, verb }) => known === null && verb === 'post');
      for (const body of [...replies.map(({ body }) => body), ...newPosts]) await check(act, body);
    }
    const answered = { indexes: [] as number[], approvals: [] as string[] };
    for (const one of answers) await answer(one, act, answered);
    const sent = answers.flatMap(({ verb, known: at, body }) =>
      verb === 'results' && at === null ? [body] : [],
    );
    if (sent.length > 0) answered.indexes.push((await act('results', { conversation, results: sent })).index);
    const posted: Posted[] = [];
    for (const body of newPosts) posted.push(await act('post', body));
    const isNews = posted.some(({ duplicate }) => !duplicate);
    const notBefore = isNews ? await leaveOpen(input, tail, by) : undefined;
    const first = Math.min(...posted.map(({ index }) => index));
    const indexes = [...answered.indexes, ...posted.map(({ index }) => index)];
    // A repeated post may be addressed to other agents: then all agents are followed.
    const all = [...rootsOf(answers), ...posted];
    const isForAgent = agent !== null && all.every(({ agents }) => agents.includes(agent));
    const routed = [...new Set(posted.flatMap(({ agents }) => agents))];
    const earlier = await readTail(daemon, conversation, Math.min(from, first));
    const progress = new Progress({
      stopped: await stoppedOf(daemon, conversation, routed),
      agent: isForAgent ? agent : null,
      posts: all,
      notBefore,
      before: earlier,
      turns: answers.flatMap(({ post, asked }) =>
        post ? [] : [{ turnId: asked.turnId, agent: asked.author.id }],
      ),
      ...(answers.length > 0 && { answers: { indexes, approvals: answered.approvals } }),
    });
    const ends = answers.flatMap(({ known }) => known ?? []);
    const end = log.length > 0 ? Math.min(from + log.length, ...ends) : first;
    const ignored = new Set(posted.flatMap((one) => one.ignored ?? []));
    return {
      arrivals,
      progress,
      before: Math.min(first, end),
      from: Math.min(from, first),
      unused: [...lost(earlier.every(({ type }) => type === 'claim')), ...ignored],
      unknownMentions: [...new Set(posted.flatMap((one) => one.unknownMentions ?? []))],
    };
  });
}

/** BEGIN-8 */
function notInLog(
  tail: readonly Entry[],
  posts: readonly SentPost[],
  { author, identity }: Beginner,
): readonly SentPost[] {
  const entryOf = ({ id, parts }: SentPost) =>
    tail.find(
      (entry): entry is MessageEntry =>
        entry.id === id && isOfAPerson(entry) && (ownContent(entry).content ?? '') === textOf(parts),
    );
  if (posts.some((post) => !entryOf(post))) return posts.filter((post) => !entryOf(post));
  if (!hasRole(identity, 'post')) return [];
  return posts.filter((post) => entryOf(post)?.author.id === author && !entryOf(post)?.replyTo);
}

const textOf = (parts: readonly SentPart[]) => contentOf(parts.filter((part) => part.type === 'text'));

/** A result of a call of the application's tools, and the answer with that call. */
type GivenResult = SentResult & { readonly call: CallPlace; readonly asked: MessageEntry };

/** BEGIN-7 */
function resultsIn(tail: readonly Entry[], { results, posts, resume }: RunInput): GivenResult[] {
  return results.flatMap((result): GivenResult[] => {
    const { call, where, given } = result;
    const asked = tail.find((entry) => entry.index === call?.index);
    if (call && asked?.type === 'message' && asked.callerCalls?.includes(call.position))
      return [{ ...result, call, asked }];
    if (asked || posts.length + resume.length > 0) return [];
    const id = JSON.stringify(cut(given.toolCallId, 80));
    throw refusedField(where, `no call ${id} was made in this thread: end with a message of the user`);
  });
}

async function resultAnswer(
  log: readonly Entry[],
  { call, asked, parts, isError }: GivenResult,
  { keep, identity }: Beginner,
): Promise<Answer> {
  const key = wireCallId(call);
  const known = log.find((entry) => isAnswer(entry, key, null))?.index ?? null;
  if (known === null) requireRole(identity, 'post');
  const body = { call: key, ...(known === null && postOf(await keep(parts))), ...(isError && { isError }) };
  return { asked: { ...asked, turnId: asked.turnId ?? '' }, post: null, known, verb: 'results', body };
}

/** What a post keeps of its run: the digest of the context, and the length of its text if the context follows it. */
const KEPT = 'ag-ui';

function keptOf(entry: Entry | undefined): { readonly context?: unknown; readonly length?: unknown } | null {
  const kept = entry?.type === 'message' ? entry.meta?.[KEPT] : undefined;
  return isRecord(kept) ? kept : null;
}

const HEADING = 'Context of the application:';
const CONTEXT = new RegExp(String.raw`^\n{1,2}${HEADING}(?:\n> .*)+$`);

/** The text of a message of the user, without the context after it. Any publisher may say that there is one: no other text is left out. */
export function ownContent(entry: MessageEntry): MessageEntry {
  const length = keptOf(entry)?.length;
  const { parts, ...rest } = entry;
  const content = entry.content ?? '';
  if (typeof length !== 'number' || !CONTEXT.test(content.slice(length))) return entry;
  const last = parts?.at(-1);
  if (last && !(last.type === 'text' && CONTEXT.test(last.text))) return entry;
  return { ...rest, content: content.slice(0, length), ...(parts && { parts: parts.slice(0, -1) }) };
}

/** A repeated message has the context and the tools of the first one. */
async function bodyOf(
  { id, parts }: SentPost,
  { conversation, sessionId, context, tools }: RunInput,
  { agent, keep, tail, isFirst }: Beginner & { readonly tail: readonly Entry[]; readonly isFirst: boolean },
): Promise<Body> {
  const kept = await keep(parts);
  const own = postOf(kept);
  const common = {
    conversation,
    id,
    ...(agent && { to: [agent] }),
    ...(sessionId !== undefined && { sessionId }),
  };
  const first = tail.find((entry) => entry.id === id);
  if (first?.type === 'message' && ownContent(first).content === own.content) {
    const { content, tools: brought } = first;
    return { ...common, ...own, content, ...(brought && { tools: brought }) };
  }
  const digested = context === '' ? undefined : digest(context);
  const before = tail.findLast((entry) => keptOf(entry)?.context !== undefined);
  const isNew = isFirst && digested !== undefined && keptOf(before)?.context !== digested;
  const text = ['', HEADING, ...quotedLines(context)].join('\n');
  return {
    ...common,
    ...(isNew ? postOf([...kept, { type: 'text', text }]) : own),
    ...(tools.length > 0 && { tools }),
    ...(digested !== undefined && {
      meta: { [KEPT]: { context: digested, ...(isNew && { length: own.content.length }) } },
    }),
  };
}

/** BEGIN-6. The index of the first such result. */
async function leaveOpen(
  { conversation, results }: RunInput,
  tail: readonly Entry[],
  { author, act }: Beginner,
): Promise<number | undefined> {
  const sent = new Set(results.flatMap(({ call }) => (call ? wireCallId(call) : [])));
  const left = openCallsOf(author, tail).filter(({ place }) => !sent.has(wireCallId(place)));
  if (left.length === 0) return undefined;
  const given = left.map(({ place }) => ({ call: wireCallId(place), content: NOT_ANSWERED, isError: true }));
  return (await act('results', { conversation, results: given })).index;
}

/** The posts that caused the questions, each once. */
function rootsOf(answers: readonly Answer[]): Pick<Posted, 'index' | 'agents'>[] {
  const roots = new Map(answers.flatMap(({ post }) => (post ? [[post.index, post.to ?? []]] : [])));
  return [...roots].map(([index, agents]) => ({ index, agents }));
}

/** BEGIN-3: refused as the post would be. */
async function check(act: Act, { conversation, ...post }: Body): Promise<void> {
  await act('seed', { conversation, messages: [], post });
}

function answerOf(conversation: string, log: readonly Entry[], resume: Resume): Answer {
  const { index, position, approvalId, root } = addressedBy(resume);
  const asked = log.find((entry) => entry.index === index);
  if (asked?.type !== 'message' || !asked.tool_calls?.[position] || asked.turnId === undefined) {
    throw refusedField('resume', `nothing is asked by ${JSON.stringify(resume.interruptId)}`);
  }
  const post = log.find((entry) => entry.index === root);
  const key = wireCallId({ index, position });
  const known = log.find((entry) => isAnswer(entry, key, approvalId));
  const verdict = approvalId === null ? {} : verdictOf(resume);
  if (approvalId !== null) refuseOther(log, key, approvalId, resume);
  if (known?.type === 'approval-answered' && known.answer !== verdict.answer) throw alreadyAnswered(known);
  const found = {
    asked: { ...asked, turnId: asked.turnId },
    post: post?.type === 'message' ? post : null,
    known: known?.index ?? null,
  };
  if (approvalId !== null) return { ...found, verb: 'answer', body: { approvalId, ...verdict } };
  const id = `resume-${digest([conversation, resume.interruptId, resume.payload ?? null])}`;
  const body = { conversation, content: replyOf(resume), to: [asked.author.id], replyTo: key, id };
  return { ...found, verb: 'post', body };
}

async function answer(
  { known, verb, body }: Answer,
  act: Act,
  answered: { readonly indexes: number[]; readonly approvals: string[] },
): Promise<void> {
  if (known !== null) answered.indexes.push(known);
  else if (verb === 'results')
    return; // all of them together
  else if (verb === 'post') answered.indexes.push((await act('post', body)).index);
  else {
    await act('answer', body);
    answered.approvals.push(String(body.approvalId));
  }
}

function refuseOther(log: readonly Entry[], key: string, approvalId: string, { interruptId }: Resume): void {
  const isOfCall = log.some(
    (entry) =>
      entry.type === 'approval-requested' &&
      entry.approvalId === approvalId &&
      wireCallId(entry.call) === key,
  );
  if (!isOfCall) throw refusedField('resume', `no approval was requested by ${JSON.stringify(interruptId)}`);
}

function alreadyAnswered({ approvalId, answer }: EntryOf<'approval-answered'>): ParleyError {
  return new ParleyError('APPROVAL_ANSWERED', `${approvalId} was answered already: ${answer}`, {
    hint: 'nothing was changed',
  });
}

function isAnswer(entry: Entry, key: string, approvalId: string | null): boolean {
  if (entry.type === 'approval-answered') return entry.approvalId === approvalId;
  return entry.type === 'message' && entry.call !== undefined && wireCallId(entry.call) === key;
}
