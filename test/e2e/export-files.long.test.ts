import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { launcher, runCli } from '../support/cli.ts';
import { sharedProject } from '../support/project.ts';

const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const PICTURE_HASH = createHash('sha256').update(PICTURE).digest('hex');
const BIG = randomBytes(3_000_000);

describe('export and import of a conversation with files', () => {
  const project = sharedProject({
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    script: [{ reply: { text: 'Noted.' } }],
  });
  const at = (...path: string[]) => join(project.root, ...path);
  const parley = (data: string, ...args: string[]) => runCli([...args, '--data', at(data)]);
  const soundness = async (data: string) => (await parley(data, 'fsck')).stdout;
  const hashes = async (folder: string) => (await readdir(at(folder))).sort();

  beforeAll(async () => {
    await writeFile(at('plan.png'), PICTURE);
    await writeFile(at('big.bin'), BIG);
    const files = ['--file', at('plan.png'), '--file', at('big.bin')];
    const said = await project.parley('say', 'work', 'Look at this', ...files);
    expect([said.code, said.stderr]).toEqual([0, '']);
    const hash = PICTURE_HASH.slice(0, 12);
    const saved = await project.parley('file', 'work', hash, '--out', at('saved.png'));
    expect([saved.code, saved.stderr]).toEqual([0, '']);
    await project.daemon.stop();
    const { code, stderr } = await project.parley(
      ...['export', 'work', '--format', 'jsonl', '--out', at('work.jsonl')],
    );
    expect([code, stderr]).toEqual([0, '']);
  });

  it('an export has the bytes of each file under its hash, and a repetition writes what is missing or damaged', async () => {
    expect(await hashes('work.files')).toEqual(expect.arrayContaining([PICTURE_HASH]));
    expect(await readFile(at('work.files', PICTURE_HASH))).toEqual(PICTURE);
    await writeFile(at('work.files', PICTURE_HASH), Buffer.alloc(PICTURE.length, 7));
    const again = await project.parley('export', 'work', '--format', 'jsonl', '--out', at('work.jsonl'));
    expect(again.stdout).toContain('2 files of its messages');
    expect(await readFile(at('work.files', PICTURE_HASH))).toEqual(PICTURE);
    const printed = await project.parley('export', 'work', '--format', 'jsonl');
    expect(await readFile(at('work.jsonl'), 'utf8')).toBe(printed.stdout);
    expect(again.stderr).toBe('');
    expect(printed.stderr).toBe('not included: 2 files of its messages; give --out FILE\n');
  });

  it('files of an export and saved files are readable by their owner only', async () => {
    const paths = ['work.jsonl', 'work.files', join('work.files', PICTURE_HASH), 'saved.png'];
    const modes = await Promise.all(paths.map(async (path) => (await stat(at(path))).mode & 0o077));
    expect(modes).toEqual([0, 0, 0, 0]);
  });

  it('an import on another machine has the same files, and its export is the same', async () => {
    const { code, stderr } = await parley('other', 'import', at('work.jsonl'), '--conversation', 'work');
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('IMPORT')]);
    expect(await soundness('other')).toContain('1 conversation: sound');
    await parley('other', 'export', 'work', '--format', 'jsonl', '--out', at('again.jsonl'));
    expect(await hashes('again.files')).toEqual(await hashes('work.files'));
    for (const hash of await hashes('work.files'))
      expect((await readFile(at('again.files', hash))).equals(await readFile(at('work.files', hash)))).toBe(
        true,
      );
  });

  it.each([
    ['is missing', (path: string) => rm(path)],
    ['has the SHA-256 ', (path: string) => writeFile(path, 'other bytes')],
  ])('a file that %s is named, and nothing is imported', async (why, damage) => {
    await rm(at('damaged.files'), { recursive: true, force: true });
    await mkdir(at('damaged.files'));
    await writeFile(at('damaged.jsonl'), await readFile(at('work.jsonl')));
    for (const hash of await hashes('work.files'))
      await writeFile(at('damaged.files', hash), await readFile(at('work.files', hash)));
    await damage(at('damaged.files', PICTURE_HASH));
    const { code, stderr } = await parley('third', 'import', at('damaged.jsonl'), '--conversation', 'work');
    expect(code).toBe(1);
    expect(stderr).toContain(`entry 0: ${PICTURE_HASH} ${why}`);
    expect(stderr).toContain('nothing was changed');
    expect(await readdir(at('third')).catch(() => [])).not.toContain('conversations');
  });

  it('a type that the bytes do not have is refused', async () => {
    const lie = (await readFile(at('work.jsonl'), 'utf8')).replaceAll(
      '"application/octet-stream"',
      '"image/png"',
    );
    await writeFile(at('lie.jsonl'), lie);
    await mkdir(at('lie.files'), { recursive: true });
    for (const hash of await hashes('work.files'))
      await writeFile(at('lie.files', hash), await readFile(at('work.files', hash)));
    const { code, stderr } = await parley('third', 'import', at('lie.jsonl'), '--conversation', 'work');
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('is application/octet-stream, and the entry says image/png'),
    ]);
  });

  it('an export as OpenAI messages has the bytes as data URLs, which an import stores', async () => {
    await project.parley('export', 'work', '--out', at('work.json'));
    const messages = JSON.parse(await readFile(at('work.json'), 'utf8'));
    const url = `data:image/png;base64,${PICTURE.toString('base64')}`;
    expect(JSON.stringify(messages)).toContain(url);
    const { code } = await parley('messages', 'import', at('work.json'), '--conversation', 'old');
    expect(code).toBe(0);
    expect(await soundness('messages')).toContain('1 conversation: sound');
    await parley('messages', 'export', 'old', '--format', 'jsonl', '--out', at('old.jsonl'));
    expect(await hashes('old.files')).toEqual(await hashes('work.files'));
  });

  it('an import that is killed can be repeated, and until then no log names a file', async () => {
    for (const afterMs of [250, 450]) {
      const args = ['import', at('work.jsonl'), '--conversation', 'work', '--data', at('killed')];
      const child = spawn(process.execPath, [launcher, ...args], { stdio: 'ignore' });
      const exited = new Promise((resolve) => child.once('exit', resolve));
      const timer = setTimeout(() => child.kill('SIGKILL'), afterMs);
      await exited;
      clearTimeout(timer);
      const { stdout, stderr } = await parley('killed', 'fsck');
      expect(stdout + stderr).not.toMatch(/is missing|is not recorded/);
    }
    const { code } = await parley('killed', 'import', at('work.jsonl'), '--conversation', 'work');
    expect(code).toBe(0);
    expect(await soundness('killed')).toContain('1 conversation: sound');
  });

  it('an export with a damaged file says which, and leaves the last export as it is', async () => {
    const before = await readFile(at('work.jsonl'), 'utf8');
    await rename(at('work.files'), at('kept.files'));
    const stored = at('data', 'blobs');
    const names = await readdir(stored, { recursive: true });
    const [name = ''] = names.filter((one) => one.endsWith(PICTURE_HASH));
    await writeFile(join(stored, name), 'damaged');
    const { code, stderr } = await project.parley(
      ...['export', 'work', '--format', 'jsonl', '--out', at('work.jsonl')],
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining(`the file ${PICTURE_HASH} of entry 0`)]);
    expect(await readFile(at('work.jsonl'), 'utf8')).toBe(before);
  });
});
