import { describe, expect, it } from 'vitest';
import { PLAIN_FORM } from '../../../src/agents/index.ts';
import { requestSources } from '../../../src/daemon/team/team.ts';
import { load } from '../config/folder.ts';

async function setupOf(model: string, frontMatter = '') {
  const files = {
    'parley.yaml': `models: { default: { baseURL: "http://h/v1", model: m, maxOutputTokens: 9, ${model} } }`,
    'agents/dev.md': `---\nname: Dev\n${frontMatter}---\nWork.\n`,
  };
  const setup = requestSources(await load(files), { definitions: () => new Map() }).agents.get('dev');
  if (!setup) throw new Error('no agent dev');
  return setup;
}
const fieldsOf = async (model: string) => (await setupOf(model)).profile.fields;

describe('a request of a configured model', () => {
  it('has the fields of its profile', async () => {
    const usage = { stream_options: { include_usage: true } };
    expect(await fieldsOf('')).toEqual({ model: 'm', stream: true, ...usage, max_tokens: 9 });
    expect(await fieldsOf('profile: openai')).toEqual({
      model: 'm',
      stream: true,
      ...usage,
      max_completion_tokens: 9,
    });
    expect(await fieldsOf('profile: mistral')).toEqual({ model: 'm', stream: true, max_tokens: 9 });
    expect(await fieldsOf('stream: false')).toEqual({ model: 'm', stream: false, max_tokens: 9 });
  });

  it('has the form and the view of its profile', async () => {
    const { profile, viewPolicy } = await setupOf('profile: kimi, callIds: nine, strictTools: true');
    expect(profile.form).toEqual({
      ...PLAIN_FORM,
      sendReasoning: 'with-calls',
      emptyAnswers: 'left-out',
      callIds: 'nine',
      boundTo: 'chat-completions h m',
    });
    expect(profile).toMatchObject({ strictTools: true, toolFields: {} });
    expect(viewPolicy).toMatchObject({ otherAgentsAs: 'system', includeReasoning: true });
    const plain = await setupOf('parallelToolCalls: false');
    expect(plain.profile).toMatchObject({ form: PLAIN_FORM, toolFields: { parallel_tool_calls: false } });
    expect(plain.viewPolicy.includeReasoning).toBe(false);
  });

  it('has an away block of a tenth of its window, or of 2,000 tokens', async () => {
    const awayTokens = async (window: number) =>
      (await setupOf(`contextTokens: ${window}`)).viewPolicy.awayTokens;
    expect(await Promise.all([4_096, 19_999, 128_000].map(awayTokens))).toEqual([409, 1_999, 2_000]);
  });

  it('is the plain view for an agent in another process, except for the role of others', async () => {
    const keys = 'profile: mistral, sendReasoning: always, strictTools: true';
    const { profile, viewPolicy } = await setupOf(keys, 'runtime: bus\n');
    expect(profile).toMatchObject({ form: PLAIN_FORM, strictTools: false });
    expect(viewPolicy).toMatchObject({ otherAgentsAs: 'user', includeReasoning: false });
  });
});
