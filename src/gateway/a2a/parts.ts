import { type Message, type Part, Role } from '@a2a-js/sdk';
import { ParleyError } from '../../kernel/index.ts';

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

/** What was sent: words, or an object. */
export function contentOf({ parts }: Message): {
  readonly text: string;
  readonly data: Record<string, unknown>;
} {
  const texts: string[] = [];
  let data: Record<string, unknown> = {};
  for (const { content } of parts) {
    if (content?.$case === 'text') texts.push(content.value);
    else if (content?.$case === 'data' && typeof content.value === 'object')
      data = { ...data, ...content.value };
    else throw new ParleyError('CONTENT_NOT_SUPPORTED', 'parts of text and of data are taken, files are not');
  }
  return { text: texts.join('\n'), data };
}

export const fromPerson = Role.ROLE_USER;
export const fromAgent = Role.ROLE_AGENT;
