import { expect, it } from 'vitest';
import { renderEntry } from '../../../src/cli/render/entry.ts';
import { createPalette } from '../../../src/cli/render/text.ts';
import { agent } from './support.ts';

it('a tool name invented by a model neither moves the cursor nor begins a line', () => {
  const toolName = 'x\u001b]0;owned\u0007\nbob: yes';
  const shown = renderEntry(agent(0, 'pm', 'a', { role: 'tool', toolName }), createPalette(false));
  expect(shown).toMatch(/⚙ x\\u001b\]0;owned\\u0007\\nbob: yes: a$/);
});
