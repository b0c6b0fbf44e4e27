import { clearScreenDown, cursorTo, type Interface } from 'node:readline';
import type { Io } from '../io.ts';
import { createSpinner } from '../output/terminal.ts';
import { onTerminal } from '../render/text.ts';
import { createWordWrap } from '../render/word-wrap.ts';

/**
 * A terminal with input and output at the same time: output is printed above the line being typed.
 *
 * SCREEN-1 The prompt is visible while the person types, and while no agent streams or is expected to answer.
 * SCREEN-2 After `close`, and once the input has ended, there is no prompt: it would resume the input and keep the process alive,
 *          and newer versions of Node throw.
 */
export function createScreen(io: Io, input: Interface) {
  const waiting = createSpinner(io);
  const wrap = createWordWrap(() => (io.env.TERM === 'dumb' ? undefined : io.stdout.columns));
  let prompted = false;
  let spinning = false;
  let closed = false;

  function clear(): void {
    if (spinning) waiting.hide();
    if (prompted) {
      cursorTo(io.stdout, 0);
      clearScreenDown(io.stdout);
    }
    spinning = false;
    prompted = false;
  }

  input.once('close', () => {
    closed = true;
  });

  function prompt(): void {
    if (closed) return;
    clear();
    input.prompt(true);
    prompted = true;
  }

  // A person who types must see the text instead of the spinner.
  const onKey = () => {
    if (spinning) prompt();
  };
  io.stdin.on('keypress', onKey);

  function print(text: string): void {
    if (text === '') return;
    clear();
    io.stdout.write(wrap.add(onTerminal(text)));
  }

  return {
    /** Continues the last line if that has no end. */
    print,
    /** Prints complete lines. */
    note(text: string): void {
      if (!wrap.isAtLineStart) print('\n');
      print(`${text}\n`);
    },
    /** Shows the prompt or the spinner (SCREEN-1). */
    show(floor: 'speaking' | 'awaited' | 'free') {
      if (closed || floor === 'speaking') return;
      if (floor === 'free' || input.line !== '') return prompt();
      clear();
      waiting.show('…');
      spinning = true;
    },
    close(): void {
      clear();
      closed = true;
      io.stdin.off('keypress', onKey);
    },
  };
}

const MARK = '\u001b[?2004h';
const MARK_NO_MORE = '\u001b[?2004l';

export type Paste = ReturnType<typeof createPaste>;

/**
 * Bracketed paste: the terminal marks pasted text, so that several lines are one message.
 * `onPasted` gets the number of pending lines.
 *
 * PASTE-1  Pasted lines are sent at Enter, together with text that is typed after them.
 * PASTE-2  Bracketed paste is switched off when this process ends in any way except SIGKILL.
 * PASTE-3  Without bracketed paste, each line is a message, as with piped input.
 */
export function createPaste(io: Io, input: Interface, onPasted: (lines: number) => void) {
  let waiting: string[] = [];
  let isPasting = false;
  const onKey = (_text: string | undefined, key: { readonly name?: string } | undefined) => {
    if (key?.name === 'paste-start') isPasting = true;
    if (key?.name !== 'paste-end') return;
    isPasting = false;
    if (waiting.length > 0) onPasted(waiting.length + (input.line === '' ? 0 : 1));
  };
  const isMarking = io.env.TERM !== 'dumb';
  const restore = () => {
    if (isMarking) io.stdout.write(MARK_NO_MORE);
  };
  io.stdin.on('keypress', onKey);
  const forget = io.onExit(restore);
  if (isMarking) io.stdout.write(MARK);

  return {
    /** The message that this line completes; null: the message is not complete (PASTE-1). */
    take(line: string): string | null {
      waiting.push(line);
      if (isPasting) return null;
      const message = waiting.join('\n');
      waiting = [];
      return message;
    },
    /** Discards the pending lines and returns their number. */
    discard(): number {
      const { length } = waiting;
      waiting = [];
      return length;
    },
    close(): void {
      io.stdin.off('keypress', onKey);
      forget();
      restore();
    },
  };
}
