import type { Interface } from 'node:readline';
import type { Io } from '../io.ts';

/**
 * Bracketed paste: the terminal marks pasted text, so that several lines are one message.
 *
 * PASTE-1  Pasted lines are sent at Enter, together with text that is typed after them.
 * PASTE-2  Bracketed paste is switched off when this process ends in any way except SIGKILL.
 * PASTE-3  Without bracketed paste, each line is a message, as with piped input.
 */

const MARK = '\u001b[?2004h';
const MARK_NO_MORE = '\u001b[?2004l';

export interface Paste {
  /** The message that this line completes; null: the message is not complete (PASTE-1). */
  take(line: string): string | null;
  /** Discards the pending lines and returns their number. */
  discard(): number;
  close(): void;
}

/** `onPasted` gets the number of pending lines. */
export function createPaste(io: Io, input: Interface, onPasted: (lines: number) => void): Paste {
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
    take(line) {
      waiting.push(line);
      if (isPasting) return null;
      const message = waiting.join('\n');
      waiting = [];
      return message;
    },
    discard() {
      const { length } = waiting;
      waiting = [];
      return length;
    },
    close() {
      io.stdin.off('keypress', onKey);
      forget();
      restore();
    },
  };
}
