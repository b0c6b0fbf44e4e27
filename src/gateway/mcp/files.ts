import { buffer } from 'node:stream/consumers';
import type { CallToolResult, ReadResourceResult } from '@modelcontextprotocol/server';
import type { FilePart } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { FoundFile, GatewayPort } from '../port.ts';
import { orElse } from '../progress/ask.ts';
import type { Told } from './render.ts';

/**
 * Files in the answers of tools: pictures as they are, everything else as a link to a resource.
 *
 * MCP-FILES-1  The pictures of one answer have at most `MOST_SHOWN` bytes, the first ones. The others are links.
 * MCP-FILES-2  The text of the answer names every file, also one that is gone meanwhile.
 */

export const SCHEME = 'parley://conversations/';
/** Bytes, before they become base64. */
const MOST_SHOWN = 4 * 1024 * 1024;
const SHOWN = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

type Blocks = CallToolResult['content'];

export async function fileBlocks(
  daemon: GatewayPort,
  { files = [], conversation = '' }: Pick<Told, 'files' | 'conversation'>,
): Promise<Blocks> {
  const blocks: Blocks = [];
  let room = MOST_SHOWN;
  for (const file of new Map(files.map((one) => [one.sha256, one])).values()) {
    const { mediaType: mimeType, size } = file;
    const isShown = SHOWN.includes(mimeType) && size <= room;
    const found = isShown ? await orElse(daemon.findFile(conversation, file.sha256), null) : null;
    const bytes = found && (await bytesOf(found));
    if (bytes === null) blocks.push(linkTo(conversation, file));
    else blocks.push({ type: 'image', data: bytes.toString('base64'), mimeType });
    if (bytes !== null) room -= size;
  }
  return blocks;
}

function linkTo(conversation: string, { sha256, name, mediaType: mimeType, size }: FilePart): Blocks[number] {
  const uri = `${SCHEME}${conversation}/blobs/${sha256}`;
  return { type: 'resource_link', uri, name: name ?? sha256.slice(0, 12), mimeType, size };
}

/** Null: it was erased meanwhile. */
async function bytesOf({ read }: Pick<FoundFile, 'read'>): Promise<Buffer | null> {
  const content = await read();
  return content && buffer(content);
}

/** The file of a link. Throws `NOT_FOUND`. */
export async function fileResource(
  daemon: GatewayPort,
  uri: string,
  [conversation, sha256]: readonly [string, string],
): Promise<ReadResourceResult> {
  const found = await daemon.findFile(conversation, sha256);
  const bytes = await bytesOf(found);
  if (bytes === null) throw new ParleyError('NOT_FOUND', 'the file was erased');
  return { contents: [{ uri, mimeType: found.mediaType, blob: bytes.toString('base64') }] };
}
