import { Message, Part, type Role } from '@a2a-js/sdk';
import { type FilePart, type MessageEntry, type OpenCall, wireCallId } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { verdictIn } from '../fields.ts';
import { type AddressOf, type SentPart, sentFile } from '../files.ts';

/** A2A's messages, their parts, and what they answer. */

export const textPart = (text: string): Part => Part.fromJSON({ text, mediaType: 'text/plain' });
export const dataPart = (data: unknown): Part => Part.fromJSON({ data, mediaType: 'application/json' });

/** A file where readers of the conversation get it. */
export const filePart = (file: FilePart, address: AddressOf): Part =>
  Part.fromJSON({ url: address(file), mediaType: file.mediaType, filename: file.name });

/** A message of the log: its text, and its files. */
export const partsFrom = (entry: Pick<MessageEntry, 'content' | 'parts'>, address: AddressOf): Part[] =>
  entry.parts?.map((part) => (part.type === 'text' ? textPart(part.text) : filePart(part, address))) ?? [
    textPart(entry.content ?? ''),
  ];

/** `place`: its id, and its task and context. */
export function messageFrom(
  role: Role,
  { id, ...place }: { readonly id: string; readonly taskId: string; readonly contextId: string },
  parts: Part[],
): Message {
  return { ...Message.fromJSON({ messageId: id, ...place, role }), parts };
}

export interface Content {
  /** The parts of text. */
  readonly text: string;
  /** The objects of the parts of data, as one. */
  readonly data: Readonly<Record<string, unknown>>;
  /** All parts in order, as an agent reads them: data as fenced JSON. */
  readonly parts: readonly SentPart[];
}

/** The content of a message. */
export function contentOf({ parts }: Message): Content {
  const texts: string[] = [];
  const words: SentPart[] = [];
  let data: Record<string, unknown> = {};
  for (const [at, { content, filename }] of parts.entries()) {
    const as = { where: `message.parts.${at}`, ...(filename && { name: filename }) };
    if (content?.$case === 'text') {
      texts.push(content.value);
      words.push({ type: 'text', text: content.value });
    } else if (content?.$case === 'data') {
      const { value } = content;
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) data = { ...data, ...value };
      words.push({ type: 'text', text: `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`` });
    } else if (content?.$case === 'raw') words.push({ ...as, type: 'sent', bytes: content.value });
    else if (content?.$case === 'url') words.push(sentFile(content.value, as));
    else throw new ParleyError('CONTENT_NOT_SUPPORTED', `${as.where} has no text, data, raw or url`);
  }
  return { text: texts.join('\n'), data, parts: words };
}

export type Reply =
  | {
      readonly kind: 'words';
      readonly agent: string;
      readonly replyTo: string;
      readonly parts: readonly SentPart[];
    }
  | { readonly kind: 'verdict'; readonly approvalId: string; readonly body: Record<string, unknown> };

const VERDICTS = ['approve', 'deny', 'rerun', 'failed', 'result'];

/**
 * Reads a message to a task that needs input.
 * `requested`: the number of approvals that the sender may have seen in this task.
 *
 * ANSWER-1 To a question, the text is the answer.
 * ANSWER-2 To an approval, the answer is an object like the body of `POST /api/approvals/<id>`, or text that starts with
 *    the answer. Anything else is refused, not guessed.
 * ANSWER-3 With several open approvals, the message must name one of them. Otherwise it is refused: it must not release a
 *    call that it did not mean.
 * ANSWER-4 After a second approval request, every answer except `deny` must name its approval: the call that the sender saw
 *    may be answered already, and another one open.
 */
export function replyOf(message: Message, open: readonly OpenCall[], requested: number): Reply {
  const { text, data, parts } = contentOf(message);
  const call = callOf(data.approvalId, open);
  const { approval, agent, place } = call;
  if (!approval) return { kind: 'words', agent, replyTo: wireCallId(place), parts };
  if (parts.some(({ type }) => type !== 'text')) {
    const hint = 'send it with a message of its own';
    throw new ParleyError('CONTENT_NOT_SUPPORTED', 'the answer to an approval has no files', { hint });
  }
  const body = verdictOf(text, data);
  if (data.approvalId === undefined && requested > 1 && body.answer !== 'deny') {
    const problem = `this task asked for ${requested} approvals, and the message names none`;
    throw new ParleyError('BAD_REQUEST', problem, { hint: naming([approval]) });
  }
  return { kind: 'verdict', approvalId: approval.id, body };
}

function callOf(approvalId: unknown, open: readonly OpenCall[]): OpenCall {
  const [first] = open;
  if (!first) throw new ParleyError('TASK_TAKES_NO_INPUT', 'no question to a person is open in this task');
  const approvals = open.flatMap(({ approval }) => approval ?? []);
  if (approvalId === undefined && (first.approval === null || approvals.length === 1)) return first;
  const named = open.find(({ approval }) => approval?.id === approvalId);
  if (named?.approval) return named;
  const problem =
    approvalId === undefined
      ? `${approvals.length} calls of tools wait for approval, and the message names none`
      : `no approval ${JSON.stringify(approvalId)} is open in this task`;
  throw new ParleyError('BAD_REQUEST', problem, { hint: naming(approvals) });
}

function naming(approvals: readonly { readonly id: string }[]): string {
  const ids = approvals.map(({ id }) => id).join(', ') || 'none';
  return `send {"approved": true, "approvalId": …} as data; open are ${ids}`;
}

/** ANSWER-2. Text beside an object is the reason. */
function verdictOf(text: string, data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const verdict = verdictIn({ ...data, reason: data.reason ?? text });
  if (verdict) return verdict;
  const [, word = '', rest = ''] = /^\s*([a-z]+)[\s:,.]*([\s\S]*)$/i.exec(text) ?? [];
  const answer = word.toLowerCase();
  if (VERDICTS.includes(answer))
    return { answer, ...(answer === 'result' ? { result: rest } : rest && { reason: rest }) };
  throw new ParleyError('BAD_REQUEST', 'a call of a tool waits for approval', {
    hint: 'send {"approved": true} or {"approved": false} as data, or the word approve or deny',
  });
}
