import { createHash } from 'node:crypto';
import type { BlobFacts } from '../../persistence/index.ts';
import { BEGINNING_BYTES, findType } from './media-type.ts';

/** What is known of a file from its bytes, which come in pieces. */
export class Measure {
  size = 0;
  readonly #hash = createHash('sha256');
  readonly #beginning: Uint8Array[] = [];
  /** Null: it is no text. */
  #text: InstanceType<typeof TextDecoder> | null = new TextDecoder('utf-8', { fatal: true });

  add(bytes: Uint8Array): void {
    if (this.size < BEGINNING_BYTES) this.#beginning.push(bytes.slice(0, BEGINNING_BYTES - this.size));
    this.#hash.update(bytes);
    this.size += bytes.length;
    try {
      if (bytes.includes(0)) this.#text = null;
      this.#text?.decode(bytes, { stream: true });
    } catch {
      this.#text = null;
    }
  }

  /** Once, at the end. */
  sha256(): string {
    return this.#hash.digest('hex');
  }

  async facts(
    sha256: string,
    named: { readonly name?: string | undefined; readonly declared?: string | undefined },
  ): Promise<BlobFacts> {
    const beginning = Buffer.concat(this.#beginning);
    return { sha256, size: this.size, ...(await findType({ beginning, isText: this.#isText(), ...named })) };
  }

  #isText(): boolean {
    try {
      this.#text?.decode();
      return this.#text !== null;
    } catch {
      return false; // it ends within a character
    }
  }
}

export async function measured(
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  named: { readonly name?: string | undefined; readonly declared?: string | undefined } = {},
): Promise<BlobFacts> {
  const measure = new Measure();
  for await (const bytes of content) measure.add(bytes);
  return measure.facts(measure.sha256(), named);
}
