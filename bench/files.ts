import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WireForm } from '../src/agents/index.ts';
import { type Entry, type FilePart, partsOf } from '../src/conversation/index.ts';
import { replaceFile } from '../src/kernel/index.ts';
import type { ConversationStore } from '../src/persistence/index.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { collectGarbage } from './support/garbage.ts';
import { ENTRIES_OF_A_TURN } from './support/history.ts';
import { interleave, median, ratioOf, report, rounded, timed } from './support/report.ts';
import { openWorkplace } from './support/turns.ts';

/**
 * What 1,000 pictures of 1 MB in one conversation cost a turn, against the same conversation without them: from the post to the
 * durable end of the turn, with a model that answers at once and is not sent the bytes. The request is made whole, with its hash.
 *
 * - `files-blind`: the model takes no pictures; each is a line.
 * - `files-shown`: chat completions with the newest pictures (10 to 20) in the request; the post has none.
 * - `files-posted`: the same, and each post has a new picture, which is claimed, read, verified and encoded once. `floorRatio` compares
 *   with a turn without, and beside it a program that only reads the same file, hashes and encodes it, hashes the result, and durably
 *   replaces one small file.
 * - `files-cached`: Anthropic's form, whose cache points move: the whole body is hashed for each request.
 *
 * `memoryMB`: what the process keeps more after the turns with pictures than after those without. The first turn, which drops the
 * old pictures, is not in the ratios.
 *
 *     npx tsx bench/files.ts [directory] [pictures] [rounds]
 */

const [base = tmpdir(), pictureCount = '1000', roundCount = '40'] = process.argv.slice(2);
const pictures = Number(pictureCount);
const rounds = Number(roundCount);
const BYTES = 1_000_000;
const WARM_UP = 3;

async function storePicture(store: ConversationStore): Promise<FilePart> {
  const bytes = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(BYTES - 8)]);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const facts = { sha256, mediaType: 'image/png', size: BYTES, width: 1_000, height: 1_000 };
  await store.blobs.put(facts, async function* () {
    yield bytes;
  });
  return { type: 'file', name: 'picture.png', ...facts };
}

/** What a new picture costs any program. */
async function floorOf({ sha256 }: FilePart): Promise<void> {
  const bytes = await readFile(join(directory, 'blobs', sha256.slice(0, 2), sha256));
  createHash('sha256').update(bytes).digest('hex');
  createHash('sha256').update(bytes.toString('base64')).digest('hex');
  await replaceFile(join(directory, 'floor.json'), sha256);
}

function memory(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const FORMS: Readonly<Record<string, Partial<WireForm>>> = {
  blind: {},
  shown: { accepts: ['image'] },
  posted: { accepts: ['image'] },
  cached: { accepts: ['image'], dialect: 'anthropic', cacheTtl: '5m', boundTo: 'anthropic h m' },
};

async function measure(store: ConversationStore, kind: string, files: readonly FilePart[]): Promise<void> {
  const place = openWorkplace(store, FORMS[kind]);
  const length = files.length * ENTRIES_OF_A_TURN;
  let at = 0;
  const withPicture = (entry: Entry): Entry => {
    const isPost = entry.type === 'message' && entry.author.kind === 'person';
    return isPost ? { ...entry, parts: partsOf(entry.content ?? '', files.slice(at, ++at)) } : entry;
  };
  const plain = await place.open(`plain-${kind}`, length);
  const withPictures = await place.open(`pictures-${kind}`, length, withPicture);
  await place.turn(plain);
  const before = memory();
  const firstMs = await timed(() => place.turn(withPictures));
  const posted: FilePart[] = [];
  for (let n = 0; kind === 'posted' && n < rounds + WARM_UP; n++) posted.push(await storePicture(store));
  const measured = await interleave(
    {
      plain: () => timed(() => place.turn(plain)),
      ...(kind === 'posted' && {
        floor: (round: number) =>
          timed(async () => {
            await place.turn(plain);
            await floorOf(posted[round] as FilePart);
          }),
      }),
      pictures: (round) => timed(() => place.turn(withPictures, ...posted.slice(round, round + 1))),
    },
    rounds,
    WARM_UP,
  );
  report(`files-${kind}`, {
    pictures,
    ratio: ratioOf(measured.pictures, measured.plain),
    wanted: '<= 1.3',
    ...(measured.floor && {
      floorRatio: ratioOf(measured.pictures, measured.floor),
      floorMs: rounded(median(measured.floor), 2),
    }),
    ms: rounded(median(measured.pictures), 2),
    plainMs: rounded(median(measured.plain), 2),
    firstMs: rounded(firstMs, 0),
    memoryMB: rounded((memory() - before) / 1_000_000, 0),
    peakRssMB: rounded(process.resourceUsage().maxRSS / 1_000, 0),
  });
  await Promise.all([plain.close(), withPictures.close()]);
}

const directory = await mkdtemp(join(base, 'parley-bench-files-'));
try {
  const store = await openFileStore(directory);
  const files: FilePart[] = [];
  while (files.length < pictures) files.push(await storePicture(store));
  for (const kind of Object.keys(FORMS)) await measure(store, kind, files);
  await store.close();
} finally {
  await rm(directory, { recursive: true, force: true });
}
