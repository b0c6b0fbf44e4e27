import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import {
  type DeliveryMode,
  type ParleyClient,
  ParleyError,
  type PostMessage,
  SLUG_PATTERN,
} from '../../../client/index.ts';
import {
  createIdSource,
  decodeUtf8,
  hasVisible,
  isRecord,
  messageOf,
  nearest,
  parseJson,
} from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { type Connected, withDaemon } from '../../find-daemon.ts';
import { postAndWait, postOnly } from '../../follow/post-and-wait.ts';
import { conversationId, listOf } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions, withOperator } from '../../options/publisher.ts';
import { sendFiles } from './file.ts';

/** Posts a message, or starts a workflow. */

interface PostingOptions extends ActorOptions {
  readonly id?: string;
  readonly wait?: boolean;
  readonly operator?: boolean;
}

interface SayOptions extends PostingOptions {
  readonly to?: string[];
  readonly delivery?: DeliveryMode;
  readonly session?: string;
  readonly file?: readonly string[];
  readonly schema?: string;
}

export function addSay(program: Command, act: Act): void {
  const added = program
    .command('say')
    .description('post a message; with --wait stream the answer')
    .argument('<conversation>', 'its id; the first message creates it', conversationId)
    .argument('[text...]', 'the message; - reads it from stdin; may be left out beside --file')
    .option('--file <path>', 'a file to send with it; may be given several times', collected)
    .option('--to <slugs>', 'the agents that should answer, separated by commas', slugs)
    .option('--id <id>', 'a message with the same id is posted only once')
    .addOption(
      new Option('--delivery <how>', 'to a busy agent').choices(['steer', 'queue', 'interrupt'] as const),
    )
    .option('--session <id>', 'the session that the agents that answer continue from now on')
    .option('--schema <path>', 'a file with the JSON Schema that the answer must match')
    .option('--wait', 'stream the answer until no turn runs; exit code 0 also if a turn waits for a person')
    .option('--operator', 'post it as an operator, who may name any session');
  act(addActorOptions(added), async (context, conversation: string, words: string[], options: SayOptions) => {
    const { to, id, delivery, session: sessionId, file = [] } = options;
    const isWordless = file.length > 0 && words.length === 0;
    const schema = options.schema === undefined ? undefined : await schemaIn(options.schema);
    const content = isWordless ? '' : await textOf(context, words, 'say CONVERSATION');
    return withDaemon(context, async (connected) => {
      await refuseNoSlug(connected.client, to);
      const actor = actorOf(context, options);
      const parts = file.length > 0 ? await sendFiles(connected, file, actor.publisher) : undefined;
      const message = { conversation, content, parts, to, id, delivery, sessionId, schema, ...actor };
      return post(connected, message, options);
    });
  });
}

async function schemaIn(path: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ParleyError('USAGE_UNREADABLE_SCHEMA', `${path} cannot be read: ${messageOf(cause)}`);
  });
  const schema = parseJson(text);
  if (isRecord(schema)) return schema;
  throw new ParleyError('USAGE_INVALID_SCHEMA', `${path} is not a JSON Schema`, {
    hint: 'write a JSON object, such as { "type": "object" }',
  });
}

const collected = (path: string, before: readonly string[] = []) => [...before, path];
const slugs = listOf('slugs of agents');

function post(context: Connected, message: PostMessage, { wait, operator }: PostingOptions): Promise<number> {
  return (wait ? postAndWait : postOnly)(context, message, operator ? { asOperator: true } : {});
}

/** The words, or with `-` the text on stdin. */
async function textOf({ io }: Context, words: readonly string[], usage: string): Promise<string> {
  const text = words.length === 1 && words[0] === '-' ? await everythingOn(io.stdin, usage) : words.join(' ');
  if (hasVisible(text)) return text;
  throw new ParleyError('USAGE_EMPTY_MESSAGE', 'the message is empty', {
    hint: `give a text: \`parley ${usage} "some words"\``,
  });
}

/** The bus refuses these too, but cannot suggest an agent. */
async function refuseNoSlug(client: ParleyClient, to: readonly string[] = []): Promise<void> {
  const wrong = to.find((slug) => !SLUG_PATTERN.test(slug));
  if (wrong === undefined) return;
  const known = (await client.request('agents', {})).agents.map(({ slug }) => slug);
  const near = nearest(wrong, known);
  throw new ParleyError('UNKNOWN_AGENT', `there is no agent ${JSON.stringify(wrong)}: a slug is lower case`, {
    hint: near === null ? `known agents: ${known.join(', ')}` : `did you mean ${near}?`,
  });
}

async function everythingOn(stream: AsyncIterable<unknown>, usage: string): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as string | Uint8Array));
  const text = decodeUtf8(Buffer.concat(chunks));
  if (text !== null) return text.replace(/\r?\n$/, '');
  throw new ParleyError('USAGE_INVALID_UTF8', 'the text on stdin is not UTF-8', {
    hint: `convert it first: \`iconv -f ENCODING -t UTF-8 FILE | parley ${usage} -\``,
  });
}

export function addRun(program: Command, act: Act): void {
  const added = program
    .command('run')
    .description('start a workflow with its input; with --wait until the run ends')
    .argument('<workflow>', 'its id: the name of its file')
    .argument('<input...>', 'the text for the agent of the first node; - reads it from stdin')
    .option('--conversation <id>', 'where it runs (default: a new conversation)', conversationId)
    .option('--id <id>', 'a run with the same id and conversation is started only once')
    .option(
      '--wait',
      'stream the answers until no turn runs; exit code 0 if a node ended the run, 1 if it waits for a person',
    )
    .option('--operator', 'start it as an operator, who may start any workflow');
  interface RunOptions extends PostingOptions {
    readonly conversation?: string;
  }
  act(addActorOptions(added), async (context, workflow: string, words: string[], options: RunOptions) => {
    const content = await textOf(context, words, 'run WORKFLOW');
    const { conversation = createIdSource()(), id } = options;
    const message: PostMessage = { conversation, content, workflow, id, ...actorOf(context, options) };
    return withDaemon(context, async (connected) => {
      if (options.wait) context.note(`conversation ${conversation}`);
      return post(connected, message, options).catch((error: unknown) => {
        throw withOperator(error);
      });
    });
  });
}
