import { clearScreenDown, cursorTo, type Interface } from 'node:readline';
import type { Io } from '../io.ts';
import { createSpinner } from '../spinner.ts';

/**
 * A terminal that is typed into while others talk: what is printed stands above the line being typed.
 *
 * SCREEN-1 The prompt is on the screen exactly when nobody speaks and nobody is awaited, or something is being typed.
 * SCREEN-2 After `close` nothing touches the input any more: a prompt would wake it and keep the process alive.
 */
export interface Screen {
  print(text: string): void;
  /** Shows the prompt, or that somebody is awaited (SCREEN-1). */
  show(floor: 'speaking' | 'awaited' | 'free'): void;
  close(): void;
}

export function createScreen(io: Io, input: Interface): Screen {
  const waiting = createSpinner(io);
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

  function prompt(): void {
    clear();
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
    },
    show(floor) {
      if (closed || floor === 'speaking') return;
      if (floor === 'free' || input.line !== '') return prompt();
      clear();
      waiting.show('…');
      spinning = true;
    },
    close() {
      clear();
      closed = true; // SCREEN-2
      io.stdin.off('keypress', onKey);
    },
  };
}
