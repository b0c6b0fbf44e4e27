import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import type { Command } from 'commander';
import { type ParleyClient, ParleyError } from '../../../client/index.ts';
import { decodeUtf8 } from '../../../kernel/index.ts';
import { createPaste, type Paste } from '../../chat/paste.ts';
import { createScreen } from '../../chat/screen.ts';
import { type ChatSession, createSession } from '../../chat/session.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { logEntries, logLength } from '../../follow/log-pages.ts';
import { conversationId } from '../../options/options.ts';
import { type Actor, type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { type Failure, renderFailure } from '../../render/failure.ts';

/** The conversation of `parley chat` without an argument. */
const DEFAULT_CONVERSATION = 'chat';
/** Earlier entries that are shown at the start. */
const LOOK_BACK = 20;
/** Earlier entries that are read to find open questions. */
const OPEN_WITHIN = 1_000;

export function addChat(program: Command, act: Act): void {
  const added = program
    .command('chat')
    .description('talk in the terminal; piped in, each line is a message that waits for its answer')
    .argument('[conversation]', 'its id', conversationId, DEFAULT_CONVERSATION);
  addActorOptions(added).action((conversation: string, options: ActorOptions, command: Command) =>
    act(command, (context) =>
      withDaemon(context, (client) => {
        const typed = context.io.stdin.isTTY === true && context.io.stdout.isTTY === true && !context.json;
        const talk = typed ? chatOnTerminal : chatFromPipe;
        return talk(context, client, conversation, actorOf(context, options));
      }),
    ),
  );
}

async function chatFromPipe(
  context: Context,
  client: ParleyClient,
  conversation: string,
  actor: Actor,
): Promise<number> {
  const session = createSession(context, client, {
    conversation,
    actor,
    print: context.write,
    note: context.note,
  });
  const from = await logLength(client, conversation);
  if (from > 0) {
    for await (const entry of logEntries(client, conversation, Math.max(0, from - OPEN_WITHIN))) {
      if (entry.index < from) session.recall(entry);
    }
  }
  // Created last: lines that arrive before the iteration are lost. Latin-1: one character is one byte until a line is whole.
  const input = createInterface({ input: context.io.stdin.setEncoding('latin1'), terminal: false });
  const scope = followIn(context, client, session, { conversation, from });
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

async function chatOnTerminal(
  context: Context,
  client: ParleyClient,
  conversation: string,
  actor: Actor,
): Promise<number> {
  const { io, palette } = context;
  const length = await logLength(client, conversation);
  const input = createInterface({ input: io.stdin, output: io.stdout, prompt: palette.dim('> ') });
  input.on('error', () => {}); // `readLines` reports it; a closed terminal fails again on close
  const screen = createScreen(io, input);
  const show = (text: string) => {
    screen.print(text);
    screen.show(session.floor);
  };
  const session: ChatSession = createSession(context, client, {
    conversation,
    actor,
    print: show,
    note: (text) => show(`${text}\n`),
    isTyped: true,
  });
  screen.print(palette.dim(`${conversation} · /help lists the commands · Ctrl-D leaves\n`));
  const scope = followIn(context, client, session, { conversation, from: Math.max(0, length - LOOK_BACK) });
  scope.onEnd(() => input.close());
  const paste = createPaste(io, input, (lines) =>
    show(palette.dim(`${lines} lines pasted · Enter sends them as one message · Ctrl-C discards them\n`)),
  );
  leaveOnSecondInterrupt(input, { session, paste, show, tell: context.failure });
  try {
    await readLines(input, async (line) => {
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
  return 0;
}

/** A closed terminal ends the chat and is not an error. */
function ignoreClosedTerminal(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EIO') throw error;
}

/** Resolves when the input is closed and every line is processed. Lines may arrive while an agent speaks. */
async function readLines(input: Interface, onLine: (line: string) => Promise<void>): Promise<void> {
  const pending: Promise<void>[] = [];
  input.on('line', (line) => pending.push(onLine(line)));
  input.prompt(true);
  await once(input, 'close').catch(ignoreClosedTerminal);
  await Promise.all(pending);
}

interface Interrupted {
  readonly session: ChatSession;
  readonly paste: Paste;
  readonly show: (text: string) => void;
  readonly tell: (error: unknown) => Failure;
}

/** The first Ctrl-C discards pending pasted lines, or else aborts the running turns. */
function leaveOnSecondInterrupt(input: Interface, { session, paste, show, tell }: Interrupted): void {
  let pressed = false;
  input.on('line', () => {
    pressed = false;
  });
  input.on('SIGINT', () => {
    if (paste.discard() > 0) {
      input.write(null, { ctrl: true, name: 'u' }); // also the text typed after them
      return show('discarded\n');
    }
    if (pressed) return input.close();
    pressed = true;
    session.abort().then(
      (aborted) => show(aborted ? 'stopped; Ctrl-C again leaves\n' : 'Ctrl-C again leaves\n'),
      (error: unknown) => show(`${renderFailure(tell(error))}\n`),
    );
  });
}

/** Follows the conversation until `end`. `onEnd` is called when it ends by itself. */
function followIn(
  context: Context,
  client: ParleyClient,
  session: ChatSession,
  { conversation, from }: { conversation: string; from: number },
) {
  const abort = new AbortController();
  const release = context.io.onSignal(() => abort.abort());
  const ended = session.follow(client.follow(conversation, { from, signal: abort.signal }));
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
