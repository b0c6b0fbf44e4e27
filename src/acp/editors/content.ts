import type { ContentBlock } from '@agentclientprotocol/sdk';
import { type SentFile, sentFile } from '../blocks.ts';

/** Content blocks of the protocol as text, and text as blocks. */

export const textBlock = (text: string): ContentBlock => ({ type: 'text', text });

/** UTF-16 units of an attached text that is quoted. A longer one is a file: it would fill each view. */
const LONGEST_QUOTED = 100_000;

/**
 * A prompt as the text of one message and its files. Links stay where they were written; attached texts follow the text, each in a fence,
 * so that nothing in them mentions an agent.
 */
export function postOf(blocks: readonly ContentBlock[]): {
  readonly text: string;
  readonly files: readonly SentFile[];
} {
  const attached: string[] = [];
  const files: SentFile[] = [];
  let text = '';
  let wasText = false;
  for (const block of blocks) {
    const file = sentFile(block);
    if (block.type === 'text') text += `${wasText ? '\n' : ''}${block.text}`;
    else if (block.type === 'resource_link') text += linkTo(block.uri, block.name);
    else if (isQuoted(block)) {
      text += linkTo(block.resource.uri);
      attached.push(`${block.resource.uri}:\n${fenced(block.resource.text)}`);
    } else if (file) files.push(file);
    wasText = block.type === 'text';
  }
  return { text: [text, ...attached].filter((part) => part !== '').join('\n\n'), files };
}

type Quoted = Extract<ContentBlock, { type: 'resource' }> & { readonly resource: { readonly text: string } };

function isQuoted(block: ContentBlock): block is Quoted {
  return (
    block.type === 'resource' && 'text' in block.resource && block.resource.text.length <= LONGEST_QUOTED
  );
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
