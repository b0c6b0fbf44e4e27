import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Command, entrySchema } from '../../../src/conversation/index.ts';
import { CALL_COMMAND_ROWS, CALL_ENTRY_ROWS, COMMAND_ROWS, ENTRY_ROWS, UNMOVING } from './turn-rows.ts';
import {
  CALL_STATES,
  callState,
  decideCell,
  foldCell,
  type Sample,
  type StateOf,
  TURN_STATES,
  turnState,
} from './turn-table.ts';

/** Compares each cell of the tables in docs/spec/turns.md with what the code does. */

const page = readFileSync(new URL('../../../docs/spec/turns.md', import.meta.url), 'utf8');

interface Cell {
  readonly row: string;
  readonly state: string;
  readonly said: string;
}

interface Table {
  readonly states: readonly string[];
  readonly rows: readonly string[];
  readonly cells: readonly Cell[];
}

/** The only table below that heading. */
function tableBelow(heading: string): Table {
  const section = page.split(/^## /mu).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  const [head = [], , ...body] = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((text) => text.replaceAll('`', '').trim()),
  );
  const states = head.slice(1);
  const cells = body.flatMap(([row = '', ...said]) =>
    states.map((state, at) => ({ row, state, said: said[at] ?? 'no message' })),
  );
  return { states, rows: body.map(([row = '']) => row), cells };
}

type Rows<M> = Readonly<Record<string, M>>;
type Samples = Readonly<Record<string, () => Sample>>;

function compare<M>(
  heading: string,
  { rows, samples, stateOf }: { rows: Rows<M>; samples: Samples; stateOf: StateOf },
  cellOf: (make: M, given: Sample, stateOf: StateOf) => string,
): void {
  describe(`the table "${heading}"`, () => {
    const table = tableBelow(heading);

    it('the table has one column for each state and one row for each sample', () => {
      expect(table.states).toEqual(Object.keys(samples));
      expect(table.rows).toEqual(Object.keys(rows));
    });

    it.each(table.cells)(
      'the table says for $row in state $state what the code does',
      ({ row, state, said }) => {
        const [make, given] = [rows[row], samples[state]?.()];
        if (make === undefined || given === undefined) throw new Error(`no sample of ${row} in ${state}`);
        expect(said).toBe(cellOf(make, given, stateOf));
      },
    );
  });
}

const ofTurns = { samples: TURN_STATES, stateOf: turnState };
const ofCalls = { samples: CALL_STATES, stateOf: callState };
compare('Entries that move a turn', { rows: ENTRY_ROWS, ...ofTurns }, foldCell);
compare('Commands on a turn', { rows: COMMAND_ROWS, ...ofTurns }, decideCell);
compare('Entries that move a tool call', { rows: CALL_ENTRY_ROWS, ...ofCalls }, foldCell);
compare('Commands on a tool call', { rows: CALL_COMMAND_ROWS, ...ofCalls }, decideCell);

/** The commands that have rows in the tables. The page says that the others change no turn. */
const COMMANDS: Record<Command['type'], 'table' | 'other'> = {
  post: 'table',
  'model-answered': 'table',
  'model-failed': 'table',
  'attempt-failed': 'table',
  'model-aborted': 'table',
  'reduce-view': 'table',
  'tool-finished': 'table',
  stop: 'table',
  resume: 'table',
  recover: 'table',
  claim: 'table',
  answer: 'table',
  'expire-approval': 'table',
  'answer-calls': 'table',
  'expire-call': 'table',
  'tool-asks': 'other',
  label: 'other',
  'title-written': 'other',
  feedback: 'other',
  'set-phase': 'other',
  'set-mode': 'other',
  seed: 'other',
  copy: 'other',
  fork: 'other',
  hire: 'other',
  dismiss: 'other',
  'change-team': 'other',
};

const typesOf = (...rows: readonly object[]) =>
  [...new Set(rows.flatMap((one) => Object.keys(one).map((row) => row.replace(/:.*/u, ''))))].sort();

describe('the tables of turns', () => {
  it.each([
    { of: 'turn', samples: TURN_STATES, stateOf: turnState },
    { of: 'call', samples: CALL_STATES, stateOf: callState },
  ])('the tables have a sample of each state of a $of that is in that state', ({ samples, stateOf }) => {
    for (const [state, make] of Object.entries(samples)) {
      const given = make();
      expect(stateOf(given.core.conversation.state, given)).toBe(state);
    }
  });

  it('the tables name every type of entry; a list contains those without influence', () => {
    const types = entrySchema.options.flatMap(({ shape }) => [...shape.type.values]).sort();
    expect(typesOf(ENTRY_ROWS, CALL_ENTRY_ROWS, UNMOVING)).toEqual(types);
    const list = /^Entries without influence: (.+?)\.$/msu.exec(page)?.[1] ?? '';
    expect(list.match(/[a-z-]+/gu)?.sort()).toEqual(typesOf(UNMOVING));
  });

  it('the list of entries without influence contains no entry that moves a turn or a call', () => {
    for (const [type, make] of Object.entries(UNMOVING)) {
      const unmoved = type === 'session-set' ? '– ✗' : '–'; // this sample is of no message (PERSON-7)
      for (const state of Object.values(TURN_STATES))
        expect(foldCell(make, state(), turnState)).toBe(unmoved);
      for (const state of Object.values(CALL_STATES))
        expect(foldCell(make, state(), callState)).toBe(unmoved);
    }
  });

  it('the tables name every command', () => {
    const named = (where: string) =>
      Object.entries(COMMANDS).flatMap(([type, place]) => (place === where ? [type] : []));
    expect(typesOf(COMMAND_ROWS, CALL_COMMAND_ROWS)).toEqual(named('table').sort());
    const list = /^Commands without a row: (.+?)\.$/msu.exec(page)?.[1] ?? '';
    expect(list.match(/[a-z-]+/gu)?.sort()).toEqual(named('other').sort());
  });
});
