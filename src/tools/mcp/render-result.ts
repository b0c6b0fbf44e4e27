import { z } from 'zod';

/**
 * What a tool gave, as text that a model can use.
 *
 * R1 Nothing is dropped in silence: what cannot be shown as text is named with its kind and size.
 * R2 Structured content stands in for words, and is left out where there are some: servers give the same twice.
 */

/** Read loosely: one block that is not as it should be must not cost the others. */
export const toolResult = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
});
export type ToolResult = z.infer<typeof toolResult>;

const resource = z.object({
  uri: z.string(),
  mimeType: z.string().optional(),
  text: z.string().optional(),
  blob: z.string().optional(),
});

const block = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.enum(['image', 'audio']), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal('resource'), resource }),
  z.object({
    type: z.literal('resource_link'),
    uri: z.string(),
    name: z.string(),
    mimeType: z.string().optional(),
    description: z.string().optional(),
    size: z.number().optional(),
  }),
]);
type Block = z.infer<typeof block>;

interface Rendered {
  readonly text: string;
  readonly isWords: boolean;
}

export function renderResult(result: ToolResult): string {
  const blocks = result.content.map(renderBlock);
  const hasWords = blocks.some(({ text, isWords }) => isWords && text !== '');
  const { structuredContent } = result;
  const parts = blocks.map(({ text }) => text);
  // R2
  if (!hasWords && structuredContent !== undefined && structuredContent !== null)
    parts.push(JSON.stringify(structuredContent));
  return parts.filter((text) => text !== '').join('\n');
}

function renderBlock(given: unknown): Rendered {
  const parsed = block.safeParse(given);
  return parsed.success
    ? renderKnown(parsed.data)
    : { text: `[${kindOf(given)}: not shown]`, isWords: false };
}

function renderKnown(known: Block): Rendered {
  switch (known.type) {
    case 'text':
      return { text: known.text, isWords: true };
    case 'image':
    case 'audio':
      return { text: `[${known.mimeType}, ${sizeOfBase64(known.data)}: not shown]`, isWords: false };
    case 'resource':
      return renderResource(known.resource);
    case 'resource_link': {
      const facts = [known.mimeType, known.size === undefined ? undefined : showBytes(known.size)];
      const about = [known.uri, ...facts.filter((fact) => fact !== undefined)].join(', ');
      const words = known.description === undefined ? '' : `: ${known.description}`;
      return { text: `[link to ${known.name} (${about})${words}]`, isWords: false };
    }
  }
}

function renderResource({ uri, mimeType, text, blob }: z.infer<typeof resource>): Rendered {
  if (text !== undefined) return { text: `[${uri}]\n${text}`, isWords: true };
  const kind = mimeType ?? 'application/octet-stream';
  return { text: `[${uri}, ${kind}, ${sizeOfBase64(blob ?? '')}: not shown]`, isWords: false };
}

/** R1 */
function kindOf(given: unknown): string {
  const kind = typeof given === 'object' && given !== null && 'type' in given ? given.type : undefined;
  return typeof kind === 'string' ? `content of type ${kind.slice(0, 64)}` : 'content of no type';
}

function sizeOfBase64(data: string): string {
  return showBytes(Buffer.byteLength(data, 'base64'));
}

function showBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 999_500 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
