import { type Message, type Part, Role, type Task, TaskState } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';

/** Requests of the tests to the official A2A client. */

export const text = (value: string): Part => ({
  content: { $case: 'text', value },
  metadata: undefined,
  filename: '',
  mediaType: '',
});

export const data = (value: object): Part => ({ ...text(''), content: { $case: 'data', value } });

let made = 0;
export const message = (part: Part | string, more: Partial<Message> = {}) => ({
  tenant: '',
  configuration: undefined,
  metadata: undefined,
  message: {
    messageId: `m${++made}`,
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [typeof part === 'string' ? text(part) : part],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
});

export async function send(client: Client, ...given: Parameters<typeof message>): Promise<Task> {
  const answer = await client.sendMessage(message(...given));
  if ('messageId' in answer) throw new Error('expected a task');
  return answer;
}

export const get = (client: Client, id: string) => client.getTask({ id, tenant: '' });

export const wordsOf = (parts: readonly Part[] = []) =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

export const stateOf = (task: Task) => TaskState[task.status?.state ?? -1];
