import { createHash } from 'node:crypto';
import type { FilePart } from '../../src/conversation/index.ts';

/** Files for tests, by media type: the first bytes of their kind, then a number. */
const STARTS: Readonly<Record<string, string>> = {
  'image/png': '\x89PNG\r\n\x1a\n',
  'image/jpeg': '\xff\xd8\xff\xe0',
  'image/gif': 'GIF89a',
  'image/webp': 'RIFF\x08\x00\x00\x00WEBP',
  'application/pdf': '%PDF-1.7\n',
  'audio/wav': 'RIFF\x08\x00\x00\x00WAVE',
  'audio/mpeg': 'ID3\x04',
  'text/plain': 'text ',
  'image/svg+xml': '<svg>',
};
export const FILE_TYPES = Object.keys(STARTS);

export interface SampleFile {
  readonly part: FilePart;
  readonly bytes: Buffer;
}

export function sampleFile(mediaType: string, n = 0, more: Partial<FilePart> = {}): SampleFile {
  const bytes = Buffer.concat([
    Buffer.from(STARTS[mediaType] ?? '', 'latin1'),
    Buffer.from(`${n}`.padEnd(more.size ?? 0, '.')),
  ]);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const name = `${n}.${mediaType.replace(/.*\W/, '')}`;
  return { bytes, part: { type: 'file', sha256, name, mediaType, ...more, size: bytes.length } };
}

/** Base64 by hash, as the assembler is given it. */
export function contentsOf(...files: readonly SampleFile[]): Map<string, Uint8Array> {
  return new Map(files.map(({ part, bytes }) => [part.sha256, Buffer.from(bytes.toString('base64'))]));
}

/** A file in a request. */
export interface SentFile {
  readonly role: string;
  readonly mediaType: string;
  readonly data: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** The files in a body of any dialect, in order; each block that is neither a text nor one of them is a fault. */
export function filesIn(body: unknown): { readonly files: SentFile[]; readonly faults: string[] } {
  const { messages, input } = body as { messages?: readonly Fields[]; input?: readonly Fields[] };
  const files: SentFile[] = [];
  const faults: string[] = [];
  for (const { role, content } of messages ?? input ?? []) {
    for (const block of Array.isArray(content) ? (content as Fields[]) : []) {
      const file = fileIn(block);
      if (file) files.push({ role: String(role), ...file });
      else if (!TEXTS.has(block.type)) faults.push(`a block ${JSON.stringify(block).slice(0, 80)}`);
    }
  }
  return { files, faults: [...faults, ...files.flatMap(faultsOf)] };
}

const TEXTS = new Set<unknown>([
  'text',
  'input_text',
  'output_text',
  'refusal',
  'thinking',
  'tool_use',
  'reasoning_text',
]);
for (const type of ['tool_result', 'redacted_thinking']) TEXTS.add(type);

function fileIn(block: Fields): Omit<SentFile, 'role'> | null {
  const inner = (name: string) => (block[name] ?? {}) as Fields;
  switch (block.type) {
    case 'image_url':
      return fromUrl(inner('image_url').url);
    case 'input_image':
      return fromUrl(block.image_url);
    case 'file':
      return fromUrl(inner('file').file_data);
    case 'input_file':
      return fromUrl(block.file_data);
    case 'input_audio': {
      const { data, format } = inner('input_audio');
      return { mediaType: format === 'mp3' ? 'audio/mpeg' : `audio/${format}`, data: String(data) };
    }
    case 'image':
    case 'document': {
      const { type, media_type: mediaType, data } = inner('source');
      return type === 'base64' ? { mediaType: String(mediaType), data: String(data) } : null;
    }
    default:
      return null;
  }
}

function fromUrl(url: unknown): Omit<SentFile, 'role'> | null {
  const [, mediaType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(String(url)) ?? [];
  return mediaType === undefined || data === undefined ? null : { mediaType, data };
}

/** What every provider refuses. */
function faultsOf({ role, mediaType, data }: SentFile): string[] {
  const bytes = Buffer.from(data, 'base64');
  const start = STARTS[mediaType];
  return [
    ...(role === 'user' ? [] : [`a file in a message of ${role}`]),
    ...(bytes.length > 0 && bytes.toString('base64') === data ? [] : ['no base64']),
    ...(start !== undefined && bytes.toString('latin1').startsWith(start) ? [] : [`no ${mediaType}`]),
    ...(['text/plain', 'image/svg+xml'].includes(mediaType) ? [`a file of ${mediaType}`] : []),
  ];
}

/** Why every provider refuses the files of a body; empty: none is refused. */
export function fileFaults(body: unknown): string[] {
  const { files, faults } = filesIn(body);
  return files.length > MOST_FILES ? [...faults, `${files.length} files`] : faults;
}

/** Anthropic takes more only if they are small. */
const MOST_FILES = 20;

export function hashOf(data: string): string {
  return createHash('sha256').update(Buffer.from(data, 'base64')).digest('hex');
}
