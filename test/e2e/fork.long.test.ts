import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { startFleet } from '../support/fleet.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { openProject } from '../support/project.ts';
import { kills } from '../support/runs.ts';

const ROUNDS = kills(6);

const portable = ({ copiedFrom: _, ingressSequence: __, ...entry }: Entry) => entry;
const textsOf = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.type === 'message' ? [entry.content] : []));

describe('parley fork', () => {
  const start = async (model: FakeHandler) => untilTestEnds(await openProject({ model }));

  it('continues a copy from any entry; each copied request is explained with the hash that was sent', async () => {
    const project = await start((_, count) => ({ text: `answer ${count}` }));
    const daemon = await project.up();
    const client = await project.connect();
    for (const [_at, content] of ['one', 'two', 'three'].entries()) {
      await ask(client, 'demo', content);
    }
    const original = await entriesOf(client, 'demo');
    const answers = original.filter((entry) => entry.type === 'message' && entry.role === 'assistant');
    const end = original.filter((entry) => entry.type === 'turn-ended')[1]?.index ?? -1;

    const made = await project.parley('fork', 'demo', '--at', String(end), '--as', 'other');
    expect([made.code, made.stderr]).toEqual([0, '']);
    const copied = await entriesOf(client, 'other');
    expect(copied.slice(0, end + 1).map(portable)).toEqual(original.slice(0, end + 1).map(portable));
    expect(copied[end + 1]).toMatchObject({ type: 'forked', from: 'demo', at: end });
    const after = await ask(client, 'other', 'instead');
    expect(textsOf(after)).toEqual(['one', 'answer 0', 'two', 'answer 1', 'instead', 'answer 3']);
    expect(textsOf(await entriesOf(client, 'demo'))).toContain('three');

    for (const { index } of answers.slice(0, 2)) {
      const agent = 'pm';
      const { report } = await client.request('view', { conversation: 'other', agent, at: index });
      expect(report.sent).toBe(true);
    }
    const again = await project.parley('fork', 'demo', '--at', String(end), '--as', 'other');
    expect(again.code).toBe(0);
    expect(await entriesOf(client, 'other')).toHaveLength(after.length);

    const refused = await project.parley('fork', 'demo', '--at', '0', '--as', 'other');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('has begun already')]);
    const beyond = await project.parley('fork', 'demo', '--at', '999', '--as', 'x');
    expect([beyond.code, beyond.stderr]).toEqual([
      1,
      expect.stringContaining('demo has no entry 999; it has entries 0 to'),
    ]);
    const same = await project.parley('fork', 'demo', '--as', 'demo');
    expect([same.code, same.stderr]).toEqual([1, expect.stringContaining('another id')]);
    const unknown = await project.parley('fork', 'nothing', '--as', 'x');
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringContaining('there is no conversation nothing'),
    ]);
    const shown = await project.parley('show', 'other');
    expect(shown.stdout).toContain(`forked from demo at ${end}`);

    await daemon.stop();
    const checked = await project.parley('fsck');
    expect([checked.code, checked.stdout]).toEqual([0, expect.not.stringContaining('other')]);
  });

  it('closes the turn that runs in the original, which continues there', async () => {
    const project = await start((_, count) =>
      count === 0 ? { text: 'first', delayMs: 3_000 } : { text: `answer ${count}` },
    );
    await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'one' });
    await project.provider.waitForRequests(1);
    await client.request('fork', { conversation: 'demo', as: 'other' });
    const outcomes = (entries: readonly Entry[]) =>
      entries.flatMap((entry) => (entry.type === 'turn-ended' ? [entry.outcome] : []));
    expect(outcomes(await entriesOf(client, 'other'))).toEqual(['aborted']);
    const other = await ask(client, 'other', 'again');
    expect(textsOf(other)).toEqual(['one', 'again', 'answer 1']);
    const demo = await followUntil(client, 'demo', turnsEnded(1));
    expect([textsOf(demo), outcomes(demo)]).toEqual([['one', 'first'], ['completed']]);
  });

  it('that is killed with the daemon is completed by the same command, and is not answered before', {
    timeout: 120_000 + ROUNDS * 15_000,
  }, async () => {
    const project = await start(() => ({ text: 'noted' }));
    const lines = Array.from({ length: 3_000 }, (_, n) => ({
      role: n % 2 === 0 ? 'user' : 'assistant',
      content: `${n} ${'words '.repeat(600)}`,
    }));
    const file = join(project.root, 'messages.json');
    await writeFile(file, JSON.stringify(lines));
    const imported = await project.parley('import', file, '--conversation', 'long', '--agent', 'pm');
    expect(imported.code).toBe(0);
    let partial = 0;
    for (let round = 0; round < ROUNDS || (partial === 0 && round < 20); round++) {
      const daemon = await project.up();
      const first = await project.connect();
      const begun = first.request('fork', { conversation: 'long', as: `c${round}` }).catch(() => null);
      const log = join(project.data, 'conversations', `c${round}`, 'log.jsonl');
      while (((await stat(log).catch(() => null))?.size ?? 0) < 100_000) await new Promise(setImmediate);
      await daemon.kill9();
      await Promise.race([begun, new Promise((resolve) => setTimeout(resolve, 100))]);
      await first.close();
      const next = await project.up();
      const client = await project.connect();
      const before = await client.request('conversation', { conversation: `c${round}` }).catch(() => null);
      if (before !== null && before.length <= 3_001) partial += 1;
      expect((await project.parley('fork', 'long', '--as', `c${round}`)).code).toBe(0);
      const detail = await client.request('entries', { conversation: `c${round}`, from: 2_999 });
      expect(detail.entries.map(({ type }) => type)).toEqual(['message', 'forked', 'forked']);
      await client.close();
      await next.stop();
      expect(checkLog(await project.logFile(`c${round}`))).toEqual([]);
    }
    expect(project.provider.requests).toHaveLength(0);
    expect(partial).toBeGreaterThan(0); // a kill in the middle of a copy was tested
  });

  it('works where several daemons share the logs, and one of them continues the copy', async () => {
    const fleet = untilTestEnds(await startFleet({ count: 2 }));
    const { client } = fleet;
    const original = await ask(client, 'demo', 'one');
    await client.request('fork', { conversation: 'demo', as: 'other' });
    const other = await ask(client, 'other', 'two');
    expect(other.slice(0, original.length).map(portable)).toEqual(original.map(portable));
    expect(textsOf(other)).toEqual(['one', 'noted', 'two', 'noted']);
  });
});
