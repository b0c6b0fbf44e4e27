import { clearScreenDown, cursorTo, type Interface } from 'node:readline';
import type { Io } from '../io.ts';
import { createSpinner } from '../output/spinner.ts';
import { onTerminal } from '../render/text.ts';
import { createWordWrap } from '../render/word-wrap.ts';

/**
 * A terminal with input and output at the same time: output is printed above the line being typed.
 *
 * SCREEN-1 The prompt is visible while the person types, and while no agent streams or is expected to answer.
 * SCREEN-2 After `close` the input is not used any more: a prompt would resume it and keep the process alive.
 */
export interface Screen {
  /** Continues the last line if that has no end. */
  print(text: string): void;
  /** Prints complete lines. */
  note(text: string): void;
  /** Shows the prompt or the spinner (SCREEN-1). */
  show(floor: 'speaking' | 'awaited' | 'free'): void;
  close(): void;
}

export function createScreen(io: Io, input: Interface): Screen {
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

  function prompt(): void {
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
    print,
    note(text) {
      if (!wrap.isAtLineStart) print('\n');
      print(`${text}\n`);
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
      closed = true;
      io.stdin.off('keypress', onKey);
    },
  };
}
