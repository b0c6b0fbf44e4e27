import { describe, expect, it } from 'vitest';
import {
  CONVERSATION_VERBS,
  createSubjects,
  PUBLISHER_VERBS,
  REPEATABLE_VERBS,
  statusOf,
  VERBS,
} from '../../../src/bus/index.ts';
import { postShape } from '../../../src/bus/post.ts';
import { codeIn, specPage } from './tables.ts';

/** docs/spec/wire.md names subjects, fields, verbs and codes; here they are compared with the code. */

const { section, rowsOf, firstColumn } = specPage('wire.md');

describe('docs/spec/wire.md', () => {
  it('docs/spec/wire.md names every subject that the code builds, and no other', () => {
    const subjects = createSubjects();
    const built = [
      ...[subjects.in('p', 'c'), subjects.log('c'), subjects.live('c', 'a'), subjects.audit('c')],
      ...[subjects.dead('p', 'c'), subjects.settled, subjects.api('v'), subjects.control('d', 'v')],
      ...[subjects.turn('a'), subjects.turnReply('a', 'o'), subjects.turnControl('a', 'o')],
      ...[...PUBLISHER_VERBS].map((verb) => subjects.api(verb, 'p')),
      ...[...CONVERSATION_VERBS].map((verb) => subjects.api(verb, 'p', 'c')),
    ];
    const short = (subject: string) => subject.replace(/<(\w)\w*>/gu, '$1');
    expect(firstColumn('Subjects').map(short).sort()).toEqual(built.sort());
  });

  it('docs/spec/wire.md names the stream of each subject that is stored', () => {
    const { ingressStream, logStream, auditStream, deadStream, settledStream } = createSubjects();
    const kept = rowsOf('Subjects').flatMap(([, , stream = '']) => codeIn(stream));
    expect(kept).toEqual([ingressStream, logStream, auditStream, deadStream, settledStream]);
  });

  it('docs/spec/wire.md has a row for each field of a post', () => {
    expect(firstColumn('Posts').sort()).toEqual(Object.keys(postShape.shape).sort());
  });

  it('docs/spec/wire.md has a row for each verb', () => {
    expect(firstColumn('Verbs').sort()).toEqual([...VERBS].sort());
  });

  it('docs/spec/wire.md lists the verbs that can be repeated', () => {
    const list = /repeated without effect: (.*?)\./su.exec(section('Verbs'))?.[1] ?? '';
    expect(codeIn(list).sort()).toEqual([...REPEATABLE_VERBS].sort());
  });

  it('docs/spec/wire.md has the number of each error code', () => {
    const codes = rowsOf('Errors').flatMap(([codes = '', number = '']) =>
      codeIn(codes).map((code) => ({ code, number: Number(number) })),
    );
    expect(codes.length).toBeGreaterThan(30);
    for (const { code, number } of codes) expect({ code, number }).toEqual({ code, number: statusOf(code) });
  });
});
