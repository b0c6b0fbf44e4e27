import { describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/daemon/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { openProject } from '../support/project.ts';

/** BLOBS-1 to BLOBS-5, with daemons: at which step of the work one is killed, and how often it got there. */
const CRASHES: readonly (readonly [step: 'upload' | 'post' | 'deletion', point: CrashPoint])[] = [
  ['upload', 'blob-stored'],
  ['post', 'blob-claimed'],
  ['post', 'before-append'],
  ['post', 'after-append'],
  ['deletion', 'deletion-noted'],
  ['deletion', 'log-removed'],
  ['deletion', 'blob-erasing'],
  ['deletion', 'blob-erased'],
  ['deletion', 'conversation-removed'],
];
const BYTES = new TextEncoder().encode('the content of a file');

describe.each(['file', 'jetstream'])('daemons on the %s store', (store) => {
  it.each(CRASHES)(
    'a daemon that is killed during the %s, at %s, keeps the file or erases it',
    { timeout: 60_000 },
    async (step, point) => {
      const env: Record<string, string> = { PARLEY_CRASH_POINTS: point };
      const project = untilTestEnds(await openProject({ nats: {}, env, model: () => ({ text: 'seen' }) }));
      const up = (...args: string[]) => project.up('--store', store, '--http', '127.0.0.1:0', ...args);
      const upload = async (http: unknown) => {
        const made = await fetch(`${http}/api/blobs?name=plan.txt`, { method: 'PUT', body: BYTES });
        return (await made.json()) as { readonly sha256: string };
      };
      let daemon = await up(...(step === 'upload' ? ['--allow-crash-points'] : []));
      const crash = async (
        work: (client: Awaited<ReturnType<typeof project.connect>>) => Promise<unknown>,
      ) => {
        if (step !== 'upload') {
          expect(await daemon.stop()).toBe(0);
          daemon = await up('--allow-crash-points');
        }
        const ended = work(await project.connect()).catch(() => undefined);
        expect(await daemon.exited).toBeNull();
        await ended;
        delete env.PARLEY_CRASH_POINTS;
        daemon = await up();
      };
      if (step === 'upload') await crash(() => upload(daemon.ready.http));
      const file = await upload(daemon.ready.http);
      const post = (client: Awaited<ReturnType<typeof project.connect>>) =>
        client.post({
          conversation: 'demo',
          publisher: 'alice',
          id: 'p1',
          content: '',
          parts: [{ type: 'file', ...file }],
        });
      if (step === 'post') await crash(post);
      const client = await project.connect();
      await post(client);
      await followUntil(client, 'demo', turnsEnded(1));
      const download = async () => fetch(`${daemon.ready.http}/api/conversations/demo/blobs/${file.sha256}`);
      expect(new Uint8Array(await (await download()).arrayBuffer())).toEqual(BYTES);
      if (step === 'deletion') await crash((made) => made.request('delete', { conversation: 'demo' }));
      await (await project.connect()).request('delete', { conversation: 'demo' }).catch(() => undefined);
      expect((await download()).status).toBe(404);
      // The claim of the killed daemon is as good as that of an append under way: an hour later, a sweep releases it (BLOBS-5).
      const isErased = store === 'file' || point !== 'blob-claimed';
      const again = await (await project.connect())
        .post({ conversation: 'new', publisher: 'alice', content: '', parts: [{ type: 'file', ...file }] })
        .catch((error: { code?: string }) => error.code);
      expect(again === 'MISSING_BLOB').toBe(isErased);
      expect(await daemon.stop()).toBe(0);
    },
  );
});
