import { expect, it } from 'vitest';
import { hasLongTests } from '../support/runs.ts';
import { hasPython, openTerminal } from '../support/terminal.ts';

const WRITES = "for (let at = 0; at < 200; at++) console.log('line ' + at); console.log('THE END')";

it.runIf(hasPython && hasLongTests)(
  'a test terminal shows all output that a program wrote before it ended',
  async () => {
    const terminals = Array.from({ length: 10 }, () => openTerminal(['-e', WRITES]));
    for (const terminal of terminals) {
      await expect.poll(terminal.screen, { timeout: 50_000 }).toContain('exit 0');
      expect(terminal.screen()).toContain('THE END');
      await terminal.end();
    }
  },
);
