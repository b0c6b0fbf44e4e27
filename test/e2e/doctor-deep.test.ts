import { describe, expect, it } from 'vitest';
import { anthropicApi } from '../support/anthropic-provider.ts';
import type { MessagesBody } from '../support/messages-rules.ts';
import { openProject } from '../support/project.ts';

const KEY = 'sk-secret-of-the-deep-probe';

/** Follows the protocol, but answers the tool's result without its code. */
function reply({ model, messages, tools }: MessagesBody) {
  if (model.endsWith('that-does-not-exist')) return { error: 'not_found_error' } as const;
  if (!tools) return { text: 'one two three four', stopReason: 'max_tokens' };
  if (messages.length > 1) return { text: 'It was read, one two three.' };
  return {
    blocks: [
      { type: 'thinking', thinking: 'The north meter.' },
      { type: 'tool_use', name: 'read_meter', input: { meter: 'north', days: 3 } },
    ],
  } as const;
}

describe('`parley doctor --probe --deep`', () => {
  it('prints which habits of a provider hold, what to do about the others, and the cost, and no key', async () => {
    const api = anthropicApi(reply);
    const project = await openProject({
      model: api.answer,
      agents: { pm: '---\nname: PM\n---\nAnswer.' },
      settings: (baseURL) => ({
        models: {
          default: {
            ...{ provider: 'anthropic', baseURL, apiKey: KEY, model: 'claude-sonnet-4-5' },
            ...{ maxOutputTokens: 8_000, reasoningTokens: 2_000 },
            price: { inputPerMillion: 10, outputPerMillion: 100 },
          },
        },
      }),
    });
    try {
      const doctor = ['doctor', '--config', project.config, '--probe', '--deep'];
      const ran = await project.parley(...doctor, '--json');
      expect(ran.stderr).toContain('--deep calls 1 model');
      const checks = ran.json().filter(({ name }: { name: string }) => name.startsWith('model default'));
      const found = checks.map(({ name, status, message }: Record<string, string>) => [
        name?.replace(/^model default(, )?/, ''),
        status,
        message?.replace(/:.*$/, ''),
      ]);
      expect(found.slice(1, -1)).toEqual([
        ['text is streamed', 'ok', 'holds'],
        ['a tool is called as asked', 'ok', 'holds'],
        ['the result of a tool is used', 'fail', 'does not hold'],
        ['reasoning is returned and accepted back', 'ok', 'holds'],
        ['usage is reported', 'ok', 'holds'],
        ['a repeated prefix is read from the cache', 'ok', 'holds'],
        ['the output limit ends an answer', 'ok', 'holds'],
        ['a wrong model name is refused', 'ok', 'holds'],
      ]);
      expect(checks[3]).toMatchObject({ fix: 'choose another model' });
      expect(checks.at(-1).message).toMatch(
        /^4 calls, [\d,]+ tokens in \(.* cached.*\), \d+ out.*, \$0\.\d+$/,
      );
      expect(ran.code).toBe(1);
      expect(project.provider.requests).toHaveLength(5); // with that of --probe
      const text = await project.parley(...doctor);
      expect(text.stdout).toMatch(
        /^fail {2}model default, the result of a tool is used: does not hold: it answered "It was read, .*"\n {6}→ choose another model$/m,
      );
      expect(ran.stdout + ran.stderr + text.stdout + text.stderr).not.toContain(KEY);
      expect(api.refusals).toEqual([]);
    } finally {
      await project.close();
    }
  });

  it('needs --probe, and calls nothing without it', async () => {
    const project = await openProject({ model: [{ text: 'x' }] });
    try {
      const ran = await project.parley('doctor', '--config', project.config, '--deep');
      expect(ran.code).toBe(2);
      expect(ran.stderr).toContain('--deep has no effect here');
      expect(ran.stderr).toContain('--probe');
      expect(project.provider.requests).toEqual([]);
    } finally {
      await project.close();
    }
  });
});
