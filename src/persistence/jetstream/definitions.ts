import type { DefinitionTexts } from '../port.ts';
import { requireTextHash, TEXT_HASH } from '../rules.ts';
import { HEADER_RESERVE } from './append-message.ts';
import type { Broker } from './broker.ts';
import type { Documents } from './documents.ts';

/**
 * Texts of definitions: the document `definition.<hash>` of the state bucket.
 *
 * JETSTREAM-DEFINITIONS-1 A text that is too large for a message is stored in pieces, `definition-piece.<hash>.<n>`. They are
 *                         durable before the document that gives their number.
 * JETSTREAM-DEFINITIONS-2 A text that is stored is not written again.
 */
export interface StreamDefinitions extends DefinitionTexts {
  /** The hashes of the stored texts, in order. */
  list(): Promise<string[]>;
}

type Stored = { readonly text: string } | { readonly pieces: number };

export function createDefinitions(broker: Broker, documents: Documents): StreamDefinitions {
  async function get(hash: string): Promise<string | null> {
    requireTextHash(hash);
    const stored = (await documents.get(keyOf(hash))) as Stored | null;
    if (stored === null || 'text' in stored) return stored?.text ?? null;
    const numbers = Array.from({ length: stored.pieces }, (_, at) => at);
    const pieces = await Promise.all(numbers.map((at) => documents.get(pieceOf(hash, at))));
    return pieces.includes(null) ? null : pieces.join('');
  }

  async function put(hash: string, text: string): Promise<void> {
    if ((await get(hash)) === text) return; // JETSTREAM-DEFINITIONS-2
    const maxBytes = (broker.connection.info?.max_payload ?? 1024 ** 2) - HEADER_RESERVE;
    if (Buffer.byteLength(JSON.stringify({ text })) <= maxBytes) return documents.put(keyOf(hash), { text });
    const pieces = piecesOf(text, maxBytes);
    await Promise.all(pieces.map((piece, at) => documents.put(pieceOf(hash, at), piece)));
    await documents.put(keyOf(hash), { pieces: pieces.length }); // JETSTREAM-DEFINITIONS-1
  }

  return {
    get,
    put: async (texts) => void (await Promise.all([...texts].map(([hash, text]) => put(hash, text)))),
    list: async () => (await documents.keys('definition.')).filter((hash) => TEXT_HASH.test(hash)).sort(),
  };
}

/** As JSON strings, no code unit takes more than 6 bytes. */
function piecesOf(text: string, maxBytes: number): string[] {
  const length = Math.max(1, Math.floor((maxBytes - 2) / 6));
  const pieces: string[] = [];
  for (let from = 0; from < text.length; from += length) pieces.push(text.slice(from, from + length));
  return pieces;
}

function keyOf(hash: string): string {
  return `definition.${hash}`;
}

function pieceOf(hash: string, at: number): string {
  return `definition-piece.${hash}.${at}`;
}
