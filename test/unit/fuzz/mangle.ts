import fc from 'fast-check';

/**
 * What becomes of good bytes on a bad day: cut, flipped, repeated, mixed with others. Each change is a function, so
 * that fast-check can take away those that a failure does not need.
 */
type Change = (bytes: Buffer) => Buffer;

/** What parsers stumble over. */
const STUMBLING = [
  '\0',
  '\uFEFF',
  '\r',
  '\n',
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  '- ',
  '---\n',
  '&a ',
  '*a',
  '!!js ',
  '\ud800',
];
const MORE = [
  'NaN',
  '1e999',
  '-0',
  'null',
  '__proto__: 1\n',
  '"sum":"',
  '"left":9',
  'data: ',
  '[DONE]',
  '\xff',
  '💥',
];

const place = fc.double({ min: 0, max: 1, noNaN: true });
const at = (bytes: Buffer, where: number) => Math.floor(where * bytes.length);

const flip = fc.tuple(place, fc.integer({ min: 1, max: 255 })).map(
  ([where, mask]): Change =>
    (bytes) => {
      const changed = Buffer.from(bytes);
      const index = Math.min(at(bytes, where), bytes.length - 1);
      if (index >= 0) changed[index] = (changed[index] ?? 0) ^ mask;
      return changed;
    },
);
const cut = place.map(
  (where): Change =>
    (bytes) =>
      bytes.subarray(0, at(bytes, where)),
);
const drop = fc.tuple(place, place).map(
  ([from, to]): Change =>
    (bytes) => {
      const [start, end] = [at(bytes, Math.min(from, to)), at(bytes, Math.max(from, to))];
      return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
    },
);
const repeat = fc.tuple(place, place, place).map(
  ([from, to, where]): Change =>
    (bytes) => {
      const slice = bytes.subarray(at(bytes, Math.min(from, to)), at(bytes, Math.max(from, to)));
      return insert(bytes, at(bytes, where), slice);
    },
);
const stumble = fc.tuple(fc.constantFrom(...STUMBLING, ...MORE), place).map(
  ([text, where]): Change =>
    (bytes) =>
      insert(bytes, at(bytes, where), Buffer.from(text)),
);

function insert(bytes: Buffer, index: number, more: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, index), more, bytes.subarray(index)]);
}

/** One of these, changed a few times. */
export function mangled(seeds: readonly (Buffer | string)[]): fc.Arbitrary<Buffer> {
  const changes = fc.array<Change>(fc.oneof(flip, cut, drop, repeat, stumble), {
    minLength: 1,
    maxLength: 4,
  });
  return fc
    .tuple(fc.constantFrom(...seeds), changes)
    .map(([seed, list]) =>
      list.reduce<Buffer>((bytes, change) => change(bytes), Buffer.from(seed as string)),
    );
}
