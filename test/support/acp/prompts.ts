import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ParleyClient } from '../../../src/client/index.ts';
import { entriesOf, ofType } from '../log.ts';
import type { Project } from '../project.ts';

interface Prompts {
  /** The blocks that the program of the tests got, as JSON. */
  readonly received: readonly string[];
  /** What `parley explain --prompt` prints for the answers that name a prompt. */
  readonly printed: readonly string[];
  /** Whether the hash in the log is that of what is printed. */
  readonly sent: readonly unknown[];
}

/** All prompts of an agent in a conversation, in order. `state`: the folder of its program. */
export async function promptsOf(
  project: Project,
  client: ParleyClient,
  conversation: string,
  agent: string,
  state: string,
): Promise<Prompts> {
  const messages = ofType(await entriesOf(client, conversation), 'message');
  const answers = messages.filter(({ author, prompt }) => author.id === agent && prompt !== undefined);
  const sessions = new Set(answers.map(({ sessionId }) => sessionId));
  const lines = (await readFile(join(state, 'told.jsonl'), 'utf8')).trim().split('\n');
  const told = lines.map((line) => JSON.parse(line) as { session: string; blocks: unknown });
  const printed: string[] = [];
  const sent: unknown[] = [];
  for (const { index } of answers) {
    const where = ['explain', conversation, '--agent', agent, '--at', `${index}`];
    const { report } = await client.request('view', { conversation, agent, at: index });
    sent.push(report.told?.prompt?.sent);
    printed.push((await project.parley(...where, '--prompt')).stdout);
  }
  const received = told.filter(({ session }) => sessions.has(session));
  return { received: received.map(({ blocks }) => JSON.stringify(blocks)), printed, sent };
}
