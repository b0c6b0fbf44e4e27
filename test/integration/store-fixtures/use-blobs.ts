import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import type { ReachStorePoint } from '../../../src/persistence/storage.ts';
import { blobOf, entryWith, putBlob } from '../../contract/blobs.contract.ts';
import { BLOBS } from '../../support/blob-kills.ts';
import { openTestStore } from '../../support/jetstream-store.ts';

/** Uploads files, names them in two conversations and deletes one, until it kills itself at the given pass of a point. */
const [kind, place = '', point = ''] = process.argv.slice(2);
const passes = new Map<string, number>();
const at = (name: string): void => {
  const pass = (passes.get(name) ?? 0) + 1;
  passes.set(name, pass);
  if (`${name}:${pass}` === point) process.kill(process.pid, 'SIGKILL');
};
const reach: ReachStorePoint = at;
const store = kind === 'file' ? await openFileStore(place, { reach }) : await openTestStore(place, { reach });

const { one, own, both, unnamed } = BLOBS;
await store.blobs.put(blobOf(unnamed).facts, async function* () {
  const [half, rest] = [unnamed.slice(0, unnamed.length / 2), unnamed.slice(unnamed.length / 2)];
  yield Buffer.from(half);
  at('half-uploaded');
  yield Buffer.from(rest);
});
for (const text of [one, own, both]) await putBlob(store, text);
at('uploaded');
for (const [conversation, texts] of [
  ['other', [both]],
  ['demo', [one, own, both]],
] as const) {
  const { log } = await store.open(conversation);
  at('before-append');
  await log.append(0, [
    { ...entryWith(0, ...texts.map((text) => blobOf(text).part)), id: `${conversation}-0` },
  ]);
  at('after-append');
  await log.close();
}
at('before-deletion');
await store.delete('demo');
at('deleted');
