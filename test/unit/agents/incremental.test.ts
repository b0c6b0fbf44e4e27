import { describe, expect, it, vi } from 'vitest';
import { RequestAssembler } from '../../../src/agents/index.ts';
import { AgentView, DEFAULT_VIEW_POLICY } from '../../../src/conversation/index.ts';
import { Log, partsOf } from './support.ts';

const counts = vi.hoisted(() => ({ estimated: 0 }));
vi.mock('../../../src/agents/dialect-port.ts', async (load) => {
  const estimate = await load<typeof import('../../../src/agents/dialect-port.ts')>();
  const messageTokens: typeof estimate.messageTokens = (message) => {
    counts.estimated += 1;
    return estimate.messageTokens(message);
  };
  return { ...estimate, messageTokens };
});

/** A log of this many turns, after its last request. */
function logOfTurns(turns: number): { log: Log; view: AgentView; assembler: RequestAssembler } {
  const log = new Log();
  const view = new AgentView(log.entries, 'pm', DEFAULT_VIEW_POLICY);
  const assembler = new RequestAssembler();
  for (let turn = 0; turn < turns; turn++)
    log.answer('pm', log.start('pm', log.person(`question ${turn}`)), 'yes');
  assembler.assemble(partsOf(log.entries, { view: view.build() }));
  return { log, view, assembler };
}

/** What the next request serialises, in UTF-16 code units, and how many messages it renders and estimates. */
function costOfNext({ log, view, assembler }: ReturnType<typeof logOfTurns>) {
  const before = new Set(view.build(log.entries.length).history);
  log.start('pm', log.person('and now?'));
  const stringify = vi.spyOn(JSON, 'stringify');
  counts.estimated = 0;
  const built = view.build();
  const { request, fault } = assembler.assemble({ ...partsOf([]), view: built });
  const written = stringify.mock.results.reduce((sum, { value }) => sum + String(value).length, 0);
  stringify.mockRestore();
  const worded = built.history.filter((part) => !before.has(part)).length + built.tail.length;
  return { written, worded, estimated: counts.estimated, messages: request.messages.length, fault };
}

describe('the next request of an agent', () => {
  it('the next request costs work for new entries only, however long the history is (ASSEMBLE-3)', () => {
    const [short, long] = [costOfNext(logOfTurns(3)), costOfNext(logOfTurns(300))];
    expect([short.messages, long.messages]).toEqual([8, 602]);
    expect([short.fault, long.fault]).toEqual([null, null]);
    expect([long.written, long.worded, long.estimated]).toEqual([short.written, 1, short.estimated]);
    expect(short.estimated).toBeLessThan(5);
  });
});
