import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { entry } from './samples.ts';

/** The contract of every `DefinitionTexts`. */
export function describeDefinitions(current: () => ConversationStore, reopen: () => Promise<void>): void {
  describe('definitions', () => {
    const named = (...texts: string[]) =>
      new Map(texts.map((text) => [createHash('sha256').update(text).digest('hex'), text]));

    it('texts are kept under their hash, also after a reopening and a deletion', async () => {
      const texts = named('"one"', '"two: \u{1F600} é"', `"${'long '.repeat(400_000)}"`);
      await current().definitions.put(texts);
      const { log } = await current().open('demo');
      await log.append(0, [entry(0)]);
      await log.close();
      await current().delete('demo');
      for (const round of ['now', 'after a reopening']) {
        for (const [hash, text] of texts)
          expect((await current().definitions.get(hash)) === text, round).toBe(true);
        await reopen();
      }
      expect(await current().definitions.get('0'.repeat(64))).toBeNull();
    });

    it('the same texts can be stored again, and at the same time', async () => {
      const texts = named('"one"', '"two"');
      await Promise.all([
        current().definitions.put(texts),
        current().definitions.put(named('"two"', '"three"')),
        current().definitions.put(texts),
      ]);
      for (const [hash, text] of named('"one"', '"two"', '"three"'))
        expect(await current().definitions.get(hash)).toBe(text);
    });

    it('a name that is not a hash is refused', async () => {
      const refused = { code: 'DEFINITION_HASH_INVALID' };
      await expect(current().definitions.get('../LOCK')).rejects.toMatchObject(refused);
      await expect(current().definitions.put(new Map([['a.b', '"x"']]))).rejects.toMatchObject(refused);
    });
  });
}
