import type { ContentBlock } from '@agentclientprotocol/sdk';

/** Content blocks of the protocol as text, and text as blocks. */

export const textBlock = (text: string): ContentBlock => ({ type: 'text', text });

/**
 * A prompt as the text of one message. Links stay where they were written; attached texts follow it, each in a fence, so that
 * nothing in them mentions an agent. What has no text is named in its place.
 */
export function textOf(blocks: readonly ContentBlock[]): string {
  const attached: string[] = [];
  let text = '';
  let wasText = false;
  for (const block of blocks) {
    if (block.type === 'text') text += `${wasText ? '\n' : ''}${block.text}`;
    else if (block.type === 'resource' && 'text' in block.resource) {
      text += linkTo(block.resource.uri);
      attached.push(`${block.resource.uri}:\n${fenced(block.resource.text)}`);
    } else text += nameOf(block);
    wasText = block.type === 'text';
  }
  return [text, ...attached].join('\n\n');
}

function nameOf(block: Exclude<ContentBlock, { type: 'text' }>): string {
  if (block.type === 'resource_link') return linkTo(block.uri, block.name);
  if (block.type === 'resource')
    return leftOut(`file ${block.resource.uri}`, block.resource.mimeType ?? undefined);
  return leftOut(block.type, block.mimeType);
}

function leftOut(what: string, mediaType?: string): string {
  return `[left out: ${what}${mediaType === undefined ? '' : ` (${mediaType})`}]`;
}

function linkTo(uri: string, name: string = uri.replace(/.*\/(?=.)/, '')): string {
  return `[${name.replaceAll(/[[\]\n]/g, ' ')}](${uri})`;
}

/** The fence is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}
