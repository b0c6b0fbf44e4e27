import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { fsck } from '../../src/daemon/index.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { entriesOf } from '../support/log.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, providerSettings } from '../support/project.ts';
import { kills } from '../support/runs.ts';

/** One kill each. */
const ROUNDS = kills(5);
/** Of one conversation: `fsck` reads its whole log after each round. */
const ROUNDS_OF_ONE = 20;
/** Covers a whole reload. */
const LONGEST_MS = 60;

const persona = (round: number) => `---\nname: Pam\ndescription: plans\n---\nPERSONA ${round}\n`;
const roundIn = (text: string) => Number(/PERSONA (\d+)/.exec(text)?.[1] ?? Number.NaN);

/** What the log of a conversation lacks or contradicts, once no daemon runs. */
async function faultsOf(project: Project, conversation: string): Promise<string[]> {
  const reports = await fsck({ dataDirectory: project.data, conversation, repair: false, views: true });
  // A killed daemon leaves the mark of an open conversation, and its row is saved later.
  const fatal = reports.flatMap(({ findings }) => findings.filter(({ kind }) => kind !== 'row'));
  return fatal.map(({ kind, text }) => `${conversation}: ${kind}: ${text}`);
}

async function allAnswered(client: ParleyClient, conversation: string): Promise<void> {
  const isIdle = async () => {
    const { agents } = await client.request('conversation', { conversation });
    return Object.values(agents).every(({ status }) => status === 'idle');
  };
  await expect.poll(isIdle).toBe(true);
}

it(`${ROUNDS} kills during a reload leave no half definition and lose nothing (RELOAD-1, DEFINITIONS-1)`, {
  timeout: 60_000 + ROUNDS * 10_000,
}, async () => {
  const nats = await startNatsServer();
  const provider = await startFakeProvider(() => ({ text: 'Answer.', delayMs: Math.random() * 10 }));
  const settings = providerSettings(provider.url);
  const project = await openProject({ nats: nats.url, settings, agents: { pm: persona(0) } });
  const client = await connect({ url: nats.url, requests: { timeoutMs: 20_000 } });
  const posted = new Map<string, string[]>();
  try {
    for (let round = 1; round <= ROUNDS; round++) {
      const conversation = `c${Math.ceil(round / ROUNDS_OF_ONE)}`;
      const daemon = await project.up();
      const id = `p${round}`;
      posted.set(conversation, [...(posted.get(conversation) ?? []), id]);
      await client.post({ conversation, publisher: 'alice', content: 'Hello', id });
      await writeFile(join(project.config, 'agents', 'pm.md'), persona(round));
      daemon.signal('SIGHUP');
      await sleep(Math.random() * LONGEST_MS);
      await daemon.kill9();
      expect(await faultsOf(project, conversation)).toEqual([]);
    }
    await project.up();
    for (const [conversation, ids] of posted) {
      await allAnswered(client, conversation);
      const entries = await entriesOf(client, conversation);
      const messages = entries.filter(({ id }) => ids.includes(id));
      expect(messages.map(({ id }) => id)).toEqual(ids); // each once, in order
      const ends = entries.filter((entry) => entry.type === 'turn-ended' && entry.outcome === 'completed');
      expect(ends).toHaveLength(ids.length);
      const answers = entries.filter((entry) => entry.type === 'message' && entry.role === 'assistant');
      for (const { index } of answers.slice(-3)) {
        const { report, messages: request } = await client.request('view', {
          conversation,
          agent: 'pm',
          at: index,
        });
        expect([report.sent, roundIn(request[0]?.content ?? '')]).toEqual([true, expect.any(Number)]);
      }
      expect(await faultsOf(project, conversation)).toEqual([]);
    }
  } finally {
    await client.close();
    await project.close();
    await provider.close();
    await nats.stop();
  }
});
