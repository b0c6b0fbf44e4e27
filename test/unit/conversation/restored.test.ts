import { describe, expect, it } from 'vitest';
import { checkAudit, checkLaws, mayHaveRunSince, recordsOfBackup } from '../../../src/conversation/index.ts';
import { ToolTeam } from './tool-life.ts';

const AT = { newId: () => `new-${Math.random()}`, createdAt: '2026-11-26T02:15:00.000Z' };

function held(team: ToolTeam): string[] {
  const { entries } = team.conversation;
  const starts = mayHaveRunSince(entries, AT);
  expect(checkLaws([...entries, ...starts])).toEqual([]);
  expect(mayHaveRunSince([...entries, ...starts], AT)).toEqual([]);
  return starts.map(({ toolName = '' }) => toolName);
}

describe('RESTORED-1: the risky calls of a copied log that may have run since', () => {
  it('are those that needed no decision of a person any more, also after a safe call that runs', () => {
    const team = ToolTeam.calling('safe1', 'gated', 'risky', 'safe2');
    expect(held(team)).toEqual([]); // nothing starts after a call that waits for an approval
    team.answerApproval('gated', 'approve');
    expect(held(team)).toEqual(['gated', 'risky']);
    team.done('safe1');
    expect(held(team)).toEqual(['risky']); // the gated one is started
  });

  it('are none in a turn that is over, that waits, or that asked a person or another agent', () => {
    const over = ToolTeam.calling('risky');
    over.done('risky');
    expect(held(over)).toEqual([]);
    expect(held(ToolTeam.calling('gated', 'risky'))).toEqual([]);
    expect(held(ToolTeam.calling(['ask', { question: 'which?' }]))).toEqual([]);
  });
});

it('RESTORED-2: the audit log of a copy proves nothing about open calls without a result, nor about later starts', () => {
  const team = ToolTeam.calling('safe1', 'risky1', 'risky2');
  team.done('safe1');
  const { entries } = team.conversation;
  const index = entries.findIndex((entry) => entry.type === 'message' && entry.tool_calls !== undefined);
  const record = (type: string, position: number, tool: string, result?: string) => ({
    ...{ type, call: { entry: index, position }, tool },
    ...(result === undefined ? {} : { result }),
  });
  const run = (position: number, tool: string, result?: string) => [
    record('ToolCallRequested', position, tool),
    record('ToolCallStarted', position, tool),
    ...(result === undefined ? [] : [record('ToolCallCompleted', position, tool, result)]),
  ];
  const first = run(0, 'safe1', 'did safe1');
  const later = run(2, 'risky2', 'done after the copy of the log');
  expect(recordsOfBackup(entries, [...first, ...run(1, 'risky1'), ...later])).toEqual(first);
  const known = run(1, 'risky1', 'did risky1');
  expect(recordsOfBackup(entries, [...first, ...known, ...later])).toEqual([...first, ...known]);
  expect(checkAudit(entries, recordsOfBackup(entries, [...first, ...known, ...later]))).toEqual([]);
});
