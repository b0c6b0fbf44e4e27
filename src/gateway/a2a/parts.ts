import { type Message, type Part, Role } from '@a2a-js/sdk';
import { isRecord, ParleyError, valueAt } from '../../kernel/index.ts';

/** A2A's messages and their parts. */

export function textPart(text: string): Part {
  return {
    content: { $case: 'text', value: text },
    metadata: undefined,
    filename: '',
    mediaType: 'text/plain',
  };
}

export function dataPart(value: object): Part {
  return {
    content: { $case: 'data', value },
    metadata: undefined,
    filename: '',
    mediaType: 'application/json',
  };
}

export function messageFrom(
  role: Role,
  { id, taskId, contextId }: { readonly id: string; readonly taskId: string; readonly contextId: string },
  parts: Part[],
): Message {
  return {
    messageId: id,
    taskId,
    contextId,
    role,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

export interface Content {
  /** The parts of text. */
  readonly text: string;
  /** The objects of the parts of data, as one. */
  readonly data: Readonly<Record<string, unknown>>;
  /** All parts in order, as an agent reads them: data as fenced JSON. */
  readonly words: string;
}

/** The content of a message. Files are refused. */
export function contentOf({ parts }: Message): Content {
  const texts: string[] = [];
  const words: string[] = [];
  let data: Record<string, unknown> = {};
  for (const { content } of parts) {
    if (content?.$case === 'text') {
      texts.push(content.value);
      words.push(content.value);
    } else if (content?.$case === 'data') {
      const { value } = content;
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) data = { ...data, ...value };
      words.push(`\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``);
    } else {
      throw new ParleyError('CONTENT_NOT_SUPPORTED', 'parts of text and of data are taken, files are not', {
        hint: 'send the text of a file as a part of text',
      });
    }
  }
  return { text: texts.join('\n'), data, words: words.join('\n') };
}

/** `file`: as version 0.3 calls it. */
const KINDS = ['text', 'data', 'raw', 'url', 'file'];

/** Parameters of a request, before they are parsed: what is wrong with the parts of its message; null: nothing. */
export function faultOfParts(params: unknown): string | null {
  const parts = valueAt(params, ['message', 'parts']);
  if (parts === undefined) return null; // the SDK refuses a message without any
  if (!Array.isArray(parts)) return 'message.parts: expected a list';
  for (const [at, part] of parts.entries()) {
    if (!isRecord(part)) return `message.parts.${at}: expected an object`;
    const kinds = KINDS.filter((kind) => (part[kind] ?? null) !== null);
    if (kinds.length > 1) {
      const wanted = 'expected one of text, data, raw and url: send each as a part of its own';
      return `message.parts.${at} has ${kinds.join(' and ')}; ${wanted}`;
    }
  }
  return null;
}

export const fromPerson = Role.ROLE_USER;
export const fromAgent = Role.ROLE_AGENT;
