import { createHash } from 'node:crypto';
import { fileTypeFromBuffer } from 'file-type';
import { imageSize } from 'image-size';
import { UNKNOWN_TYPE } from '../../conversation/index.ts';
import type { BlobFacts } from '../../persistence/index.ts';

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

/** Bytes of the beginning that are enough: all that is known of a file is found in them. */
const BEGINNING_BYTES = 512 * 1_024;

/** Text that no program runs, by the end of its name. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  json: 'application/json',
  markdown: 'text/markdown',
  md: 'text/markdown',
};
/** Formats that are text, too (MEDIA-TYPE-2). */
const MARKUP = new Set(['application/xml']);
const MEASURED = new Set(['image/gif', 'image/jpeg', 'image/png', 'image/webp']);
/** Orientations of EXIF: from this one on the picture is shown turned by a quarter. */
const FIRST_TURNED = 5;

export interface FoundType {
  readonly mediaType: string;
  /** Pixels, as it is shown. */
  readonly width?: number;
  readonly height?: number;
}

export interface Content {
  readonly beginning: Uint8Array;
  /** All of it is UTF-8 without NUL. */
  readonly isText: boolean;
  readonly name?: string | undefined;
  /** As the sender says. Used for text alone, where it means no more than a name. */
  readonly declared?: string | undefined;
}

/**
 * What bytes are, by their content. Neither the name nor the sender makes them a picture.
 *
 * MEDIA-TYPE-1  Only the beginning is read, and of an archive at most a mebibyte of one entry is expanded: what a file
 *               expands to costs nothing.
 * MEDIA-TYPE-2  Text is text, also if a browser would run it: HTML and SVG are `text/plain`.
 */
export async function findType({ beginning, isText, name = '', declared }: Content): Promise<FoundType> {
  const found = await fileTypeFromBuffer(beginning).catch(() => undefined); // a damaged file has no type
  if (found && !(isText && MARKUP.has(found.mime)))
    return { mediaType: found.mime, ...(MEASURED.has(found.mime) && measure(beginning)) };
  if (!isText) return { mediaType: UNKNOWN_TYPE };
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
  const harmless = Object.values(TEXT_TYPES).find((type) => type === declared?.split(';')[0]);
  return { mediaType: (Object.hasOwn(TEXT_TYPES, ending) && TEXT_TYPES[ending]) || harmless || 'text/plain' };
}

/** Nothing for a damaged picture, or one whose size is not in its beginning. */
function measure(beginning: Uint8Array): Omit<FoundType, 'mediaType'> {
  try {
    const { width, height, orientation = 1 } = imageSize(beginning);
    if (!(width > 0 && height > 0)) return {};
    return orientation < FIRST_TURNED ? { width, height } : { width: height, height: width };
  } catch {
    return {};
  }
}
