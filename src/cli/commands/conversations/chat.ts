import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { Command } from 'commander';
import {
  logEntries,
  logLength,
  type ParleyClient,
  ParleyError,
  type PostMessage,
} from '../../../client/index.ts';
import { decodeUtf8 } from '../../../kernel/index.ts';
import { ChatSession } from '../../chat/session.ts';
import { createPaste, createScreen, type Paste } from '../../chat/terminal.ts';
import type { Act, Context } from '../../context.ts';
import { ask, type Connected } from '../../find-daemon.ts';
import { conversationId, quoted } from '../../options/options.ts';
import { type Actor, type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { plural, printable, renderFailure } from '../../render/text.ts';

/** The conversation of `parley chat` without an argument. */
const DEFAULT_CONVERSATION = 'chat';
/** Earlier entries that are shown at the start. */
const LOOK_BACK = 20;
/** Earlier entries that are read to find open questions. */
const OPEN_WITHIN = 1_000;
/** Earlier entries whose messages of this person are in the history of the input. */
const HISTORY_WITHIN = 200;

export function addChat(program: Command, act: Act): void {
  const added = program
    .command('chat')
    .description('talk in the terminal; piped in, each line is a message that waits for its answer')
    .argument('[conversation]', 'its id', conversationId, DEFAULT_CONVERSATION);
  ask(act, addActorOptions(added), (context, conversation: string, options: ActorOptions) => {
    const typed = context.io.stdin.isTTY === true && context.io.stdout.isTTY === true && !context.json;
    const talk = typed ? chatOnTerminal : chatFromPipe;
    return talk(context, conversation, actorOf(context, options));
  });
}

async function chatFromPipe(context: Connected, conversation: string, actor: Actor): Promise<number> {
  const session = new ChatSession(context, {
    conversation,
    actor,
    print: context.write,
    note: context.note,
  });
  const from = await logLength(context.client, conversation);
  if (from > 0) {
    for await (const entry of logEntries(context.client, conversation, Math.max(0, from - OPEN_WITHIN))) {
      if (entry.index < from) session.recall(entry);
    }
  }
  // Created last: lines that arrive before the iteration are lost. Latin-1: one character is one byte until a line is whole.
  const input = createInterface({ input: context.io.stdin.setEncoding('latin1'), terminal: false });
  const scope = followIn(context, session, { conversation, from });
  scope.onEnd(() => input.close());
  try {
    let number = 0;
    for await (const bytes of input) {
      number++;
      const line = decodeUtf8(Buffer.from(bytes, 'latin1'));
      if (line === null) session.fail(notUtf8(number));
      else if (!(await session.line(line))) break;
      await Promise.race([session.quiet(), scope.ended]);
      if (scope.over) break; // do not send the lines that were read ahead
    }
  } finally {
    input.close();
    await scope.end();
  }
  return session.failed ? 1 : 0;
}

function notUtf8(line: number): ParleyError {
  return new ParleyError('USAGE_INVALID_UTF8', `line ${line} on stdin is not UTF-8`, {
    hint: 'convert it first: `iconv -f ENCODING -t UTF-8 FILE | parley chat CONVERSATION`',
  });
}

async function chatOnTerminal(context: Connected, conversation: string, actor: Actor): Promise<number> {
  const { io, palette } = context;
  const length = await logLength(context.client, conversation);
  const history = await ownMessages(context.client, conversation, { actor, length });
  const prompt = palette.dim('> ');
  const input = createInterface({ input: io.stdin, output: io.stdout, prompt, history });
  input.on('error', () => {}); // `readLines` reports it; a closed terminal fails again on close
  const screen = createScreen(io, input);
  const show = (text: string) => {
    screen.print(text);
    screen.show(session.floor);
  };
  const note = (text: string) => {
    screen.note(text);
    screen.show(session.floor);
  };
  const session = new ChatSession(context, {
    conversation,
    actor,
    print: show,
    note,
    isTyped: true,
  });
  screen.print(palette.dim(`${conversation} · /help lists the commands · Ctrl-D leaves\n`));
  const scope = followIn(context, session, { conversation, from: Math.max(0, length - LOOK_BACK) });
  scope.onEnd(() => input.close());
  const paste = createPaste(io, input, (lines) =>
    note(palette.dim(`${lines} lines pasted · Enter sends them as one message · Ctrl-C discards them`)),
  );
  leaveOnSecondInterrupt(context, input, session, paste, note);
  let unsent: readonly PostMessage[] = [];
  try {
    screen.show(session.floor);
    unsent = await readLines(input, session, async (line) => {
      const message = paste.take(line);
      if (message === null) return;
      if (!(await session.line(message))) input.close();
      else screen.show(session.floor);
    });
  } finally {
    paste.close();
    screen.close();
    input.close();
    await scope.end();
  }
  if (unsent.length > 0) context.note(unsentLines(context, session, unsent).join('\n'));
  return unsent.length > 0 ? 1 : 0;
}

/** The messages of this person that can be typed again, the newest first. */
async function ownMessages(
  client: ParleyClient,
  conversation: string,
  { actor: { publisher, author }, length }: { readonly actor: Actor; readonly length: number },
): Promise<string[]> {
  const typed: string[] = [];
  const me = author ? `${publisher}/${author.name}` : publisher;
  if (length === 0) return typed;
  for await (const entry of logEntries(client, conversation, Math.max(0, length - HISTORY_WITHIN))) {
    if (entry.type !== 'message' || entry.author.kind !== 'person' || entry.author.id !== me) continue;
    const { content } = entry;
    // What another publisher of this name wrote must not control the terminal.
    if (!content || content.includes('\n') || printable(content) !== content) continue;
    typed.unshift(content.startsWith('/') ? `/${content}` : content);
  }
  return typed;
}

/** With commands that post them, once. `run` sends no files. */
function unsentLines(context: Context, session: ChatSession, unsent: readonly PostMessage[]): string[] {
  const commands = unsent.map((message) => {
    const { conversation, content, id, workflow, to, author, publisher } = message;
    const text = quoted(printable(content));
    const [words, last] = content.startsWith('-') ? ['', ` -- ${text}`] : [` ${text}`, '']; // no option
    const paths = (session.paths.get(id ?? '') ?? []).map((path) => quoted(printable(path)));
    const files = workflow ? '' : paths.map((path) => ` --file ${path}`).join('');
    const what = workflow
      ? `run ${quoted(workflow)}${words} --conversation ${conversation}`
      : `say ${conversation}${words}${to ? ` --to ${to.join(',')}` : ''}${files}`;
    const as = author?.name === undefined ? '' : ` --as ${quoted(author.name)}`;
    const without = workflow && paths.length > 0 ? `  # without its files: ${paths.join(' ')}` : '';
    return `  ${context.command(`${what} --id ${id} --publisher ${publisher}${as}`)}${last}${without}`;
  });
  const count = plural(unsent.length, 'message');
  return [`parley: the daemon did not acknowledge ${count}. To send what it does not have:`, ...commands];
}

/** A closed terminal ends the chat and is not an error. */
function ignoreClosedTerminal(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EIO') throw error;
}

/**
 * Resolves when the input is closed and every line is processed, or the daemon does not answer; with the messages that it did
 * not acknowledge. Lines may arrive while an agent speaks.
 */
async function readLines(
  input: Interface,
  session: ChatSession,
  onLine: (line: string) => Promise<void>,
): Promise<readonly PostMessage[]> {
  const pending: Promise<void>[] = [];
  input.on('line', (line) => pending.push(onLine(line)));
  await once(input, 'close').catch(ignoreClosedTerminal);
  const unsent = await session.outbox.leave();
  if (!session.isAway) await Promise.all(pending);
  return unsent;
}

/** The first Ctrl-C discards pending pasted lines, or else aborts the running turns. */
function leaveOnSecondInterrupt(
  { failure }: Context,
  input: Interface,
  session: ChatSession,
  paste: Paste,
  note: (text: string) => void,
): void {
  let pressed = false;
  input.on('line', () => {
    pressed = false;
  });
  input.on('SIGINT', () => {
    if (paste.discard() > 0) {
      input.write(null, { ctrl: true, name: 'u' }); // also the text typed after them
      return note('discarded');
    }
    if (pressed) return input.close();
    pressed = true;
    session.abort().then(
      (aborted) => note(aborted ? 'stopped; Ctrl-C again leaves' : 'Ctrl-C again leaves'),
      (error: unknown) => note(renderFailure(failure(error))),
    );
  });
}

/** Follows the conversation until `end`. `onEnd` is called when it ends by itself. */
function followIn(
  context: Connected,
  session: ChatSession,
  { conversation, from }: { conversation: string; from: number },
) {
  const abort = new AbortController();
  const release = context.io.onSignal(() => abort.abort());
  const ended = session.follow(
    context.client.follow(conversation, {
      from,
      signal: abort.signal,
      onReachable: (isReachable) => session.reach(isReachable),
    }),
  );
  let over = false;
  const onEnd = () => {
    over = true;
  };
  ended.then(onEnd, onEnd); // `end` reports a failure
  return {
    ended,
    get over() {
      return over;
    },
    onEnd(callback: () => void): void {
      ended.then(callback, callback);
    },
    async end(): Promise<void> {
      abort.abort();
      release();
      await ended;
    },
  };
}
