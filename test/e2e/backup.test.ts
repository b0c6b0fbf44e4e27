import { appendFile, cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type CliOutcome, runCli } from '../support/cli.ts';
import { openSite, type Site } from '../support/daemon.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

let nats: TestNatsServer;
let site: Site;
beforeEach(async () => {
  nats = await startNatsServer();
  site = await openSite({ nats: nats.url });
});
afterEach(async () => {
  await site.close();
  await nats.stop();
});

/** Without the header and the definitions, which are after the entries. */
const entryLines = ({ stdout }: CliOutcome): string[] =>
  stdout.split('\n').filter((line) => line !== '' && 'index' in JSON.parse(line));

it('a copy made while posts arrive can be repaired, and has a beginning of each conversation', async () => {
  const daemon = await site.up();
  await site.parley('say', 'first', 'hello', '--wait');
  const client = await site.client();
  const copy = join(site.root, 'copy');
  let copied = false;
  const posting = (async () => {
    for (let at = 0; !copied || at < 50; at++) {
      const conversation = `many-${at % 5}`;
      await client.request('post', { conversation, publisher: 'alice', id: `m${at}`, content: `post ${at}` });
    }
  })();
  await cp(site.data, copy, { recursive: true });
  copied = true;
  await posting;
  expect((await site.parley('fsck')).code).toBe(0); // beside a running daemon
  expect((await site.parley('fsck', '--repair')).stderr).toContain('is in use by process');
  expect(await daemon.stop()).toBe(0);
  expect((await site.parley('fsck')).stdout).toContain('6 conversations: sound');

  // Such a copy may have only a torn last line and projections that are ahead.
  await rm(join(copy, 'ingress.json'), { force: true });
  await appendFile(join(copy, 'conversations', 'first', 'log.jsonl'), '{"index":');
  const at = (...args: string[]) => runCli([...args, '--data', copy], { workingDirectory: site.root });
  expect((await at('fsck', '--repair', '--dry-run')).stdout).toContain('a repair cuts them off');
  const repaired = await at('fsck', '--repair', '--json');
  const kinds = repaired.json().flatMap(({ findings }) => findings.map(({ kind }: { kind: string }) => kind));
  expect(kinds).toContain('torn-tail');
  expect(kinds.filter((kind: string) => !['torn-tail', 'row', 'state', 'mark'].includes(kind))).toEqual([]);
  expect(repaired.code).toBe(0);
  expect((await at('fsck')).code).toBe(0);
  for (const { conversation } of repaired.json()) {
    const whole = entryLines(await site.parley('export', conversation, '--format', 'jsonl'));
    const beginning = entryLines(await at('export', conversation, '--format', 'jsonl'));
    expect(beginning).not.toEqual([]);
    expect(whole.slice(0, beginning.length)).toEqual(beginning);
  }
  const again = await site.up('--data', copy); // reads from the stream what the copy lacks
  const looked = async () => (await at('fsck')).stdout;
  await expect.poll(looked, { timeout: 30_000, interval: 500 }).toContain('6 conversations');
  expect(await again.stop()).toBe(0);
  expect((await at('fsck')).stdout).toContain('6 conversations: sound');
});

it('an imported conversation continues, and its export can be imported with the same result', async () => {
  const file = join(site.root, 'messages.json');
  await writeFile(file, JSON.stringify([{ role: 'user', content: 'long ago' }]));
  expect((await site.parley('import', file, '--conversation', 'old')).code).toBe(0);
  expect((await site.parley('import', file, '--conversation', 'old')).stdout).toContain('already');
  expect((await site.parley('import', 'nowhere.json', '--conversation', 'x')).code).toBe(2);
  expect((await site.parley('fsck', '--dry-run')).code).toBe(2);
  const daemon = await site.up();
  expect((await site.parley('say', 'old', 'and now?', '--wait')).code).toBe(0);
  expect(await daemon.stop()).toBe(0);
  const exported = await site.parley('export', 'old');
  expect(exported.json()[0]).toMatchObject([
    { content: 'long ago' },
    { content: 'and now?' },
    { role: 'assistant' },
  ]);
  await writeFile(file, exported.stdout);
  expect((await site.parley('import', file, '--conversation', 'again')).code).toBe(0);
  expect((await site.parley('export', 'again')).stdout).toBe(exported.stdout);
  expect((await site.parley('fsck')).code).toBe(0);
});
