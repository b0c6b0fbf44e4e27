import { createHash } from 'node:crypto';
import type { FakeHandler } from '../support/fake-provider.ts';
import words from './clients/words.json' with { type: 'json' };

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
  readonly file?: { readonly file_data: string };
}

/** Answers by the newest text of a person, as `clients/expected.mjs` expects. */
export const model: FakeHandler = ({ json }) => {
  const body = json as {
    readonly messages: readonly {
      readonly role: string;
      readonly content: string | readonly Part[] | null;
    }[];
    readonly tools?: readonly { readonly function: { readonly name: string } }[];
  };
  const parts = (content: string | readonly Part[] | null): readonly Part[] =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const textOf = (content: string | readonly Part[] | null) =>
    parts(content)
      .map(({ text }) => text ?? '')
      .join(' ');
  const last = body.messages.at(-1);
  if (last?.role === 'tool') return { text: `The tool said: ${textOf(last.content)}` };
  const asked = textOf(last?.content ?? null);
  const all = body.messages.map(({ content }) => textOf(content)).join('\n');
  if (asked.includes(words.typed)) return { text: '{"city":"Oslo","degrees":4}' };
  if (asked.includes(words.tool) || asked.includes(words.textAndTool)) {
    const tool = body.tools?.find(({ function: { name } }) => name.endsWith('weather'));
    return tool
      ? {
          ...(asked.includes(words.textAndTool) && { text: words.before }),
          toolCalls: [{ name: tool.function.name, arguments: '{"city":"Oslo"}' }],
        }
      : { text: 'There is no tool.' };
  }
  if (asked.includes(words.see)) {
    const urls = parts(last?.content ?? null).flatMap(
      (one) => one.image_url?.url ?? one.file?.file_data ?? [],
    );
    const seen = urls.map((url) =>
      createHash('sha256').update(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')),
    );
    return {
      text: `I see ${seen.map((hash) => hash.digest('hex').slice(0, 8)).join(' and ') || 'nothing'}.`,
    };
  }
  if (asked.includes(words.slow)) return { text: 'Once upon a time. '.repeat(40), delayMs: 100 };
  if (asked.includes(words.fail)) return { status: 400, body: { error: { message: 'the model refuses' } } };
  if (asked.includes(words.recall)) {
    const said = all.match(/My name is \w+\./g) ?? [];
    return { text: `I heard: ${[...new Set(said)].join(' ')}` };
  }
  return { text: words.helloAnswer };
};
