import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { answerOf, parseExample } from './view-examples.ts';

const page = readFileSync(new URL('../../../docs/spec/view.md', import.meta.url), 'utf8');

/** Each question of each example, by the rule that it belongs to. */
const examples = page.split(/^### /mu).flatMap((section) =>
  [...section.matchAll(/^```example\n(.*?)^```$/gmsu)].flatMap(([, block = '']) => {
    const { entries, questions } = parseExample(block);
    return questions.map((question) => ({ rule: /^\w+/u.exec(section)?.[0], entries, ...question }));
  }),
);

describe('docs/spec/view.md', () => {
  it('docs/spec/view.md has an example of each rule that one view can show', () => {
    const shown = new Set(examples.map(({ rule }) => rule));
    const others = ['V9', 'V11', 'V12', 'V13', 'V18']; // of several requests, or of the decider
    const rules = Array.from({ length: 18 }, (_, at) => `V${at + 1}`);
    expect([...shown]).toEqual(rules.filter((rule) => !others.includes(rule)));
  });

  it.each(examples)(
    'the example of rule $rule in docs/spec/view.md matches the code: $asked',
    ({ entries, asked, said }) => {
      expect(said).toEqual(answerOf(entries, asked));
    },
  );
});
