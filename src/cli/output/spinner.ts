import yoctoSpinner from 'yocto-spinner';
import type { Io } from '../io.ts';

/** An animation while a person waits. Does nothing without a terminal. */
export interface Spinner {
  show(text: string): void;
  hide(): void;
}

export function createSpinner(io: Io): Spinner {
  if (io.stderr.isTTY !== true || io.env.TERM === 'dumb') return { show: () => {}, hide: () => {} };
  // The command handles signals: the spinner must not end the process.
  const spinner = yoctoSpinner({ stream: io.stderr, handleSignals: false });
  return {
    show(text) {
      spinner.text = text;
      if (!spinner.isSpinning) spinner.start();
    },
    hide() {
      if (spinner.isSpinning) spinner.stop();
    },
  };
}
