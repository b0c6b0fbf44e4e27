import { beforeEach, describe, expect } from 'vitest';
import type { FakeReply, FakeRequest } from '../support/fake-provider.ts';
import { callsOf, entriesOf, finished, followUntil } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { projectPerTest } from '../support/project.ts';

/** Agents that read their own conversation, before and after a restart of the daemon. */

const project = projectPerTest({
  model: answer,
  agents: {
    pm: '---\nname: Pam\ntools: [recall]\ncontext: { includeToolResultsInContext: false }\n---\nYou plan.',
    dev: '---\nname: Dev\ntools: [recall, fs_list]\n---\nYou build.',
  },
});
const { client, daemon } = project;

/** A message `<tool> <arguments>` is a call to make. A result is repeated as text. */
function answer(request: FakeRequest): FakeReply {
  const last = request.json.messages?.at(-1);
  if (last?.role === 'tool') return { text: 'I have read it.' };
  const [, name, given] = /(recall|fs_list) (\{.*\})$/u.exec(last?.content ?? '') ?? [];
  if (name === undefined || given === undefined) return { text: `Noted: ${last?.content}` };
  return { toolCalls: [{ name, arguments: given }] };
}

let turns = 0;
beforeEach(() => {
  turns = 0;
});

async function say(content: string, publisher = 'alice'): Promise<void> {
  await client.post({ conversation: 'demo', publisher, content });
  turns += 1;
  await followUntil(client, 'demo', finished(turns));
}

async function newestResult(): Promise<string> {
  const calls = callsOf(await entriesOf(client, 'demo'));
  return calls.at(-1)?.results[0]?.content ?? '';
}

describe('the recall tool in a daemon', () => {
  itLong(
    'an agent recalls messages in its own perspective, by index and by text, also after a restart',
    async () => {
      await say('the password of the oven is mango');
      await say('@dev fs_list {"path":"@project"}', 'bob');
      const entries = await entriesOf(client, 'demo');
      const listed = entries.find((entry) => entry.type === 'message' && entry.role === 'tool');
      await daemon.kill9();
      await project.up();

      await say('@pm recall {"query":"MANGO oven"}');
      const hits = await newestResult();
      expect(hits).toMatch(
        /^--- recall found "MANGO oven" in 3 entries of those in entries 0 to the newest:\n/,
      );
      expect(hits).toMatch(/\n--- entry 0 · 20\S+Z · person: the password of the oven is mango\n/);
      expect(hits).toContain('· you: Noted: the password');

      await say(`@pm recall {"from":0,"to":${listed?.index}}`);
      const read = await newestResult();
      expect(read).toContain('· [bob]: @dev fs_list {"path":"@project"}');
      expect(read).toMatch(new RegExp(`nothing that you can be shown: .*${listed?.index}$`));
      expect(read).not.toContain('c0_'); // no call of the other agent
      expect(read).not.toContain('· [Dev]: \n');
    },
  );
});
