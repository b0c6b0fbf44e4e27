import type { Command } from 'commander';
import {
  type DeadLetterDetail,
  type DeadLetterSummary,
  type ParleyClient,
  ParleyError,
  type RequestOf,
} from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { ask, type Connected } from '../../find-daemon.ts';
import { conversationId, publisherName, wholeNumber } from '../../options/options.ts';
import {
  dateTime,
  firstLine,
  indent,
  type Palette,
  plural,
  printable,
  renderFailure,
  renderTable,
} from '../../render/text.ts';

/** Lists, shows, repeats and discards refused posts. */

type Filters = Omit<RequestOf<'dead'>, 'before' | 'limit'>;

const SHOWN = 100;

export function addDead(program: Command, act: Act): void {
  const dead = program
    .command('dead')
    .description('list, show, retry and discard refused posts (dead letters)');
  const listed = withFilters(dead.command('ls').description('list them, newest first')).option(
    '--limit <count>',
    'at most this many',
    wholeNumber,
    SHOWN,
  );
  ask(act, listed, list);
  const shown = dead
    .command('show')
    .description('print one: the reason of the refusal, and the post')
    .argument('<number>', 'as `dead ls` lists it', wholeNumber);
  ask(act, shown, async (context, sequence: number) => {
    const letter = await context.request('dead-letter', { sequence });
    context.result(letter, () => deadLetterLines(letter, context.palette).join('\n'));
  });
  const discarded = dead
    .command('discard')
    .description('remove them for good; they are not posted') // so it asks for numbers, and takes no filters
    .argument('<numbers...>', 'as `dead ls` lists them', wholeNumbers);
  ask(act, discarded, async (context, sequences: number[]) => {
    for (const sequence of sequences) {
      await context.request('dead-discard', { sequence });
      context.result({ sequence, discarded: true }, () => `${sequence}: discarded`);
    }
  });
  const retried = dead
    .command('retry')
    .description('post them again as their publishers, oldest first')
    .argument('[numbers...]', 'as `dead ls` lists them', wholeNumbers)
    .option('--all', 'all that match the filters');
  ask(act, withFilters(retried), retry);
}

function withFilters(command: Command): Command {
  return command
    .option('--publisher <name>', 'only from this one', publisherName)
    .option('--conversation <id>', 'only for this one', conversationId)
    .option('--code <code>', 'only with this error code');
}

async function list(
  context: Connected,
  { limit, ...filters }: Filters & { readonly limit: number },
): Promise<void> {
  const { letters, more } = await collect(context.client, filters, limit);
  if (context.json) for (const letter of letters) context.value(letter);
  else if (letters.length === 0) context.line('no dead letters');
  else context.line(deadLetterTable(letters, context.palette.dim));
  if (more) context.note(`older ones are not listed: --limit ${limit * 10} lists more`);
}

async function collect(
  client: ParleyClient,
  filters: Filters,
  limit: number,
): Promise<{ letters: DeadLetterSummary[]; more: boolean }> {
  const letters: DeadLetterSummary[] = [];
  let before: number | undefined;
  for (;;) {
    // One more than requested, to know whether there are more.
    const request = { ...filters, ...(before && { before }), limit: limit + 1 - letters.length };
    const page = await client.request('dead', request);
    letters.push(...page.letters);
    if (letters.length > limit) return { letters: letters.slice(0, limit), more: true };
    if (page.next === null) return { letters, more: false };
    before = page.next;
  }
}

type Wanted = Filters & { readonly all?: true };

async function retry(context: Connected, numbers: readonly number[], wanted: Wanted): Promise<number> {
  const sequences = await chosen(context.client, numbers, wanted);
  let refused = 0;
  for (const sequence of sequences) {
    try {
      const answer = await context.request('dead-retry', { sequence });
      const { conversation, index, duplicate } = answer;
      const text = `${sequence}: ${duplicate ? 'was' : 'is now'} entry ${index} of ${conversation}`;
      context.result({ sequence, ...answer }, () => text);
    } catch (error) {
      if (!(error instanceof ParleyError) || sequences.length === 1) throw error;
      refused += 1;
      const failure = context.failure(error);
      if (context.json) context.value({ sequence, error: failure });
      else context.note(`${sequence}: ${renderFailure(failure)}`);
    }
  }
  if (!context.json)
    context.note(`${plural(sequences.length - refused, 'post')} accepted, ${refused} refused`);
  return refused === 0 ? 0 : 1;
}

/** The selected letters, in the order of their posts. */
async function chosen(
  client: ParleyClient,
  numbers: readonly number[],
  { all, ...filters }: Wanted,
): Promise<number[]> {
  if ((all === true) === numbers.length > 0) {
    throw new ParleyError('USAGE', 'name the dead letters to retry, or give --all', {
      hint: '`parley dead retry 12 13`   or   `parley dead retry --all --conversation demo`',
    });
  }
  if (!all && Object.values(filters).some((value) => value !== undefined)) {
    throw new ParleyError('USAGE', 'filters require --all', {
      hint: '`parley dead retry --all --publisher ci`',
    });
  }
  if (!all) return [...numbers].sort((a, b) => a - b);
  const { letters } = await collect(client, filters, Number.MAX_SAFE_INTEGER - 1);
  return inOrderOfPosting(letters).map(({ sequence }) => sequence);
}

/** By ingress sequence if all posts are of one stream, because letters are written concurrently. */
function inOrderOfPosting(letters: readonly DeadLetterSummary[]): DeadLetterSummary[] {
  const streams = new Set(letters.map(({ ingress }) => ingress?.stream));
  const isOne = streams.size === 1 && !streams.has(undefined);
  const order = ({ ingress, sequence }: DeadLetterSummary) => (isOne && ingress?.sequence) || sequence;
  return [...letters].sort((a, b) => order(a) - order(b));
}

function wholeNumbers(value: string, before: number[] | undefined): number[] {
  return [...(before ?? []), wholeNumber(value)];
}

const HEADINGS = ['NO', 'REFUSED', 'PUBLISHER', 'CONVERSATION', 'SIZE', 'CODE', 'REASON'];
const REASON_WIDTH = 80;

function deadLetterTable(letters: readonly DeadLetterSummary[], paint: (text: string) => string): string {
  const rows = letters.map(({ sequence, at, publisher, conversation, size, code, reason }) => [
    ...[String(sequence), dateTime(at), publisher, conversation, String(size), code],
    firstLine(reason, REASON_WIDTH),
  ]);
  return renderTable(HEADINGS, rows, paint);
}

/** One letter: the reason, the next step, and the post. */
export function deadLetterLines(letter: DeadLetterDetail, palette: Palette): string[] {
  const { sequence, at, publisher, conversation, code, reason, hint, id, size, ingress } = letter;
  const place = ingress === undefined ? '' : `, message ${ingress.sequence} of the ingress stream`;
  const body = letter.refused
    ? `${plural(letter.refused.count, 'post')} of ${plural(size, 'byte')}; their texts are not stored`
    : letter.truncated
      ? `the beginning of ${plural(size, 'byte')}; the rest was cut${place}`
      : `${plural(size, 'byte')}${place}`;
  return [
    palette.bold(`${sequence}  ${publisher} → ${conversation}  ${dateTime(at)}`),
    `${palette.red(printable(code))}  ${printable(reason)}`,
    ...(hint === undefined ? [] : [indent(printable(hint), '  ')]),
    ...(id === undefined ? [] : [`id ${printable(id)}`]),
    palette.dim(body),
    '',
    printable(letter.original),
  ];
}
