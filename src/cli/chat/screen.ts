import { clearScreenDown, cursorTo, type Interface } from 'node:readline';
import type { Io } from '../io.ts';
import { createWaiting } from '../waiting.ts';

/**
 * A terminal that is typed into while others talk: what is printed stands above the line being typed.
 *
 * K1 The prompt is on the screen exactly when the last thing printed ended its line and nothing is awaited.
 */
export interface Screen {
  print(text: string): void;
  /** Shows the prompt, or that somebody is awaited. */
  idle(busy: boolean): void;
  close(): void;
}

export function createScreen(io: Io, input: Interface): Screen {
  const waiting = createWaiting(io);
  let prompted = false;
  let atLineStart = true;
  let spinning = false;

  function clear(): void {
    if (spinning) waiting.hide();
    if (prompted) {
      cursorTo(io.stdout, 0);
      clearScreenDown(io.stdout);
    }
    spinning = false;
    prompted = false;
  }

  function prompt(): void {
    clear();
    if (!atLineStart) return; // K1
    input.prompt(true);
    prompted = true;
  }

  // Whoever begins to type wants to see what, not that somebody is awaited.
  const onKey = () => {
    if (spinning) prompt();
  };
  io.stdin.on('keypress', onKey);

  return {
    print(text) {
      if (text === '') return;
      clear();
      io.stdout.write(text);
      atLineStart = text.endsWith('\n');
    },
    idle(busy) {
      if (!atLineStart) return;
      if (!busy || input.line !== '') return prompt();
      clear();
      waiting.show('…');
      spinning = true;
    },
    close() {
      clear();
      io.stdin.off('keypress', onKey);
    },
  };
}
