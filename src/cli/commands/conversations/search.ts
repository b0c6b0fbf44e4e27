import type { Command } from 'commander';
import { type AnswerOf, ParleyError } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { conversationId, wholeNumber } from '../../options/options.ts';
import { oneLine } from '../../render/entry.ts';
import { type Palette, voiceOf } from '../../render/palette.ts';

interface Options {
  readonly in?: string;
  readonly agent?: string;
  readonly person?: string;
  readonly phase?: string;
  readonly after?: string;
  readonly before?: string;
  readonly limit?: number;
}

export function addSearch(program: Command, act: Act): void {
  program
    .command('search <words...>')
    .description('find messages of all conversations; words in quotation marks occur in this order')
    .option('--in <conversation>', 'only in this conversation', conversationId)
    .option('--agent <slug>', 'only messages of this agent')
    .option('--person <name>', 'only messages of this person: the name or the id')
    .option('--phase <phase>', 'only messages in this phase')
    .option('--after <time>', 'only messages from this time on: 2026-01-31, or with a time of day')
    .option('--before <time>', 'only messages before this time')
    .option('--limit <n>', 'at most this many messages (default: 20)', wholeNumber)
    .action((words: string[], { in: conversation, ...options }: Options, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          if (words.join('').trim() === '')
            throw new ParleyError('USAGE', 'there is no word to search for', {
              hint: 'parley search WORD …',
            });
          const found = await client.request('search', { q: words.join(' '), conversation, ...options });
          if (context.json) context.value(found);
          else if (found.hits.length === 0) context.note('no message has these words');
          else context.line(renderFound(found.hits, context.palette));
          if (found.pending > 0)
            context.note(
              `the index is being built: ${found.pending} conversations are missing; search again soon`,
            );
          if (found.incomplete?.length)
            context.note(
              `the answer may be incomplete: no answer from daemon ${found.incomplete.join(', ')}`,
            );
          return 0;
        }),
      ),
    );
}

type Hit = AnswerOf<'search'>['hits'][number];

/** Found messages: a line that names the place, and the snippet. */
function renderFound(hits: readonly Hit[], palette: Palette): string {
  return hits.map((hit) => `${placeText(hit, palette)}\n  ${snippetText(hit, palette)}`).join('\n');
}

function placeText({ conversation, title, index, at, author, phase }: Hit, palette: Palette): string {
  const name = oneLine(author.name);
  const who = author.kind === 'agent' ? voiceOf(author.id, palette)(name) : palette.bold(name);
  const facts = [at.slice(0, 16).replace('T', ' '), phase, title === null ? null : oneLine(title)];
  return `${conversation} ${index}  ${who}  ${palette.dim(facts.filter((fact) => fact !== null).join(' · '))}`;
}

function snippetText({ snippet, marks }: Hit, palette: Palette): string {
  let [text, end] = ['', 0];
  for (const [from, to] of marks) {
    text += oneLine(snippet.slice(end, from)) + palette.bold(oneLine(snippet.slice(from, to)));
    end = to;
  }
  return text + oneLine(snippet.slice(end));
}
