import { isRecord } from '../../kernel/index.ts';
import type { FilePart } from '../log/parts.ts';

/** A part of a message's content in the form of chat completions. */
export type OpenAiPart =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'file';
      readonly type: string;
      /** With the bytes (`data:`), or where they are. */
      readonly url: string;
      readonly name?: string;
      /** What the bytes must be. */
      readonly expects?: 'image' | 'audio';
    }
  /** Neither: why it is not taken. */
  | { readonly kind: 'other'; readonly type: string; readonly reason: string };

const TEXTS: readonly unknown[] = ['text', 'input_text', 'output_text'];

export function openAiPart(part: unknown): OpenAiPart {
  if (!isRecord(part)) return other('not a part', 'expected an object');
  const { type, text, image_url: image, file, input_audio: audio } = part;
  if (TEXTS.includes(type) && typeof text === 'string') return { kind: 'text', text };
  if (type === 'refusal' && typeof part.refusal === 'string') return { kind: 'text', text: part.refusal };
  if (type === 'image_url' || type === 'input_image') {
    const url = isRecord(image) ? image.url : image;
    return typeof url === 'string'
      ? { kind: 'file', type, url, expects: 'image' }
      : other(type, 'expected image_url: { url }');
  }
  if (type === 'file' && isRecord(file)) return filePart(file);
  if (type === 'input_audio' && isRecord(audio) && typeof audio.data === 'string')
    return { kind: 'file', type, url: dataUrl(`audio/${audio.format}`, audio.data), expects: 'audio' };
  return other(typeof type === 'string' ? type : 'no type', 'expected text, image_url, file or input_audio');
}

function filePart({ file_data: data, filename, file_id: id }: Readonly<Record<string, unknown>>): OpenAiPart {
  if (typeof data !== 'string') {
    const isById = id !== undefined && id !== null;
    const reason = isById
      ? 'file_id names a file of another service: send its bytes as file_data'
      : 'expected file_data';
    return other('file', reason);
  }
  const url = /^(?:data|https?):/.test(data) ? data : dataUrl('application/octet-stream', data);
  return {
    kind: 'file',
    type: 'file',
    url,
    ...(typeof filename === 'string' && filename !== '' && { name: filename }),
  };
}

function other(type: string, reason: string): OpenAiPart {
  return { kind: 'other', type, reason };
}

export function dataUrl(mediaType: string, base64: string): string {
  return `data:${mediaType};base64,${base64}`;
}

/** The parts of a data URL; null: it is none, or not in base64. */
export function readDataUrl(url: string): { readonly mediaType: string; readonly base64: string } | null {
  const end = url.indexOf(',');
  const head = url.startsWith('data:') && end !== -1 ? url.slice('data:'.length, end).split(';') : [];
  if (head.at(-1)?.trim().toLowerCase() !== 'base64') return null;
  return { mediaType: head[0]?.trim().toLowerCase() || 'text/plain', base64: url.slice(end + 1) };
}

/** What is written. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'file'; readonly file: { readonly filename: string; readonly file_data: string } };

export function contentPart({ name, mediaType }: FilePart, url: string): ContentPart {
  if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  return { type: 'file', file: { filename: name ?? 'file', file_data: url } };
}

/** The data URLs in these messages, each once: what an import may store before it reads them. */
export function dataUrlsIn(messages: readonly unknown[]): string[] {
  const urls = messages.flatMap((message) => {
    const content = isRecord(message) && Array.isArray(message.content) ? message.content : [];
    return content.flatMap((given: unknown) => {
      const part = openAiPart(given);
      return part.kind === 'file' && readDataUrl(part.url) !== null ? [part.url] : [];
    });
  });
  return [...new Set(urls)];
}
