import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inspectFiles } from '../../src/persistence/jsonl/index.ts';
import { entry, logBytes, withScene } from '../unit/persistence/support.ts';

const FIXTURE = join(import.meta.dirname, 'store-fixtures', 'open-store.ts');
const DISK = join(import.meta.dirname, '..', 'support', 'folding-disk.mjs');
const IDS = ['CIX', 'Demo', 'plain'];

/** Opens and closes the store in another process on a case-insensitive disk. Returns how it ended. */
async function open(directory: string, killAtRename: string): Promise<number | NodeJS.Signals> {
  const child = spawn(process.execPath, ['--import', DISK, '--import', 'tsx', FIXTURE, directory], {
    stdio: 'inherit',
    env: { ...process.env, FOLDING_DISK: directory, KILL_AT_RENAME: killAtRename },
  });
  const [code, signal] = await once(child, 'exit');
  return signal ?? code;
}

describe('a daemon that is killed while it renames folders of the previous layout', () => {
  it(
    'every conversation is whole under one of its two names, and the next start continues',
    {
      timeout: 240_000,
    },
    () =>
      withScene(async (scene) => {
        for (const id of IDS) {
          await scene.leave(id, logBytes([[entry(0, `words of ${id}`)]]));
          await mkdir(scene.path('conversations', id, 'outputs'));
          await writeFile(scene.path('conversations', id, 'outputs', 'e1.json'), id);
        }
        await mkdir(scene.path('open'));
        for (const name of [...IDS, '.complete']) await writeFile(scene.path('open', name), '');
        const check = async () => {
          const inspector = inspectFiles(scene.directory);
          expect(await inspector.conversations()).toEqual(IDS);
          for (const id of IDS) {
            const found = await inspector.inspect(id);
            const log = { entries: [entry(0, `words of ${id}`)], tornTail: null };
            expect(found).toMatchObject({ log, isMarked: true, unreadable: [] });
            expect(found.hasOutput('e1')).toBe(true);
          }
        };
        const names: string[][] = [];
        let ended: number | NodeJS.Signals = 'SIGKILL';
        while (ended === 'SIGKILL' && names.length < 20) {
          ended = await open(scene.directory, '1');
          await check();
          names.push((await readdir(scene.path('conversations'))).filter((name) => !name.endsWith('.json')));
        }
        expect(ended).toBe(0);
        expect(names.length).toBeGreaterThan(2 * 2); // two folders and two marks, one for each kill
        const halfway = names.filter((seen) => seen.includes('cix+7') !== seen.includes('demo+1'));
        expect(halfway.length).toBeGreaterThan(0);
        expect(names.at(-1)?.sort()).toEqual(['cix+7', 'demo+1', 'plain']);
      }),
  );
});
